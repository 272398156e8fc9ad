package main

// key reads the key of a slot.
type key func(slot int64) (int64, error)

func (m *mapped) offsetKey(slot int64) (int64, error) {
	stored, err := m.buffer.getInt(slot*m.entrySize + m.offsetAt)
	return m.base + int64(stored), err
}

// bounds finds the last slot whose key is at or below the target and the first one at or above it, -1 for none. It
// reads the warm section first (AI-31, AI-32). The caller has made sure that the index is mapped.
func (m *mapped) bounds(keyOf key, target int64) (lower, upper int64, err error) {
	if m.entries == 0 {
		return -1, -1, nil
	}
	last := m.entries - 1
	warm := max(0, last-warmBytes/m.entrySize)
	k, err := keyOf(warm)
	if err != nil {
		return 0, 0, err
	}
	if k < target {
		return m.bisect(keyOf, target, warm, last)
	}
	if k, err = keyOf(0); err != nil {
		return 0, 0, err
	}
	if k > target {
		return -1, 0, nil
	}
	return m.bisect(keyOf, target, 0, warm)
}

// bisect is the loop of AI-33: an equal key ends it immediately, for either bound.
func (m *mapped) bisect(keyOf key, target, low, high int64) (lower, upper int64, err error) {
	for low < high {
		middle := (low + high + 1) / 2
		k, err := keyOf(middle)
		switch {
		case err != nil:
			return 0, 0, err
		case k > target:
			high = middle - 1
		case k < target:
			low = middle
		default:
			return middle, middle, nil
		}
	}
	if low == m.entries-1 {
		return low, -1, nil
	}
	return low, low + 1, nil
}
