package main

import (
	"fmt"
	"strconv"
	"strings"
)

// dialect holds what differs between Kafka releases in the three index files (clauses AI, OI, TI, TX), apart from
// the texts of errors, which an implementation that is not Kafka need not copy.
type dialect struct {
	scala              bool // a position that does not fit is an illegal argument, not an illegal state: up to 3.4
	closeTrims         bool // close() cuts the preallocated tail: up to 4.3
	unmappedTrimIsNoop bool // trimming a closed index does nothing: 3.9.2, 4.0.1 and later
	unmapsFirst        bool // resize unmaps before it sets the length (KAFKA-19390): 3.9.2, 4.0.2, 4.1.1 and later
	newest             bool // 4.4: flush of a closed index does nothing; strict version of a transaction
}

func dialectOf(release string) (dialect, error) {
	v, err := parse(release)
	if err != nil {
		return dialect{}, err
	}
	newest := v.atLeast(4, 4, 0)
	return dialect{
		scala:              !v.atLeast(3, 5, 0),
		closeTrims:         !newest,
		unmappedTrimIsNoop: v.atLeast(4, 0, 1) || v.patchOf(3, 9, 2),
		unmapsFirst:        v.atLeast(4, 1, 1) || v.patchOf(4, 0, 2) || v.patchOf(3, 9, 2),
		newest:             newest,
	}, nil
}

type version [3]int

func parse(release string) (version, error) {
	var v version
	parts := strings.Split(release, ".")
	if len(parts) != len(v) {
		return v, fmt.Errorf("a release has three numbers, %q has %d", release, len(parts))
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return v, fmt.Errorf("a release has three numbers, not %q", release)
		}
		v[i] = n
	}
	return v, nil
}

func (v version) atLeast(major, minor, patch int) bool {
	other := version{major, minor, patch}
	for i := range v {
		if v[i] != other[i] {
			return v[i] > other[i]
		}
	}
	return true
}

// patchOf tells whether v is major.minor.patch or a later patch of the same minor.
func (v version) patchOf(major, minor, patch int) bool {
	return v[0] == major && v[1] == minor && v[2] >= patch
}
