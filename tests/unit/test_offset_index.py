"""The .index file: worked examples of OI-1 to OI-22, and the search against a sorted list."""

from __future__ import annotations

import bisect
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kidx import OffsetIndex, OffsetPosition
from kidx.errors import (
    CorruptIndexError,
    IndexOffsetOverflowError,
    InvalidArgumentError,
    InvalidOffsetError,
    ReadOnlyError,
)

RELEASES = ("2.4.1", "3.4.1", "3.9.1", "3.9.2", "4.0.1", "4.3.1", "4.4.0")
EVERY_RELEASE = pytest.mark.parametrize("release", RELEASES)
SCALA = ("2.4.1", "3.4.1")
INT_MAX = 2**31 - 1


def entries_of(*pairs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *pair) for pair in pairs)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "00000000000000000100.index"


@pytest.fixture
def index(path):
    """Open an index with base offset 100, capacity for ten, and entries 105 → 50, 110 → 60, 120 → 70."""
    with OffsetIndex(path, 100, 80) as opened:
        for offset, position in ((105, 50), (110, 60), (120, 70)):
            opened.append(offset, position)
        yield opened


# Appending.


def test_an_entry_is_relative_offset_and_position(index, path):
    """105 at 50 with base 100 is 5, 50: eight bytes, big-endian (OI-1, AI-1)."""
    assert path.read_bytes()[:24].hex(" ", 4) == "00000005 00000032 0000000a 0000003c 00000014 00000046"
    assert list(index) == [(105, 50), (110, 60), (120, 70)]
    assert index.entry(0) == OffsetPosition(offset=105, position=50)


def test_the_last_offset_is_remembered(index, path):
    """It is the base while empty; then the last appended offset; read from the file when opened or truncated (OI-2)."""
    assert index.last_offset == 120
    index.truncate_to(115)
    assert index.last_offset == 110
    index.truncate()
    assert index.last_offset == 100
    index.close()
    path.write_bytes(entries_of((1, 1), (9, 2)))
    with OffsetIndex(path, 100) as opened:
        assert opened.last_offset == 109
        opened.resize(800)
        assert opened.last_offset == 109


@EVERY_RELEASE
def test_the_checks_of_an_append_come_in_order(release, path):
    """Full, then out of order, then overflow: an entry that is wrong in all three ways gets the first error (OI-3)."""
    with OffsetIndex(path, 100, 16, dialect=release) as index:
        index.append(200, 1)
        with pytest.raises(InvalidOffsetError):
            index.append(99, 0)
        with pytest.raises(IndexOffsetOverflowError):
            index.append(100 + 2**31, 0)
        index.append(201, 2)
        with pytest.raises(InvalidArgumentError) as refusal:
            index.append(99, 0)
        text = "Attempt to append to a full index (size = 2)."
        assert refusal.value.kafka_message == ("requirement failed: " if release in SCALA else "") + text
        assert (index.entries, index.last_offset) == (2, 201)
        assert path.read_bytes() == entries_of((100, 1), (101, 2))


@EVERY_RELEASE
@pytest.mark.parametrize("offset", [120, 119, -1])
def test_an_offset_out_of_order_raises_with_the_text_of_the_dialect(release, offset, path):
    """Equal is out of order too; Scala has parentheses and a full stop (OI-4a, OI-4b)."""
    with OffsetIndex(path, 100, 80, dialect=release) as index:
        index.append(120, 1)
        with pytest.raises(
            InvalidOffsetError, match=f"offset {offset} must be larger than the last offset 120"
        ) as refusal:
            index.append(offset, 9)
    shown, stop = (f"({offset})", ".") if release in SCALA else (offset, "")
    assert refusal.value.kafka_message == (
        f"Attempt to append an offset {shown} to position 1 no larger than the last offset appended (120)"
        f" to {path}{stop}"
    )


@pytest.mark.parametrize(("offset", "fits"), [(100, True), (100 + INT_MAX, True), (99, False), (101 + INT_MAX, False)])
def test_limits_of_the_first_append(offset, fits, path):
    """The base itself is fine although the last offset of an empty index is the base; below it is overflow (OI-5)."""
    with OffsetIndex(path, 100, 80) as index:
        if fits:
            index.append(offset, 7)
            assert index.entry(0) == (offset, 7)
            return
        with pytest.raises(IndexOffsetOverflowError) as refusal:
            index.append(offset, 7)
        assert refusal.value.kafka_message == f"Integer overflow for offset: {offset} ({path})"
        assert (index.entries, path.read_bytes()) == (0, bytes(80))


