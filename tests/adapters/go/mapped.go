package main

import (
	"errors"
	"io/fs"
	"math"
	"os"
)

const warmBytes = 8192 // the end of an index that the search reads first (AI-30)

// mapped is what the offset and the time index have in common: Kafka's AbstractIndex.
type mapped struct {
	dialect      dialect
	path         string
	base         int64
	maxIndexSize int64
	entrySize    int64
	offsetAt     int64 // where in an entry the relative offset is
	buffer       *buffer
	length       int64
	entries      int64
	maxEntries   int64

	refreshLast     func() error // reads the cached last entry again
	refreshOnResize bool         // the time index does so whenever its length has changed (TI-10)
}

// create opens the file, or creates and preallocates it (AI-2 to AI-5).
func (m *mapped) create(r *request, rules dialect, entrySize, offsetAt int64) error {
	m.dialect, m.path, m.base, m.maxIndexSize = rules, r.Path, r.BaseOffset, r.MaxIndexSize
	m.entrySize, m.offsetAt = entrySize, offsetAt
	size := int64(-1)
	file, err := os.OpenFile(m.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	isNew := err == nil
	if isNew {
		file.Close()
		if m.maxIndexSize < entrySize {
			return failure("invalid_argument", "Invalid max index size: %d", m.maxIndexSize)
		}
		if !r.Writable {
			return failure("io", "a new index cannot be preallocated read-only")
		}
		size = roundDown(m.maxIndexSize, entrySize)
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if m.buffer, err = openAndMap(m.path, r.Writable, size); err != nil {
		return err
	}
	m.length = m.buffer.limit()
	if !isNew {
		m.buffer.position = roundDown(m.length, entrySize)
	}
	m.maxEntries = m.length / entrySize
	m.entries = m.buffer.position / entrySize
	return m.refreshLast()
}

// common answers what both kinds answer alike; done is false for the rest.
func (m *mapped) common(r *request) (value any, done bool, err error) {
	switch r.Op {
	case "truncate":
		err = m.truncateToEntries(0)
	case "truncate_to":
		err = m.truncateTo(r.Offset)
	case "reset":
		if err = m.truncateToEntries(0); err == nil {
			_, err = m.resize(m.maxIndexSize)
		}
	case "resize":
		value, err = m.resize(r.Size)
	case "trim":
		err = m.trim()
	case "flush":
		err = m.flush()
	case "close":
		err = m.close()
	case "delete":
		m.unmap()
		value, err = removeIfExists(m.path)
	default:
		return nil, false, nil
	}
	return value, true, err
}

func (m *mapped) mapping() (*buffer, error) {
	if m.buffer == nil {
		return nil, failure("closed", "%s is closed", m.path)
	}
	return m.buffer, nil
}

// relative is an offset as it is stored (AI-8). Go's arithmetic wraps around as Java's does.
func (m *mapped) relative(offset int64) (int32, error) {
	if r := offset - m.base; 0 <= r && r <= math.MaxInt32 {
		return int32(r), nil
	}
	return 0, failure("offset_overflow", "Integer overflow for offset: %d (%s)", offset, m.path)
}

// byteOf is the position of a slot: an int in Java, so it wraps around 32 bits (AI-41).
func (m *mapped) byteOf(slot int64) int64 { return int64(int32(slot * m.entrySize)) }

func (m *mapped) checkSlot(n int64) error {
	if n >= m.entries {
		return failure("invalid_argument", "Attempt to fetch the %dth entry from %s of %d entries", n, m.path, m.entries)
	}
	return nil
}

func (m *mapped) truncateToEntries(entries int64) error {
	m.entries = entries // set even if the index is closed, as in Kafka
	b, err := m.mapping()
	if err != nil {
		return err
	}
	if err := b.seek(entries * m.entrySize); err != nil {
		return err
	}
	return m.refreshLast()
}

// truncateTo removes every entry at or above an offset (OI-10, TI-9).
func (m *mapped) truncateTo(offset int64) error {
	b, err := m.mapping()
	if err != nil {
		return err
	}
	slot, _, err := m.bounds(m.offsetKey, offset)
	if err != nil {
		return err
	}
	keep := int64(0)
	if slot >= 0 {
		stored, err := b.getInt(m.byteOf(slot) + m.offsetAt)
		if err != nil {
			return err
		}
		keep = slot + 1
		if int64(stored) == offset-m.base {
			keep = slot
		}
	}
	return m.truncateToEntries(keep)
}

// resize changes the length of the file and maps it again (AI-10); false if it has that length already.
func (m *mapped) resize(size int64) (bool, error) {
	size = roundDown(size, m.entrySize)
	if size == m.length {
		return false, nil
	}
	if m.buffer == nil {
		file, err := os.OpenFile(m.path, os.O_RDWR|os.O_CREATE, 0o666) // brings a deleted file back, as Kafka does
		if err != nil {
			return false, err
		}
		file.Close()
		return false, failure("closed", "%s is closed", m.path)
	}
	position := m.buffer.position
	grown, err := openAndMap(m.path, true, size)
	if err != nil {
		if m.dialect.unmapsFirst {
			m.unmap() // AI-44b
		}
		return false, err
	}
	m.unmap()
	m.buffer, m.length, m.maxEntries = grown, size, size/m.entrySize
	if err := grown.seek(position); err != nil { // AI-11: the file has been cut all the same
		return false, err
	}
	if m.refreshOnResize {
		return true, m.refreshLast()
	}
	return true, nil
}

func (m *mapped) trim() error {
	if m.buffer == nil && m.dialect.unmappedTrimIsNoop {
		return nil
	}
	_, err := m.resize(m.entries * m.entrySize)
	return err
}

func (m *mapped) flush() error {
	if m.buffer == nil && m.dialect.newest {
		return nil
	}
	b, err := m.mapping()
	if err != nil {
		return err
	}
	return b.flush()
}

func (m *mapped) close() error {
	if m.dialect.closeTrims {
		if err := m.trim(); err != nil {
			return err
		}
	}
	m.unmap()
	return nil
}

func (m *mapped) unmap() {
	if m.buffer != nil {
		m.buffer.unmap()
		m.buffer = nil
	}
}

// checkPosition is the check at the end of every append (OI-6, TI-21).
func (m *mapped) checkPosition() error {
	if m.entries*m.entrySize == m.buffer.position {
		return nil
	}
	kind := "illegal_state"
	if m.dialect.scala {
		kind = "invalid_argument"
	}
	return failure(kind, "%d entries but file position in index is %d", m.entries, m.buffer.position)
}

func (m *mapped) lengthIsWhole() error {
	if m.length%m.entrySize != 0 {
		return failure("corrupt", "%s: %d bytes are no multiple of %d", m.path, m.length, m.entrySize)
	}
	return nil
}

// mappedState is the value of `state`.
type mappedState struct {
	Entries    int64   `json:"entries"`
	MaxEntries int64   `json:"max_entries"`
	Full       bool    `json:"full"`
	Length     int64   `json:"length"`
	Last       []int64 `json:"last"`
}

func roundDown(number, factor int64) int64 { return factor * (number / factor) }

func removeIfExists(path string) (bool, error) {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
