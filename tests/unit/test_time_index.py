"""The .timeindex file: worked examples of TI-1 to TI-22, and the search against a sorted list."""

from __future__ import annotations

import bisect
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kidx import TimeIndex, TimestampOffset
from kidx.errors import (
    BufferOverflowError,
    ClosedError,
    CorruptIndexError,
    IllegalStateError,
    IndexOffsetOverflowError,
    InvalidArgumentError,
    InvalidOffsetError,
    ReadOnlyError,
)

RELEASES = ("2.4.1", "3.4.1", "3.9.1", "3.9.2", "4.0.1", "4.3.1", "4.4.0")
EVERY_RELEASE = pytest.mark.parametrize("release", RELEASES)
SCALA = ("2.4.1", "3.4.1")


def entries_of(*pairs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *pair) for pair in pairs)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "00000000000000000100.timeindex"


@pytest.fixture
def index(path):
    """Open an index with base offset 100, capacity for ten, and entries 1000 → 105, 2000 → 105, 3000 → 120."""
    with TimeIndex(path, 100, 120) as opened:
        for timestamp, offset in ((1000, 105), (2000, 105), (3000, 120)):
            opened.maybe_append(timestamp, offset)
        yield opened


# Appending.


def test_an_entry_is_timestamp_and_relative_offset(index, path):
    """Twelve bytes, big-endian: 1000 at 105 with base 100 is 1000, 5 (TI-1). An offset may repeat (TI-3d)."""
    assert path.read_bytes()[:24].hex(" ", 4) == "00000000 000003e8 00000005 00000000 000007d0 00000005"
    assert list(index) == [(1000, 105), (2000, 105), (3000, 120)]
    assert index.entry(2) == TimestampOffset(timestamp=3000, offset=120)


def test_the_last_entry_is_remembered(index, path):
    """(-1, base) while empty; read again by truncation and by a resize that changes the length (TI-2, TI-10)."""
    assert index.last_entry == (3000, 120)
    path.write_bytes(entries_of((1, 1), (2, 2), (9, 9)) + path.read_bytes()[36:])
    assert not index.resize(120)
    assert index.last_entry == (3000, 120)
    index.resize(240)
    assert index.last_entry == (9, 109)
    with pytest.raises(InvalidArgumentError):
        index.resize(12)
    assert index.last_entry == (9, 109)
    index.truncate()
    assert index.last_entry == (-1, 100)


@EVERY_RELEASE
def test_a_full_index_raises_first(release, path):
    """Also an entry that would have been ignored; skip_full_check gives the reserved slot (TI-3a, TI-5, AI-6)."""
    with TimeIndex(path, 100, 36, dialect=release) as index:
        index.maybe_append(10, 101)
        index.maybe_append(20, 102)
        for timestamp, offset in ((30, 103), (20, 102), (-1, 0)):
            with pytest.raises(InvalidArgumentError) as refusal:
                index.maybe_append(timestamp, offset)
            text = "Attempt to append to a full time index (size = 2)."
            assert refusal.value.kafka_message == ("requirement failed: " if release in SCALA else "") + text
        index.maybe_append(30, 103, skip_full_check=True)
        index.maybe_append(30, 104, skip_full_check=True)
        with pytest.raises(BufferOverflowError) as overflow:
            index.maybe_append(40, 104, skip_full_check=True)
        assert overflow.value.kafka_message is None
        assert (index.entries, index.last_entry) == (3, (30, 103))
        assert path.read_bytes() == entries_of((10, 1), (20, 2), (30, 3))


@EVERY_RELEASE
@pytest.mark.parametrize(
    ("timestamp", "offset", "error", "words"),
    [
        (9000, 119, InvalidOffsetError, ("an offset (119)", "offset appended (120)")),
        (0, 119, InvalidOffsetError, ("an offset (119)", "offset appended (120)")),
        (2999, 120, IllegalStateError, ("a timestamp (2999)", "timestamp appended (3000)")),
        (-1, 500, IllegalStateError, ("a timestamp (-1)", "timestamp appended (3000)")),
    ],
)
def test_an_entry_out_of_order_raises_with_the_text_of_the_dialect(release, timestamp, offset, error, words, path):
    """Offset first, then timestamp; Scala only adds a full stop (TI-3b, TI-3c, TI-4)."""
    with TimeIndex(path, 100, 120, dialect=release) as index:
        index.maybe_append(3000, 120)
        with pytest.raises(error) as refusal:
            index.maybe_append(timestamp, offset)
        assert index.entries == 1
    assert refusal.value.kafka_message == (
        f"Attempt to append {words[0]} to slot 1 no larger than the last {words[1]}"
        f" to {path}{'.' if release in SCALA else ''}"
    )


@pytest.mark.parametrize("offset", [100, 99, 2**40])
@pytest.mark.parametrize("timestamp", [-1, -5, -(2**63)])
def test_no_timestamp_on_an_empty_index_is_ignored(timestamp, offset, path):
    """The offset is not checked then, however wrong it is (TI-3d, TI-3e)."""
    with TimeIndex(path, 100, 120) as index:
        index.maybe_append(timestamp, offset)
        assert (index.entries, index.last_entry) == (0, (-1, 100))


