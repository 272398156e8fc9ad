package main

import "fmt"

// refusal is an error reply of the protocol: {"error": kind, "message": message}.
type refusal struct{ kind, message string }

func (r refusal) Error() string { return r.kind + ": " + r.message }

// unsupported is the answer to an operation that an index does not have.
type unsupported struct{}

func (unsupported) Error() string { return "unsupported" }

func refuse(kind, format string, values ...any) refusal {
	return refusal{kind, fmt.Sprintf(format, values...)}
}
