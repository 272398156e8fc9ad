"""Strategies for indexes. Names are plural, as in Hypothesis.

Every list is a budget: Hypothesis picks from it evenly, so a value that occurs twice is drawn twice as often, and
examples shrink to the first value.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from conformance.operations import Operation
from conformance.strategies.index_probe import Aim
from kidx.java_numbers import INT_MAX, INT_MIN, LONG_MAX
from kidx.layout import WARM_SECTION_BYTES

NEAR: Final = (0, 1, -1, 2, -2)
"""Distances from an anchor: the key itself, both neighbours, and one beyond each, to find off-by-one errors."""


def _aims(anchors: tuple[str, ...], deltas: tuple[int, ...]) -> st.SearchStrategy[Aim]:
    return st.sampled_from([Aim(anchor, delta) for anchor in anchors for delta in deltas])


def targets() -> st.SearchStrategy[Aim]:
    """Draw keys to look up.

    The last key is what followers fetch; at the first entry of the warm section the search changes halves; the
    rest are the limits of 32- and 64-bit arithmetic.
    """
    anchors = ("last", "last", "first", "warm", "warm", "middle", "base", "last_relative")
    return _aims(anchors, NEAR) | _aims(("zero", "int_max", "long_max", "long_min"), (0, 1, -1))


def aimed_offsets() -> st.SearchStrategy[Aim]:
    """Draw offsets to append: mostly rejected, each by another check (OI-3, OI-5, AI-8)."""
    anchors = ("last", "last", "base", "last_relative", "last_relative")
    return _aims(anchors, NEAR) | _aims(("zero", "int_max", "unsigned_max", "long_max", "long_min"), (0, 1, -1))


def cut_points() -> st.SearchStrategy[Aim]:
    """Draw offsets to truncate to: near keys, and out of range.

    Often near the last key, as a follower does: most other truncations empty a large index, of which there are few
    (AI-30).
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
    """Draw distances between appended keys: dense, sparse, and rarely so large that the next one overflows."""
    return st.sampled_from((1, 1, 1, 2, 3, 10, 100, 4096, INT_MAX // 2))


def timestamp_gaps() -> st.SearchStrategy[int]:
    """Draw distances between timestamps: growing, equal (ignored, TI-3), and going back (rejected)."""
    return st.sampled_from((1, 1, 1, 0, 5, 1000, -1, 86_400_000, LONG_MAX // 2))


def offset_gaps_of_times() -> st.SearchStrategy[int]:
    """Draw distances between the offsets of a time index: equal ones are allowed there, smaller ones are not."""
    return st.sampled_from((1, 1, 0, 2, 10, 4096, -1, INT_MAX // 2))


def positions() -> st.SearchStrategy[int]:
    """Draw steps between byte positions; the index accepts any, also decreasing ones (OI-3)."""
    return st.sampled_from((100, 100, 1, 0, 4096, -1, INT_MAX))


def fetch_sizes() -> st.SearchStrategy[int]:
    """Draw bytes of a fetch; with a position near the end the 32-bit sum wraps around (OI-9)."""
    return st.sampled_from((0, 1, 99, 100, 101, 4096, -1, INT_MAX, INT_MIN))


def base_offsets() -> st.SearchStrategy[int]:
    """Draw base offsets: 0, an ordinary one, beyond 32 bits, and where base + relative exceeds 64 bits."""
    return st.sampled_from((0, 0, 0, 1000, 5_000_000_000, INT_MAX, LONG_MAX - 10, -5))


class Start(NamedTuple):
    """Beginning of an example: bytes to preallocate, entries to append immediately, and the step between their keys."""

    max_index_size: int
    prefill: int
    step: int


def starts(entry_size: int) -> st.SearchStrategy[Start]:
    """Draw small indexes, and one in six that reaches past the warm section.

    Hypothesis disables some rules in most examples, often the appending ones. So most small indexes have a few
    entries from the start; otherwise half of all examples would look up keys in an empty file.

    Small: 0 entries are rejected, 1 is full after one (a time index immediately), -1 and -2 make ``reset`` request a
    length
    of 0 (AI-15) or a negative length (AI-44), and 3 or 7 bytes too many must be rounded away.

    Large sizes have as many entries as fit the warm section, its neighbours, and twice as many: the numbers at which
    the plain search and the warm one differ (AI-35). A thousand appends cost as much as some hundred
    steps, hence one in six.
    """
    small = [entries * entry_size + extra for entries in (8, 3, 2, 1, 0, 5, 40) for extra in (0, 0, 3, 7)]
    small += [-1, -1, -2 * entry_size, -2 * entry_size]
    warm = WARM_SECTION_BYTES // entry_size
    few = [Start(size, prefill, step) for prefill in (0, 0, 1, 2, 3, 7) for step in (1, 2, 5) for size in small]
    many = [
        Start((warm + more + free) * entry_size, warm + more, step)
        for more in (0, 1, 2, -1, warm)
        for free in (1, 2, 40)
        for step in (1, 2, 5)
    ]
    # One number is drawn, and the small ones come first: an example that needs no large index shrinks to a small one.
    return st.sampled_from(few + many * round(len(few) / (5 * len(many))))


def limits(entry_size: int) -> st.SearchStrategy[int | None]:
    """Draw maximum sizes to open an existing file with: mostly the original one (None).

    An existing file keeps its length, so a maximum size only takes effect in a reset: 0 truncates the file to
    nothing (AI-15), and a negative one is a length that no operating system accepts (AI-44). A file cannot be *created*
    with these, so only an index with entries shows either.
    """
    return st.sampled_from((None, None, None, None, -1, -1, -2 * entry_size))


def first_steps() -> st.SearchStrategy[str]:
    """Draw the operation on a file immediately after it is reopened, if any."""
    return st.sampled_from(("", "sanity_check", "", "sanity_check", "trim"))


def bulk_counts() -> st.SearchStrategy[int]:
    """Draw the number of appends in a step: a few, enough to fill a small index, or to pass the warm section again."""
    return st.sampled_from((2, 3, 5, 10, 41, 700))


def sizes() -> st.SearchStrategy[Aim]:
    """Draw sizes to resize to: the used size, more, less (AI-11), 0, the maximum, and no multiple of an entry."""
    anchors = ("used", "used", "max", "max", "length", "half", "nothing")
    return _aims(anchors, (0, 1, -1, 12, 8, 24, -12, -24))


def slots() -> st.SearchStrategy[Aim]:
    """Draw slots to read: the ends, one past the end, negative ones, and products that wrap around 32 bits (AI-41)."""
    return _aims(("used", "nothing", "half", "warm"), NEAR) | _aims(("wrap", "int_min"), (0, 1, 2, -1))


def damages(entry_size: int, st: Any = st) -> Any:
    """Draw a corruption of a closed file: a flipped bit, a truncated or padded end, zeros, exchanged entries, no file.

    Args:
        entry_size: size of an entry in bytes.
        st: combinators, either Hypothesis's or those in :mod:`conformance.strategies.draws`.
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
    """Draw producer ids: few, so that they recur, and the limits of a long."""
    return st.sampled_from((1, 2, 3, 0, -1, LONG_MAX))