def test_an_equal_timestamp_is_ignored(index):
    """With a later offset that does not even fit nothing is raised, and the last entry is unchanged (TI-3d, TI-3e)."""
    index.maybe_append(3000, 121)
    index.maybe_append(3000, 2**40)
    assert (index.entries, index.last_entry) == (3, (3000, 120))


@EVERY_RELEASE
def test_a_rejected_offset_leaves_a_stray_timestamp(release, path):
    """Eight bytes follow the last entry, and the next append is misaligned, until a truncation (TI-20, TI-21)."""
    with TimeIndex(path, 100, 120, dialect=release) as index:
        with pytest.raises(IndexOffsetOverflowError):
            index.maybe_append(7, 99)
        assert (index.entries, path.read_bytes()[:12]) == (0, struct.pack(">qi", 7, 0))
        error, text = (
            (InvalidArgumentError, "requirement failed: 1 entries but file position in index is 20.")
            if release in SCALA
            else (IllegalStateError, "1 entries but file position in index is 20")
        )
        with pytest.raises(error, match="1 entries, but the file position is 20") as refusal:
            index.maybe_append(8, 101)
        assert refusal.value.kafka_message == text
        assert index.last_entry == (8, 101)
        assert path.read_bytes()[:20] == struct.pack(">qqi", 7, 8, 1)
        assert index.entry(0) == (7, 100)
        index.truncate()
        index.maybe_append(9, 102)
        assert list(index) == [(9, 102)]


def test_a_stray_timestamp_takes_the_space_of_an_offset(path):
    """In a full file the entry after a stray timestamp does not fit any more (TI-20b)."""
    with TimeIndex(path, 100, 12) as index:
        with pytest.raises(IndexOffsetOverflowError):
            index.maybe_append(7, 99, skip_full_check=True)
        with pytest.raises(BufferOverflowError, match="8 takes 8 bytes at 8 and does not fit in 12"):
            index.maybe_append(8, 101, skip_full_check=True)
        assert index.entries == 0


@pytest.mark.parametrize("timestamp", [2**63, 2**80])
def test_a_timestamp_that_is_no_long_is_rejected(index, timestamp):
    """Java's types exclude it; kidx raises, and the next append succeeds."""
    with pytest.raises(InvalidArgumentError, match=f"{timestamp} is not a signed number of 8 bytes"):
        index.maybe_append(timestamp, 130)
    index.maybe_append(4000, 130)
    assert index.entry(3) == (4000, 130)


@pytest.mark.parametrize("offset", [103, 2**40])
def test_an_index_opened_read_only(path, offset):
    """With capacity from a truncation, the buffer raises, even where the offset would not have fitted (TI-22)."""
    path.write_bytes(entries_of((1, 1), (2, 2), (3, 3)))
    with TimeIndex(path, 100, writable=False) as index:
        index.truncate_to(102)
        with pytest.raises(ReadOnlyError):
            index.maybe_append(9, offset)
        assert (index.entries, index.last_entry) == (1, (1, 101))
        index.close_handler()
    assert path.read_bytes() == entries_of((1, 1), (2, 2), (3, 3))


# Finding.


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (-(2**63), (-1, 100)),
        (999, (-1, 100)),
        (1000, (1000, 105)),
        (1999, (1000, 105)),
        (2000, (2000, 105)),
        (3000, (3000, 120)),
        (2**63 - 1, (3000, 120)),
    ],
)
def test_lookup_finds_the_entry_at_or_below(index, target, found):
    """Before the first entry: no timestamp, and the segment's first offset (TI-7)."""
    assert index.lookup(target) == found


@pytest.mark.parametrize(
    ("target", "found"),
    [(0, (1000, 105)), (1000, (1000, 105)), (1001, (2000, 105)), (3000, (3000, 120)), (3001, None)],
)
def test_ceiling_finds_the_entry_at_or_above(index, target, found):
    """An addition of kidx: the smallest timestamp that is not below the target."""
    assert index.ceiling(target) == found


# Truncating and checking.


@pytest.mark.parametrize(("offset", "kept"), [(121, 3), (120, 2), (119, 2), (106, 2), (104, 0), (-(2**63), 0)])
def test_truncation_is_by_offset(index, path, offset, kept):
    """The offsets are searched, not the timestamps; the file keeps its length (TI-9, AI-14)."""
    index.truncate_to(offset)
    assert index.entries == kept
    assert index.last_entry == ([(-1, 100), (1000, 105), (2000, 105), (3000, 120)][kept])
    assert path.stat().st_size == 120


def test_truncation_may_keep_an_equal_offset(path):
    """The search finds the later of the two entries at 105; only that one and the rest are removed (TI-9, AI-36)."""
    with TimeIndex(path, 100, 120) as index:
        for timestamp, offset in ((1, 101), (2, 105), (3, 105), (4, 120)):
            index.maybe_append(timestamp, offset)
        index.truncate_to(105)
        assert list(index) == [(1, 101), (2, 105)]