def test_positions_are_not_checked(path):
    """They may repeat, go back and be negative, as far as 32 bits reach (OI-3)."""
    positions = [7, 7, 3, -1, INT_MAX, -(2**31)]
    with OffsetIndex(path, 0, 80) as index:
        for offset, position in enumerate(positions):
            index.append(offset, position)
        assert [entry.position for entry in index] == positions


@pytest.mark.parametrize("position", [2**31, -(2**31) - 1])
def test_a_position_that_is_no_int_leaves_the_index_unchanged(index, path, position):
    """Java's types exclude it; kidx raises before anything is written, and the next append succeeds."""
    before = path.read_bytes()
    with pytest.raises(InvalidArgumentError, match=f"position {position} is not within"):
        index.append(130, position)
    assert (index.entries, path.read_bytes()) == (3, before)
    index.append(130, 80)
    assert index.entry(3) == (130, 80)


def test_an_index_opened_read_only(path):
    """It is full; after a truncation, the append reaches the buffer, which raises (OI-13)."""
    path.write_bytes(entries_of((1, 1), (2, 2)))
    with OffsetIndex(path, 0, writable=False) as index:
        with pytest.raises(InvalidArgumentError, match="is full: 2 of 2 entries; 3 cannot be appended"):
            index.append(3, 3)
        index.truncate_to(2)
        with pytest.raises(ReadOnlyError):
            index.append(3, 3)
        assert (index.entries, index.last_offset) == (1, 1)
        index.truncate_to(3)
        index.close_handler()
    assert path.read_bytes() == entries_of((1, 1), (2, 2))


# Finding.


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (-(2**63), (100, 0)),
        (104, (100, 0)),
        (105, (105, 50)),
        (109, (105, 50)),
        (110, (110, 60)),
        (119, (110, 60)),
        (120, (120, 70)),
        (2**63 - 1, (120, 70)),
    ],
)
def test_lookup_finds_the_entry_at_or_below(index, target, found):
    """Before the first entry a reader starts with the segment: base offset, position 0 (OI-7)."""
    assert index.lookup(target) == found


@pytest.mark.parametrize(
    ("target", "found"),
    [(0, (105, 50)), (105, (105, 50)), (106, (110, 60)), (110, (110, 60)), (120, (120, 70)), (121, None)],
)
def test_ceiling_finds_the_entry_at_or_above(index, target, found):
    """The very first key is found too, which Kafka's own upper bound steps over (OI-20, AI-43)."""
    assert index.ceiling(target) == found


def test_an_empty_index_finds_nothing(path):
    """Lookup answers with the base, the other two with None, whatever bytes lie in the file (OI-7, AI-31)."""
    with OffsetIndex(path, 100, 80) as index:
        assert index.lookup(500) == (100, 0)
        assert index.ceiling(0) is None
        assert index.fetch_upper_bound_offset(OffsetPosition(100, 0), 0) is None


@pytest.mark.parametrize(
    ("position", "size", "found"),
    [
        (0, 0, (105, 50)),
        (0, 49, (105, 50)),
        (0, 50, (110, 60)),  # equal to the very first position: the one after it (AI-43)
        (0, 60, (110, 60)),
        (50, 15, (120, 70)),
        (50, 20, (120, 70)),
        (50, 21, None),
        (50, INT_MAX, (105, 50)),  # the sum wraps around (OI-22)
    ],
)
def test_upper_bound_of_a_fetch(index, position, size, found):
    """The first entry whose position is not below position + size; that sum is a Java int (OI-21, OI-22)."""
    assert index.fetch_upper_bound_offset(OffsetPosition(105, position), size) == found


# Truncating and checking.


