"""The warm search and the plain one: the pages that they read, and their agreement (AI-30 to AI-36, AI-43)."""

from __future__ import annotations

import bisect
import itertools
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kidx import OffsetIndex, TimeIndex
from kidx.errors import ClosedError, InvalidArgumentError, OutOfBoundsError
from kidx.index.search import Keys, Probe, offset_floor, plain_search, timestamp_floor, warm_search
from kidx.layout import OFFSET_INDEX, PAGE_BYTES, TIME_INDEX, WARM_SECTION_BYTES

OFFSETS_PER_PAGE = PAGE_BYTES // OFFSET_INDEX.size  # 512
LONG = struct.Struct(">q")


def offset_index(path, entries: int, base: int = 0) -> OffsetIndex:
    """Make an index in which entry ``n`` is offset 10 n + 10 at position n, so values between two keys exist."""
    path.write_bytes(b"".join(struct.pack(">ii", 10 * n + 10, n) for n in range(entries)))
    return OffsetIndex(path, base, writable=False)


def time_index(path, entries: int) -> TimeIndex:
    """Make an index in which entry ``n`` is timestamp 10 n + 10 at offset n."""
    path.write_bytes(b"".join(struct.pack(">qi", 10 * n + 10, n) for n in range(entries)))
    return TimeIndex(path, 0, writable=False)