@EVERY_RELEASE
def test_sanity_check_with_the_text_of_the_dialect(release, path):
    """Timestamps first, then the offset, then the length; only the last one has a full stop in Scala (TI-11)."""
    path.write_bytes(entries_of((5, -1), (4, -3)) + b"odd")
    with TimeIndex(path, 100, dialect=release) as index:
        found = f"Corrupt time index found, time index file ({path}) has non-zero size but the last"
        with pytest.raises(CorruptIndexError, match="last timestamp is 4, before its first, 5") as refusal:
            index.sanity_check()
        assert refusal.value.kafka_message == f"{found} timestamp is 4 which is less than the first timestamp 5"
        path.write_bytes(entries_of((5, -1), (5, -3)) + b"odd")
    with TimeIndex(path, 100, dialect=release) as index:
        with pytest.raises(CorruptIndexError, match="last offset is 97, below the base offset 100") as refusal:
            index.sanity_check()
        assert refusal.value.kafka_message == f"{found} offset is 97 which is less than the first offset 100"
        index.close_handler()
        with pytest.raises(ClosedError):
            index.sanity_check()
    path.write_bytes(entries_of((5, 1)) + b"odd")
    with TimeIndex(path, 100, dialect=release) as index:
        with pytest.raises(CorruptIndexError, match="15 bytes are not a multiple of 12") as refusal:
            index.sanity_check()
        assert refusal.value.kafka_message == (
            f"Time index file {path} is corrupt, found 15 bytes which is neither positive nor a multiple of 12"
            f"{'.' if release in SCALA else ''}"
        )


@pytest.mark.parametrize(
    ("content", "passes"),
    [
        (b"", True),
        (bytes(120), True),
        (entries_of((0, 3)) + bytes(24), True),
        (entries_of((-7, 3)) + bytes(24), True),
        (entries_of((1, 3)) + bytes(24), False),
        (entries_of((1, 9), (2, 3)), True),
    ],
    ids=["empty", "zeros", "tail after 0", "tail after -7", "tail after 1", "unsorted offsets"],
)
def test_a_tail_of_zeros_is_detected_after_a_positive_timestamp_only(content, passes, path):
    """The last entry is then timestamp 0, which is below the first one or is not (TI-11a)."""
    path.write_bytes(content)
    with TimeIndex(path, 100) as index:
        if passes:
            index.sanity_check()
            return
        with pytest.raises(CorruptIndexError):
            index.sanity_check()


# Against a sorted list.

steps = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), max_size=60)
long_runs = st.integers(680, 688).map(lambda count: [(2, 2)] * count)


@given(
    steps=st.one_of(steps, long_runs),
    after=st.integers(-3, 400),
    cut=st.integers(-3, 400),
    base=st.sampled_from([0, 1000, 2**63 - 500]),
)
def test_the_index_is_a_sorted_list(steps, after, cut, base, tmp_path_factory):
    """Lookup and ceiling are bisect over timestamps, truncation over offsets, around the 682 warm entries too."""
    timestamps, offsets = [], []
    for timestamp, offset in steps:
        timestamps.append((timestamps[-1] if timestamps else 0) + timestamp)
        offsets.append((offsets[-1] if offsets else base) + offset)
    while offsets and offsets[-1] >= 2**63:
        del offsets[-1], timestamps[-1]
    path = tmp_path_factory.getbasetemp() / "sorted.timeindex"
    path.write_bytes(entries_of(*((t, offset - base) for t, offset in zip(timestamps, offsets, strict=True))))
    count = len(timestamps)
    target = (timestamps[-1] if count else 0) - after
    with TimeIndex(path, base, writable=False) as index:
        below, above = bisect.bisect_right(timestamps, target), bisect.bisect_left(timestamps, target)
        assert index.lookup(target) == ((timestamps[below - 1], offsets[below - 1]) if below else (-1, base))
        assert index.ceiling(target) == ((timestamps[above], offsets[above]) if above < count else None)
        boundary = (offsets[-1] if count else base) - cut
        index.truncate_to(boundary)
        assert [entry.offset for entry in index] == [offset for offset in offsets if offset < boundary]
        index.close_handler()


@given(
    pairs=st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**31 - 1)), max_size=20),
    release=st.sampled_from(RELEASES),
)
def test_appended_entries_are_read_again(pairs, release, tmp_path_factory):
    """Timestamps and offsets in order: each entry later than its predecessor is present after reopening (TI-3d)."""
    path = tmp_path_factory.getbasetemp() / "again.timeindex"
    path.unlink(missing_ok=True)
    timestamps, offsets = sorted(pair[0] for pair in pairs), sorted(pair[1] for pair in pairs)
    with TimeIndex(path, 0, 252, dialect=release) as index:
        for timestamp, offset in zip(timestamps, offsets, strict=True):
            index.maybe_append(timestamp, offset)
        index.trim_to_valid_size()
    first = {timestamp: timestamps.index(timestamp) for timestamp in timestamps}
    with TimeIndex(path, 0) as index:
        assert list(index) == [(timestamp, offsets[at]) for timestamp, at in first.items()]
        index.sanity_check()
