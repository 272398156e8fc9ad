package main

import (
	"encoding/binary"
	"os"
	"syscall"
	"unsafe"
)

// buffer is a mapped file with Java's cursor (java.nio.MappedByteBuffer): Kafka appends with relative puts, so where
// the cursor points decides where the next entry lands, also after an operation that failed half way.
type buffer struct {
	data     []byte
	position int64
	writable bool
}

// openAndMap opens a file as RandomAccessFile does ("rw" creates it), sets its length unless that is -1, and maps it.
func openAndMap(path string, writable bool, length int64) (*buffer, error) {
	flags, protection := os.O_RDONLY, syscall.PROT_READ
	if writable {
		flags, protection = os.O_RDWR|os.O_CREATE, syscall.PROT_READ|syscall.PROT_WRITE
	}
	file, err := os.OpenFile(path, flags, 0o666)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the mapping outlives the descriptor
	if length != -1 {
		if err := file.Truncate(length); err != nil {
			return nil, err
		}
	}
	status, err := file.Stat()
	if err != nil {
		return nil, err
	}
	b := &buffer{writable: writable}
	if status.Size() > 0 { // POSIX has no empty mapping; Java has
		b.data, err = syscall.Mmap(int(file.Fd()), 0, int(status.Size()), protection, syscall.MAP_SHARED)
	}
	return b, err
}

func (b *buffer) limit() int64 { return int64(len(b.data)) }

func (b *buffer) seek(position int64) error {
	if position > b.limit() {
		return failure("invalid_argument", "newPosition > limit: (%d > %d)", position, b.limit())
	}
	b.position = position
	return nil
}

// room checks what every put checks, and moves the cursor past the field.
func (b *buffer) room(size int64) ([]byte, error) {
	if !b.writable {
		return nil, failure("read_only", "the index is mapped read-only")
	}
	end := b.position + size
	if end > b.limit() {
		return nil, failure("buffer_overflow", "%d bytes at %d do not fit in %d", size, b.position, b.limit())
	}
	field := b.data[b.position:end]
	b.position = end
	return field, nil
}

func (b *buffer) putInt(value int32) error {
	field, err := b.room(4)
	if err == nil {
		binary.BigEndian.PutUint32(field, uint32(value))
	}
	return err
}

func (b *buffer) putLong(value int64) error {
	field, err := b.room(8)
	if err == nil {
		binary.BigEndian.PutUint64(field, uint64(value))
	}
	return err
}

func (b *buffer) field(position, size int64) ([]byte, error) {
	if position < 0 || position+size > b.limit() {
		return nil, failure("out_of_bounds", "%d bytes at %d are not within 0..%d", size, position, b.limit())
	}
	return b.data[position : position+size], nil
}

func (b *buffer) getInt(position int64) (int32, error) {
	field, err := b.field(position, 4)
	if err != nil {
		return 0, err
	}
	return int32(binary.BigEndian.Uint32(field)), nil
}

func (b *buffer) getLong(position int64) (int64, error) {
	field, err := b.field(position, 8)
	if err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(field)), nil
}

func (b *buffer) flush() error {
	if !b.writable || len(b.data) == 0 {
		return nil
	}
	start := uintptr(unsafe.Pointer(&b.data[0]))
	if _, _, errno := syscall.Syscall(syscall.SYS_MSYNC, start, uintptr(len(b.data)), syscall.MS_SYNC); errno != 0 {
		return errno
	}
	return nil
}

func (b *buffer) unmap() {
	if len(b.data) > 0 {
		syscall.Munmap(b.data)
	}
	b.data = nil
}