@pytest.mark.parametrize(
    ("offset", "kept"), [(121, 3), (120, 2), (115, 2), (110, 1), (106, 1), (105, 0), (100, 0), (-(2**63), 0)]
)
def test_truncation_removes_the_offset_and_all_above(index, path, offset, kept):
    """An entry with the offset itself is removed; the file has the same length and bytes (OI-10, AI-14)."""
    before = path.read_bytes()
    index.truncate_to(offset)
    assert index.entries == kept
    assert index.last_offset == ([100, 105, 110, 120][kept])
    assert path.read_bytes() == before


@EVERY_RELEASE
def test_sanity_check_with_the_text_of_the_dialect(release, path):
    """A last offset below the base, then a partial entry; Scala has parentheses and full stops (OI-11, OI-12)."""
    opening, closing, stop = ("(", ")", ".") if release in SCALA else ("", "", "")
    path.write_bytes(entries_of((1, 1), (-4, 2)) + b"odd")
    with OffsetIndex(path, 100, dialect=release) as index:
        with pytest.raises(CorruptIndexError, match="last offset is 96, below the base offset 100") as refusal:
            index.sanity_check()
        assert refusal.value.kafka_message == (
            f"Corrupt index found, index file {opening}{path}{closing} has non-zero size but the last offset is 96"
            f" which is less than the base offset 100{stop}"
        )
        index.truncate_to(100)
        with pytest.raises(CorruptIndexError, match="19 bytes are not a multiple of 8") as refusal:
            index.sanity_check()
        assert refusal.value.kafka_message == (
            f"Index file {path} is corrupt, found 19 bytes which is neither positive nor a multiple of 8{stop}"
        )
        index.close_handler()
        with pytest.raises(CorruptIndexError):
            index.sanity_check()


@pytest.mark.parametrize(
    "content", [b"", bytes(80), entries_of((9, 9), (3, -3), (5, 5))], ids=["empty", "zeros", "unsorted"]
)
def test_faults_that_the_sanity_check_does_not_detect(content, path):
    """An empty file, a tail of zeros, unsorted offsets and wrong positions all pass (OI-11)."""
    path.write_bytes(content)
    with OffsetIndex(path, 100) as index:
        index.sanity_check()


# Against a sorted list.

steps = st.lists(st.integers(1, 5), max_size=60)
long_runs = st.integers(1020, 1030).map(lambda count: [2] * count)


@given(steps=st.one_of(steps, long_runs), base=st.sampled_from([0, 1000, 2**63 - 8]), data=st.data())
@example(steps=[1], base=0, data=None)
def test_the_index_is_a_sorted_list(steps, base, data, tmp_path_factory):
    """Lookup, ceiling and truncation equal the results of bisect, at and between entries, up to the end of a long."""
    offsets = [base + sum(steps[: n + 1]) for n in range(len(steps))]
    offsets = [offset for offset in offsets if offset < 2**63]
    path = tmp_path_factory.getbasetemp() / "sorted.index"
    path.write_bytes(entries_of(*((offset - base, n) for n, offset in enumerate(offsets))))
    last = offsets[-1] if offsets else base
    target = last if data is None else data.draw(st.integers(base - 2, last + 2))
    with OffsetIndex(path, base, writable=False) as index:
        below, above = bisect.bisect_right(offsets, target), bisect.bisect_left(offsets, target)
        assert index.lookup(target) == ((offsets[below - 1], below - 1) if below else (base, 0))
        assert index.ceiling(target) == ((offsets[above], above) if above < len(offsets) else None)
        index.truncate_to(target)
        assert [entry.offset for entry in index] == offsets[:above]
        index.close_handler()


@given(
    pairs=st.dictionaries(st.integers(0, INT_MAX), st.integers(-(2**31), INT_MAX), max_size=20),
    base=st.integers(-(2**62), 2**62),
    release=st.sampled_from(RELEASES),
)
def test_appended_entries_are_read_again(pairs, base, release, tmp_path_factory):
    """An index closed by one release and opened by another has the same entries (OI-1); only 4.4.0 keeps the tail."""
    path = tmp_path_factory.getbasetemp() / "again.index"
    path.unlink(missing_ok=True)
    entries = [(base + relative, position) for relative, position in sorted(pairs.items())]
    with OffsetIndex(path, base, 168, dialect=release) as index:
        for entry in entries:
            index.append(*entry)
        index.trim_to_valid_size()
    with OffsetIndex(path, base, dialect="3.9.2") as index:
        assert list(index) == entries
        index.sanity_check()