def slots(index, target: int, search=warm_search) -> set[int]:
    """Return the slots that a lookup compares with."""
    probes: list[Probe] = []
    index.lookup(target, probes.append, search=search)
    assert all(probe.page == probe.slot * index.layout.size // PAGE_BYTES for probe in probes)
    return {probe.slot for probe in probes}


def pages_of(index, compared: set[int]) -> set[int]:
    """Return the 4 KiB pages of these entries: Kafka reads a whole entry, and one of 12 bytes may lie on two."""
    size = index.layout.size
    return {byte // PAGE_BYTES for slot in compared for byte in (slot * size, slot * size + size - 1)}


def pages(index, target: int, search=warm_search) -> set[int]:
    """Return the 4 KiB pages that a lookup reads."""
    return pages_of(index, slots(index, target, search))


def keys_of(numbers: list[int]) -> Keys:
    """Return keys in memory, eight bytes apart: a warm section of 1,024 of them."""
    return Keys(LONG.unpack_from, struct.pack(f">{len(numbers)}q", *numbers), 8, 0)


# The textbook case: the comment in AbstractIndex.java about an index of 13 pages that grows to 14.


@pytest.mark.parametrize(
    ("page_count", "plain", "warm"), [(13, {0, 6, 9, 11, 12}, {10, 11, 12}), (14, {0, 7, 10, 12, 13}, {11, 12, 13})]
)
@pytest.mark.parametrize("recent", range(5))
def test_the_textbook_case(page_count, plain, warm, recent, tmp_path):
    """For a recent key in full pages, the plain search reads the whole file, the warm one only the last pages."""
    with offset_index(tmp_path / "a", page_count * OFFSETS_PER_PAGE) as index:
        target = index.last_offset - recent
        assert pages(index, target, plain_search) == plain
        assert pages(index, target) == warm


def test_growing_by_a_page_makes_the_plain_search_read_two_cold_ones(tmp_path):
    """Lookups of the newest key while the 13th page fills never read page 7, and page 10 only until 6,436 entries."""
    last_read: dict[int, int] = {}
    warm: set[int] = set()
    with offset_index(tmp_path / "a", 13 * OFFSETS_PER_PAGE) as index:
        while index.entries > 12 * OFFSETS_PER_PAGE:  # backwards: an index that shrinks by an entry at a time
            for page in pages(index, index.last_offset, plain_search):
                last_read.setdefault(page, index.entries)
            warm |= pages(index, index.last_offset)
            index.truncate_to(index.last_offset)
    assert sorted(last_read) == [0, 6, 9, 10, 11, 12]
    assert last_read[10] == 6436
    assert all(last_read[page] == 13 * OFFSETS_PER_PAGE for page in (0, 6, 9, 11, 12))
    assert warm == {10, 11, 12}
    with offset_index(tmp_path / "a", 14 * OFFSETS_PER_PAGE) as index:
        assert pages(index, index.last_offset, plain_search) - {0, 6, 9, 11, 12, 13} == {7, 10}
        assert pages(index, index.last_offset) <= warm | {13}


def test_a_probe_returns_slot_page_and_half(tmp_path):
    """In 2,000 entries the warm half begins at slot 975; a cold target is compared there, at slot 0, then between."""
    probes: list[Probe] = []
    with offset_index(tmp_path / "a", 2000) as index:
        assert index.lookup(10 * 975 + 5, probes.append) == (10 * 974 + 10, 974)
    assert probes[:3] == [Probe(975, 1, "warm"), Probe(0, 0, "cold"), Probe(488, 0, "cold")]
    assert {probe.section for probe in probes[1:-1]} == {"cold"}
    assert [probe.slot for probe in probes[3:]] == [732, 854, 915, 945, 960, 968, 972, 974, 975]


# Why the warm section is 8192 bytes.


@pytest.mark.thorough
@pytest.mark.parametrize(("make", "warm_entries"), [(offset_index, 1024), (time_index, 682)])
@pytest.mark.parametrize("beyond", [0, 1, 2, 255, 340, 341, 342, 510, 511, 512])
def test_the_warm_section_is_three_pages_and_recent_lookups_touch_them_all(make, warm_entries, beyond, tmp_path):
    """Every key of the warm section, at every kind of alignment.

    Kafka's comment says that entry end - N, the middle one and entry end are touched by every warm lookup. Precisely:
    the first two are, and with them the first two of the three pages. Entry end is compared by every lookup of the
    last key or later, which is what followers and consumers at the tail ask for, so these touch all three; a lookup in
    the first half of the section does not come there, and the last page is warm because appends write it.
    """
    entries = warm_entries + 1 + beyond
    first, end = beyond, entries - 1
    with make(tmp_path / "a", entries) as index:
        three = pages_of(index, set(range(first, entries)))
        assert len(three) == 3
        always = three - {max(three)}
        for target in range(10 * first + 15, 10 * end + 31, 5):  # between any two keys, and each key itself
            compared = slots(index, target)
            assert {first, (first + end + 1) // 2} <= compared
            assert always <= pages_of(index, compared) <= three
            if target >= 10 * end + 10:
                assert end in compared
                assert pages_of(index, compared) == three
        assert end not in slots(index, 10 * first + 15)


@pytest.mark.parametrize("make", [offset_index, time_index])
def test_twice_the_warm_section_would_leave_a_page_cold(make, tmp_path, monkeypatch):
    """With 16 KiB it has five pages, and a lookup of the newest key leaves one of them out: 8192 is the limit."""
    monkeypatch.setattr("kidx.index.search.WARM_SECTION_BYTES", 2 * WARM_SECTION_BYTES)
    with make(tmp_path / "a", 2048 + 1) as index:
        count = index.entries
        first_page = (count - 1 - 2 * WARM_SECTION_BYTES // index.layout.size) * index.layout.size // PAGE_BYTES
        last_page = (count * index.layout.size - 1) // PAGE_BYTES
        assert last_page - first_page + 1 == 5
        assert first_page + 1 not in pages(index, 10 * count)


# Which bounds come out.


@pytest.mark.parametrize("search", [warm_search, plain_search])
def test_an_empty_index_has_no_bounds(search):
    """No entries, no bounds, and nothing is read (AI-31)."""
    assert search(keys_of([]), 0, 5) == (-1, -1)


@pytest.mark.parametrize("search", [warm_search, plain_search])
@pytest.mark.parametrize(
    ("target", "bounds"),
    [(9, (-1, 0)), (10, (0, 1)), (11, (0, 1)), (20, (1, 1)), (25, (1, 2)), (30, (2, 2)), (31, (2, -1))],
)
def test_the_bounds_of_three_keys(search, target, bounds):
    """Below, at, between and above 10, 20, 30; an equal key is both bounds, except the very first (AI-33, AI-43)."""
    assert search(keys_of([10, 20, 30]), 3, target) == bounds


@pytest.mark.parametrize("search", [warm_search, plain_search])
def test_a_single_key_has_no_upper_bound(search):
    """The halving never compares slot 0: a target equal to the only key finds nothing at or above it (AI-43)."""
    assert search(keys_of([10]), 1, 10) == (0, -1)
    assert search(keys_of([10]), 1, 9) == (-1, 0)


@pytest.mark.parametrize("entries", [1024, 1025, 1026])
def test_the_first_warm_key_belongs_to_the_cold_half(entries):
    """A target equal to the first warm key is looked for in the cold half, which ends with that slot (AI-32)."""
    keys = keys_of(list(range(entries)))
    probes: list[Probe] = []
    first = max(0, entries - 1025)
    lower, _ = warm_search(keys.with_probe(entries, probes.append), entries, first)
    assert lower == first
    assert {probe.slot for probe in probes} <= set(range(first + 1))


@pytest.mark.parametrize(("entries", "warm"), [(1025, 1024), (1026, 0)])
def test_unsorted_content_distinguishes_the_searches(entries, warm):
    """A 9 in slot 1, then fives, and a search for 8: each answers by its own path (AI-30, AI-35).

    With 1,026 entries slot 1 is the first warm one, so the warm search turns to the cold half there. The plain one
    halves the whole and ends at the last slot.
    """
    keys = keys_of([0, 9, *[5] * (entries - 2)])
    assert warm_search(keys, entries, 8) == (warm, -1 if warm else 1)
    assert plain_search(keys, entries, 8) == (entries - 1, -1)


def test_of_equal_keys_the_first_compared_one_is_found(tmp_path):
    """Five entries of timestamp 7: the halving meets the middle one first, so that one answers (AI-36)."""
    (tmp_path / "a").write_bytes(b"".join(struct.pack(">qi", 7, n) for n in range(5)))
    with TimeIndex(tmp_path / "a", 0, writable=False) as index:
        assert index.lookup(7) == (7, 0)
        assert index.lookup(8) == (7, 4)
    assert plain_search(keys_of([7] * 5), 5, 7) == (2, 2)
    assert warm_search(keys_of([1] + [7] * 5), 6, 7) == (3, 3)


sizes = st.one_of(st.integers(0, 40), st.integers(1022, 1030), st.integers(2040, 2060))


@given(entries=sizes, step=st.integers(1, 3), data=st.data())
@example(entries=1025, step=1, data=None)
def test_both_searches_agree_on_sorted_keys(entries, step, data):
    """Strictly ascending keys, sizes around the boundary of 1,024: same lower bound, and bisect agrees with both."""
    numbers = list(range(0, entries * step, step))
    keys = keys_of(numbers)
    edges = [-1, 0, 1, *range((entries - 1028) * step, (entries - 1020) * step), entries * step - step, entries * step]
    for target in edges if data is None else [*edges, data.draw(st.integers(-2, entries * step + 2))]:
        lower, upper = warm_search(keys, entries, target)
        plain_lower, plain_upper = plain_search(keys, entries, target)
        assert lower == plain_lower == bisect.bisect_right(numbers, target) - 1
        smallest = bisect.bisect_left(numbers, target)
        # An equal key at the begin of the halved range is never compared, so the next slot may be returned (AI-43).
        for bound in (upper, plain_upper):
            following = smallest + 1 if smallest < entries and numbers[smallest] == target else smallest
            assert bound in {-1 if slot >= entries else slot for slot in (smallest, following)}


@pytest.mark.thorough
@given(entries=st.sampled_from([1, 5, 682, 683, 684, 685, 1366]), data=st.data())
def test_a_time_index_finds_the_same_either_way(entries, data, tmp_path_factory):
    """Around the 682 warm entries of .timeindex, the searches of a whole index give the same entry."""
    path = tmp_path_factory.getbasetemp() / f"time-{entries}"
    with time_index(path, entries) as index:
        edge = 10 * max(0, entries - 683)
        near_edge = st.integers(edge - 15, edge + 35)
        target = data.draw(st.one_of(near_edge, st.integers(-5, 10 * entries + 20)))
        found = index.lookup(target)
        assert found == index.lookup(target, search=plain_search)
        assert found == ((10 * (slot := min(entries, target // 10) - 1) + 10, slot) if target >= 10 else (-1, 0))


def test_a_watched_search_gives_the_same_answer(tmp_path):
    """A probe only looks on; also where the base is so near the end of a long that relative offsets wrap (AI-8)."""
    base = 2**63 - 20
    probes: list[Probe] = []
    with offset_index(tmp_path / "a", 4, base) as index:
        for target in (base + 10, base + 15, -(2**63) + 1, 0):
            assert index.lookup(target, probes.append) == index.lookup(target)
            assert index.ceiling(target, probes.append) == index.ceiling(target)
    assert {probe.slot for probe in probes} == {0, 2, 3}
    assert {probe.section for probe in probes} == {"warm"}  # so few entries are all in the last 8192 bytes


class Compared(list):
    """Offsets and positions in turn; remembers which slots were read, once for each time in a row."""

    def __init__(self, keys: list[int]) -> None:
        super().__init__(number for key in keys for number in (key, 0))
        self.slots: list[int] = []

    def __getitem__(self, place: int) -> int:
        slot, column = divmod(place, 2)
        assert column == 0
        assert slot >= 0
        self.slots.append(slot)
        return super().__getitem__(place)


def same_comparisons(keys: list[int], target: int) -> None:
    """Check that the quick and the watched search compare the same slots in the same order, with the same result."""
    quick, probes = Compared(keys), []
    lower, _ = warm_search(keys_of(keys).with_probe(len(keys), probes.append), len(keys), target)
    assert offset_floor(quick, len(keys), target) == lower
    assert quick.slots == [probe.slot for probe in probes]
    times = b"".join(TIME_INDEX.struct.pack(key, 0) for key in keys)
    by_time = Keys(TIME_INDEX.codec("timestamp").unpack_from, times, TIME_INDEX.size, 0)
    assert timestamp_floor(times, len(keys), target) == warm_search(by_time, len(keys), target)[0]


@pytest.mark.parametrize("entries", range(7))
def test_the_quick_search_compares_like_the_watched_one_in_any_file(entries):
    """All files of up to six keys 0, 1, 2 in any order, equal ones too (AI-35, AI-36), and all targets."""
    for keys in itertools.product(range(3), repeat=entries):
        for target in range(-1, 4):
            same_comparisons(list(keys), target)


@given(sizes.filter(bool), st.integers(0, 50), st.randoms(use_true_random=False), st.integers(-3, 53))
def test_the_quick_search_compares_like_the_watched_one_around_the_warm_edge(entries, swaps, random, target):
    """Sizes are around 1,024 and more; keys are sorted except for some swapped and some negative ones."""
    keys = [slot * 50 // entries for slot in range(entries)]
    for _ in range(swaps):
        first, second = random.randrange(entries), random.randrange(entries)
        keys[first], keys[second] = keys[second], keys[first] - random.randrange(2) * 60
    same_comparisons(keys, target)


def test_a_lookup_in_a_file_shorter_than_its_entries_is_rejected(tmp_path):
    """The quick search reads by a pointer, so the limit is compared first; the other one raises, too (AI-11)."""
    with offset_index(tmp_path / "a", 100) as index:
        assert index.lookup(1000) == (1000, 99)
        with pytest.raises(InvalidArgumentError):
            index.resize(80)
        assert index.entries == 100
        with pytest.raises(OutOfBoundsError):
            index.lookup(1000)


def test_a_mapping_in_use_is_closed_when_it_is_let_go(tmp_path):
    """A pointer that another thread still reads by keeps the memory; the index is closed immediately."""
    index = offset_index(tmp_path / "a", 3)
    ints = index._mmap.ints
    index.close_handler()
    assert ints[4] == 30
    with pytest.raises(ClosedError):
        index.lookup(10)
