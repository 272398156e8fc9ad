package main

import (
	"encoding/binary"
	"os"
)

const recordSize = 34

// transactionIndex is a .txnindex file: it is neither mapped nor preallocated, and the first append creates it (TX-2).
type transactionIndex struct {
	dialect dialect
	path    string
	start   int64
	file    *os.File
	size    int64
	hasLast bool // what this object has appended itself; not read from the file (TX-4)
	last    int64
}

// aborted is one record: producer id, first offset, last offset, last stable offset.
type aborted [4]int64

func openTransactionIndex(r *request, rules dialect) (index, error) {
	i := &transactionIndex{dialect: rules, path: r.Path, start: r.BaseOffset}
	if _, err := os.Stat(i.path); err == nil {
		if err := i.open(); err != nil {
			return nil, err
		}
	}
	return i, nil
}

func (i *transactionIndex) execute(r *request) (any, error) {
	switch r.Op {
	case "append_aborted":
		return nil, i.append(aborted{r.ProducerID, r.FirstOffset, r.LastOffset, r.LastStableOffset})
	case "collect_aborted":
		return i.collect(r.FetchOffset, r.UpperBound)
	case "truncate_to":
		return nil, i.truncateTo(r.Offset)
	case "reset":
		i.hasLast = false
		return nil, i.cut(0)
	case "flush":
		if i.file == nil {
			return nil, nil
		}
		return nil, i.file.Sync()
	case "sanity_check":
		return nil, i.sanityCheck()
	case "close":
		i.close()
		return nil, nil
	case "delete":
		i.close()
		return removeIfExists(i.path)
	}
	return nil, unsupported{}
}

func (i *transactionIndex) state() any {
	last := []int64{}
	if i.hasLast {
		last = append(last, i.last)
	}
	entries := int64(0)
	if i.file != nil {
		entries = i.size / recordSize
	}
	return map[string]any{"entries": entries, "last": last}
}

func (i *transactionIndex) open() error {
	file, err := os.OpenFile(i.path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	status, err := file.Stat()
	if err != nil {
		file.Close()
		return err
	}
	i.file, i.size = file, status.Size()
	return nil
}

func (i *transactionIndex) close() {
	if i.file != nil {
		i.file.Close()
		i.file = nil
	}
}

func (i *transactionIndex) append(txn aborted) error {
	if i.hasLast && i.last >= txn[2] {
		return failure("invalid_argument", "last offset %d is not greater than %d", txn[2], i.last)
	}
	i.hasLast, i.last = true, txn[2] // remembered before the write
	if i.file == nil {
		if err := i.open(); err != nil {
			return err
		}
	}
	record := make([]byte, 2, recordSize) // version 0
	for _, field := range txn {
		record = binary.BigEndian.AppendUint64(record, uint64(field))
	}
	n, err := i.file.WriteAt(record, i.size)
	i.size += int64(n)
	return err
}

// each calls f with every whole record in file order until it answers false.
func (i *transactionIndex) each(f func(position int64, txn aborted) bool) error {
	if i.file == nil {
		return nil
	}
	data := make([]byte, i.size)
	n, _ := i.file.ReadAt(data, 0) // a file that somebody has cut ends early
	data = data[:n]
	for at := 0; at+recordSize <= len(data); at += recordSize {
		version := int64(int16(binary.BigEndian.Uint16(data[at:])))
		if !i.dialect.newest {
			version >>= 8 // up to 4.3 only the high byte is read (TX-7)
		}
		if version > 0 || version < 0 && i.dialect.newest {
			return failure("unsupported_version", "transaction of version %d in %s", version, i.path)
		}
		var txn aborted
		for field := range txn {
			txn[field] = int64(binary.BigEndian.Uint64(data[at+2+8*field:]))
		}
		if !f(int64(at), txn) {
			return nil
		}
	}
	return nil
}

func (i *transactionIndex) collect(fetchOffset, upperBound int64) (any, error) {
	found, complete := []aborted{}, false
	err := i.each(func(_ int64, txn aborted) bool {
		if txn[2] >= fetchOffset && txn[1] < upperBound {
			found = append(found, txn)
		}
		complete = txn[3] >= upperBound
		return !complete
	})
	return map[string]any{"aborted": found, "complete": complete}, err
}

// truncateTo cuts the file at the first record, in file order, that ends at or above the offset (TX-10).
func (i *transactionIndex) truncateTo(offset int64) error {
	cutAt, hasLast, last := int64(-1), false, int64(0)
	err := i.each(func(position int64, txn aborted) bool {
		if txn[2] >= offset {
			cutAt = position
			return false
		}
		hasLast, last = true, txn[2]
		return true
	})
	if err != nil || cutAt == -1 {
		return err
	}
	i.hasLast, i.last = hasLast, last
	return i.cut(cutAt)
}

func (i *transactionIndex) cut(size int64) error {
	if i.file == nil {
		return nil
	}
	if err := i.file.Truncate(size); err != nil {
		return err
	}
	i.size = min(i.size, size)
	return nil
}

func (i *transactionIndex) sanityCheck() error {
	var bad *aborted
	err := i.each(func(_ int64, txn aborted) bool {
		if txn[2] < i.start {
			bad = &txn
		}
		return bad == nil
	})
	if err == nil && bad != nil {
		return failure("corrupt", "%s: %v ends below the start offset %d", i.path, *bad, i.start)
	}
	return err
}
