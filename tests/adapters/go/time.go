package main

// timeIndex is a .timeindex file: int64 timestamp, int32 relative offset (TI-1).
type timeIndex struct {
	mapped
	lastTimestamp, lastOffset int64
}

func openTimeIndex(r *request, rules dialect) (index, error) {
	i := &timeIndex{}
	i.refreshLast, i.refreshOnResize = i.readLast, true
	return i, i.create(r, rules, 12, 8)
}

func (i *timeIndex) execute(r *request) (any, error) {
	if value, done, err := i.common(r); done {
		return value, err
	}
	switch r.Op {
	case "maybe_append":
		return nil, i.maybeAppend(r.Timestamp, r.Offset, r.SkipFullCheck)
	case "lookup":
		return i.lookup(r.Target)
	case "entry":
		if err := i.checkSlot(r.N); err != nil {
			return nil, err
		}
		return i.entry(r.N)
	case "sanity_check":
		return nil, i.sanityCheck()
	}
	return nil, unsupported{}
}

// full: one slot is kept for the entry that a roll appends (AI-6).
func (i *timeIndex) full() bool { return i.entries >= i.maxEntries-1 }

func (i *timeIndex) state() any {
	return mappedState{i.entries, i.maxEntries, i.full(), i.length, []int64{i.lastTimestamp, i.lastOffset}}
}

func (i *timeIndex) readLast() error {
	if i.entries == 0 {
		i.lastTimestamp, i.lastOffset = -1, i.base
		return nil
	}
	entry, err := i.entry(i.entries - 1)
	if err == nil {
		i.lastTimestamp, i.lastOffset = entry[0], entry[1]
	}
	return err
}

func (i *timeIndex) timestampKey(slot int64) (int64, error) {
	return i.buffer.getLong(slot * i.entrySize)
}

func (i *timeIndex) entry(slot int64) ([]int64, error) {
	b, err := i.mapping()
	if err != nil {
		return nil, err
	}
	timestamp, err := b.getLong(i.byteOf(slot))
	if err != nil {
		return nil, err
	}
	relative, err := b.getInt(i.byteOf(slot) + 8)
	return []int64{timestamp, i.base + int64(relative)}, err
}

// maybeAppend checks in Kafka's order (TI-3).
func (i *timeIndex) maybeAppend(timestamp, offset int64, skipFullCheck bool) error {
	if !skipFullCheck && i.full() {
		return failure("invalid_argument", "Attempt to append to a full time index (size = %d).", i.entries)
	}
	if i.entries != 0 && offset < i.lastOffset {
		return failure("invalid_offset", "offset %d is smaller than the last one, %d", offset, i.lastOffset)
	}
	if i.entries != 0 && timestamp < i.lastTimestamp {
		return failure("illegal_state", "timestamp %d is smaller than the last one, %d", timestamp, i.lastTimestamp)
	}
	if timestamp <= i.lastTimestamp {
		return nil
	}
	b, err := i.mapping()
	if err != nil {
		return err
	}
	// Kafka writes the timestamp before it checks the offset: a rejected offset leaves 8 stray bytes (TI-20).
	if err := b.putLong(timestamp); err != nil {
		return err
	}
	relative, err := i.relative(offset)
	if err != nil {
		return err
	}
	if err := b.putInt(relative); err != nil {
		return err
	}
	i.entries++
	i.lastTimestamp, i.lastOffset = timestamp, offset
	return i.checkPosition()
}

func (i *timeIndex) lookup(target int64) (any, error) {
	if _, err := i.mapping(); err != nil {
		return nil, err
	}
	slot, _, err := i.bounds(i.timestampKey, target)
	if err != nil {
		return nil, err
	}
	if slot == -1 {
		return []int64{-1, i.base}, nil
	}
	return i.entry(slot)
}

func (i *timeIndex) sanityCheck() error {
	if i.entries != 0 {
		first, err := i.entry(0)
		if err != nil {
			return err
		}
		if i.lastTimestamp < first[0] {
			return failure("corrupt", "%s: the last timestamp is %d, the first %d", i.path, i.lastTimestamp, first[0])
		}
		if i.lastOffset < i.base {
			return failure("corrupt", "%s: the last offset is %d, the base %d", i.path, i.lastOffset, i.base)
		}
	}
	return i.lengthIsWhole()
}
