"""What values are interesting, and why. Plural names, as in Hypothesis.

Every list is a budget: Hypothesis picks from it evenly, so what stands twice is drawn twice as often, and what stands
first is what examples shrink to.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from conformance.operations import Operation
from conformance.strategies.index_probe import Aim
from kidx.java_numbers import INT_MAX, INT_MIN, LONG_MAX
from kidx.layout import WARM_SECTION_BYTES

NEAR: Final = (0, 1, -1, 2, -2)
"""Distances from an anchor: the key itself, both neighbours, and one beyond each, where off-by-one errors live."""


def _aims(anchors: tuple[str, ...], deltas: tuple[int, ...]) -> st.SearchStrategy[Aim]:
    return st.sampled_from([Aim(anchor, delta) for anchor in anchors for delta in deltas])


def targets() -> st.SearchStrategy[Aim]:
    """Keys to look up.

    The last key is what followers ask for; the first entry of the warm section is where the search changes halves; the
    rest are the ends of the ranges that 32- and 64-bit arithmetic have.
    """
    anchors = ("last", "last", "first", "warm", "warm", "middle", "base", "last_relative")
    return _aims(anchors, NEAR) | _aims(("zero", "int_max", "long_max", "long_min"), (0, 1, -1))


def aimed_offsets() -> st.SearchStrategy[Aim]:
    """Offsets to append: mostly refused, each at another check (OI-3, OI-5, AI-8)."""
    anchors = ("last", "last", "base", "last_relative", "last_relative")
    return _aims(anchors, NEAR) | _aims(("zero", "int_max", "unsigned_max", "long_max", "long_min"), (0, 1, -1))


def cut_points() -> st.SearchStrategy[Aim]:
    """Offsets to truncate to: around keys, and outside everything.

    Often around the last key, as a follower does: most other cuts end a large index, of which there are few (AI-30).
    """
    anchors = (
        "last",
        "last",
        "last",
        "last",
        "middle",
        "first",
        "warm",
        "base",
        "last_relative",
        "long_min",
        "long_max",
    )
    return _aims(anchors, NEAR)


def gaps() -> st.SearchStrategy[int]:
    """Distances between appended keys: dense, sparse, and rarely so far that the next one overflows."""
    return st.sampled_from((1, 1, 1, 2, 3, 10, 100, 4096, INT_MAX // 2))


def timestamp_gaps() -> st.SearchStrategy[int]:
    """Distances between timestamps: growing, equal (ignored, TI-3), and going back (refused)."""
    return st.sampled_from((1, 1, 1, 0, 5, 1000, -1, 86_400_000, LONG_MAX // 2))


def offset_gaps_of_times() -> st.SearchStrategy[int]:
    """Distances between the offsets of a time index: equal ones are allowed there, smaller ones are not."""
    return st.sampled_from((1, 1, 0, 2, 10, 4096, -1, INT_MAX // 2))


def positions() -> st.SearchStrategy[int]:
    """Steps between byte positions; the index takes anything, also what goes back (OI-3)."""
    return st.sampled_from((100, 100, 1, 0, 4096, -1, INT_MAX))


def fetch_sizes() -> st.SearchStrategy[int]:
    """Bytes of a fetch; with a position near the end the 32-bit sum wraps around (OI-9)."""
    return st.sampled_from((0, 1, 99, 100, 101, 4096, -1, INT_MAX, INT_MIN))


def base_offsets() -> st.SearchStrategy[int]:
    """Base offsets: 0, an ordinary one, beyond 32 bits, and where base + relative leaves 64 bits."""
    return st.sampled_from((0, 0, 0, 1000, 5_000_000_000, INT_MAX, LONG_MAX - 10, -5))


class Start(NamedTuple):
    """How an example begins: bytes to preallocate, entries to append at once, and the step between their keys."""

    max_index_size: int
    prefill: int
    step: int


def starts(entry_size: int) -> st.SearchStrategy[Start]:
    """Small indexes, and one in six that reaches past the warm section.

    Hypothesis leaves out some rules in most examples, often the appending ones. So most small indexes have a few
    entries from the start; otherwise half of all examples would look for things in an empty file.

    Small: 0 entries are refused, 1 is full after one (a time index at once), -1 and -2 make ``reset`` ask for nothing
    (AI-15) or for a negative length (AI-44), and 3 or 7 bytes too many must be rounded away.

    Large: as many entries as fit the warm section, its neighbours, and twice as many: the numbers at which the plain
    search and the warm one part (AI-35). A thousand appends cost as much as some hundred steps, hence one in six.
    """
    small = [entries * entry_size + extra for entries in (8, 3, 2, 1, 0, 5, 40) for extra in (0, 0, 3, 7)]
    small += [-1, -1, -2 * entry_size, -2 * entry_size]
    warm = WARM_SECTION_BYTES // entry_size
    few = [Start(size, prefill, step) for prefill in (0, 0, 1, 2, 3, 7) for step in (1, 2, 5) for size in small]
    many = [
        Start((warm + more + room) * entry_size, warm + more, step)
        for more in (0, 1, 2, -1, warm)
        for room in (1, 2, 40)
        for step in (1, 2, 5)
    ]
    # One number is drawn, and the small ones come first: an example that needs no large index shrinks to a small one.
    return st.sampled_from(few + many * round(len(few) / (5 * len(many))))


def limits(entry_size: int) -> st.SearchStrategy[int | None]:
    """Maximum sizes to open an existing file with: mostly the one it was created with (None).

    The length of an existing file is its own, so a maximum size shows in a reset only: none at all cuts the file to
    nothing (AI-15), and a negative one is a length that no operating system accepts (AI-44). A file that is *created*
    with these is refused, so it takes an index with something in it to show either.
    """
    return st.sampled_from((None, None, None, None, -1, -1, -2 * entry_size))


def first_steps() -> st.SearchStrategy[str]:
    """What is done to a file as soon as it is open again, if anything."""
    return st.sampled_from(("", "sanity_check", "", "sanity_check", "trim"))


def bulk_counts() -> st.SearchStrategy[int]:
    """How many appends in one step: a few, enough to fill a small index, or to reach past the warm section again."""
    return st.sampled_from((2, 3, 5, 10, 41, 700))


def sizes() -> st.SearchStrategy[Aim]:
    """Sizes to resize to: what is used, more, less (AI-11), nothing, the maximum, and no multiple of an entry."""
    anchors = ("used", "used", "max", "max", "length", "half", "nothing")
    return _aims(anchors, (0, 1, -1, 12, 8, 24, -12, -24))


def slots() -> st.SearchStrategy[Aim]:
    """Slots to read: the ends, one past the end, negative ones, and products that wrap around 32 bits (AI-41)."""
    return _aims(("used", "nothing", "half", "warm"), NEAR) | _aims(("wrap", "int_min"), (0, 1, 2, -1))


def damages(entry_size: int, st: Any = st) -> Any:
    """What may happen to a closed file: a flipped bit, a lost or padded end, zeros, entries exchanged, no file.

    Args:
        entry_size: bytes of an entry.
        st: combinators, Hypothesis's or those of :mod:`conformance.strategies.draws`.
    """
    # The first and last bytes of the first and the last entries hold signs, versions and the lowest bits of keys.
    edges = [entry * entry_size + at for entry in (0, 1, -1, -2) for at in (0, 1, 3, 4, 7, 8, entry_size - 1)]
    places = st.sampled_from(edges) | st.integers(0, 200)
    slot = st.sampled_from((0, 1, 2, -1, -2))
    flip = st.builds(lambda p, b: Operation("flip_bit", (p, b)), places, st.sampled_from((0, 7, 1, 6)))
    cut = st.sampled_from((0, 1, entry_size - 1, entry_size, entry_size + 1, 2 * entry_size, 100))
    pad = st.sampled_from((1, entry_size, entry_size - 1, 3 * entry_size, 4))
    return st.one_of(
        flip,
        cut.map(lambda n: Operation("cut_file", (n,))),
        st.builds(lambda n, byte: Operation("pad_file", (n, byte)), pad, st.sampled_from((0, 0xFF, 1))),
        st.builds(lambda a, b: Operation("zero_range", (a, b)), places, places),
        st.builds(lambda a, b: Operation("swap_ranges", (a, b, entry_size)), slot, slot),
        st.just(Operation("remove_file")),
    )


def producers() -> st.SearchStrategy[int]:
    """Producer ids: few, so that they meet again, and the ends of a long."""
    return st.sampled_from((1, 2, 3, 0, -1, LONG_MAX))
