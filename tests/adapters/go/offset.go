package main

// offsetIndex is a .index file: int32 relative offset, int32 position (OI-1).
type offsetIndex struct {
	mapped
	last int64
}

func openOffsetIndex(r *request, rules dialect) (index, error) {
	i := &offsetIndex{}
	i.refreshLast = i.readLast
	return i, i.create(r, rules, 8, 0)
}

func (i *offsetIndex) execute(r *request) (any, error) {
	if value, done, err := i.common(r); done {
		return value, err
	}
	switch r.Op {
	case "append":
		return nil, i.append(r.Offset, int32(r.Position))
	case "lookup":
		return i.lookup(r.Target)
	case "entry":
		if err := i.checkSlot(r.N); err != nil {
			return nil, err
		}
		return i.entry(r.N)
	case "fetch_upper_bound":
		return i.fetchUpperBound(int32(r.Position), int32(r.FetchSize))
	case "sanity_check":
		return nil, i.sanityCheck()
	}
	return nil, unsupported{}
}

func (i *offsetIndex) state() any {
	return mappedState{i.entries, i.maxEntries, i.entries >= i.maxEntries, i.length, []int64{i.last}}
}

func (i *offsetIndex) readLast() error {
	i.last = i.base
	if i.entries == 0 {
		return nil
	}
	entry, err := i.entry(i.entries - 1)
	if err == nil {
		i.last = entry[0]
	}
	return err
}

func (i *offsetIndex) entry(slot int64) ([]int64, error) {
	b, err := i.mapping()
	if err != nil {
		return nil, err
	}
	relative, err := b.getInt(i.byteOf(slot))
	if err != nil {
		return nil, err
	}
	position, err := b.getInt(i.byteOf(slot) + 4)
	return []int64{i.base + int64(relative), int64(position)}, err
}

// append checks in Kafka's order (OI-3).
func (i *offsetIndex) append(offset int64, position int32) error {
	if i.entries >= i.maxEntries {
		return failure("invalid_argument", "Attempt to append to a full index (size = %d).", i.entries)
	}
	if i.entries != 0 && offset <= i.last {
		return failure("invalid_offset", "offset %d is no larger than the last one, %d", offset, i.last)
	}
	relative, err := i.relative(offset)
	if err != nil {
		return err
	}
	b, err := i.mapping()
	if err != nil {
		return err
	}
	if err := b.putInt(relative); err != nil {
		return err
	}
	if err := b.putInt(position); err != nil {
		return err
	}
	i.entries++
	i.last = offset
	return i.checkPosition()
}

func (i *offsetIndex) lookup(target int64) (any, error) {
	if _, err := i.mapping(); err != nil {
		return nil, err
	}
	slot, _, err := i.bounds(i.offsetKey, target)
	if err != nil {
		return nil, err
	}
	if slot == -1 {
		return []int64{i.base, 0}, nil
	}
	return i.entry(slot)
}

// fetchUpperBound searches positions; the sum is a Java int and wraps around.
func (i *offsetIndex) fetchUpperBound(position, size int32) (any, error) {
	b, err := i.mapping()
	if err != nil {
		return nil, err
	}
	positionKey := func(slot int64) (int64, error) {
		stored, err := b.getInt(slot*i.entrySize + 4)
		return int64(stored), err
	}
	_, slot, err := i.bounds(positionKey, int64(position+size))
	if err != nil || slot == -1 {
		return nil, err
	}
	return i.entry(slot)
}

func (i *offsetIndex) sanityCheck() error {
	if i.entries != 0 && i.last < i.base {
		return failure("corrupt", "%s: the last offset is %d, below the base offset %d", i.path, i.last, i.base)
	}
	return i.lengthIsWhole()
}
