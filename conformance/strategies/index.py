"""Strategies for indexes.

A value that occurs twice in a list of ``sampled_from`` is drawn twice as often. Examples shrink to the first value.

An :class:`AnchoredNumber` is a number near an anchor, such as the last key of the index. The anchor ``warm`` is the
first entry of the warm section, ``last_relative`` the largest offset that an entry can store.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from conformance.operations import Operation
from conformance.strategies.index_probe import AnchoredNumber
from kidx.java_values import INT_MAX, INT_MIN, LONG_MAX
from kidx.layout import WARM_SECTION_BYTES

NEAR: Final = (0, 1, -1, 2, -2)
"""Distances from a key, to find off-by-one errors."""


def _anchored(anchors: tuple[str, ...], deltas: tuple[int, ...]) -> st.SearchStrategy[AnchoredNumber]:
    return st.sampled_from([AnchoredNumber(anchor, delta) for anchor in anchors for delta in deltas])


def targets() -> st.SearchStrategy[AnchoredNumber]:
    """Draw keys to look up.

    Followers fetch from the last key. At the first entry of the warm section, the search changes to the other half. The
    remaining keys are the limits of 32- and 64-bit arithmetic.
    """
    anchors = ("last", "last", "first", "warm", "warm", "middle", "base", "last_relative")
    return _anchored(anchors, NEAR) | _anchored(("zero", "int_max", "long_max", "long_min"), (0, 1, -1))


def anchored_offsets() -> st.SearchStrategy[AnchoredNumber]:
    """Draw offsets to append, most of which are rejected, by different checks (OI-3, OI-5, AI-8)."""
    anchors = ("last", "last", "base", "last_relative", "last_relative")
    return _anchored(anchors, NEAR) | _anchored(("zero", "int_max", "unsigned_max", "long_max", "long_min"), (0, 1, -1))


def cut_points() -> st.SearchStrategy[AnchoredNumber]:
    """Draw offsets to truncate to: near keys, and out of range.

    Most are near the last key, as when a follower truncates. Most other truncations empty a large index, and there are
    few of these (AI-30).
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
    return _anchored(anchors, NEAR)


def gaps() -> st.SearchStrategy[int]:
    """Draw distances between appended keys: small, large, and rarely so large that the next key overflows."""
    return st.sampled_from((1, 1, 1, 2, 3, 10, 100, 4096, INT_MAX // 2))


def timestamp_gaps() -> st.SearchStrategy[int]:
    """Draw distances between timestamps: positive, 0 (such an append is ignored, TI-3), and negative (rejected)."""
    return st.sampled_from((1, 1, 1, 0, 5, 1000, -1, 86_400_000, LONG_MAX // 2))


def offset_gaps_of_times() -> st.SearchStrategy[int]:
    """Draw distances between the offsets of a time index, which may be equal, but not decrease."""
    return st.sampled_from((1, 1, 0, 2, 10, 4096, -1, INT_MAX // 2))


def positions() -> st.SearchStrategy[int]:
    """Draw distances between byte positions; the index accepts any, even negative distances (OI-3)."""
    return st.sampled_from((100, 100, 1, 0, 4096, -1, INT_MAX))


def fetch_sizes() -> st.SearchStrategy[int]:
    """Draw sizes of a fetch; with a position near the 32-bit limit the sum wraps around (OI-22)."""
    return st.sampled_from((0, 1, 99, 100, 101, 4096, -1, INT_MAX, INT_MIN))


def base_offsets() -> st.SearchStrategy[int]:
    """Draw base offsets: 0, small, beyond 32 bits, so large that keys exceed 64 bits, and negative."""
    return st.sampled_from((0, 0, 0, 1000, 5_000_000_000, INT_MAX, LONG_MAX - 10, -5))


class Start(NamedTuple):
    """Beginning of an example: bytes to preallocate, number of first entries, and the distance between their keys."""

    max_index_size: int
    prefill: int
    step: int


def starts(entry_size: int) -> st.SearchStrategy[Start]:
    """Draw small indexes, and one index in six that is larger than the warm section.

    Hypothesis disables some rules in most examples, often the rules that append. So most small indexes begin with a few
    entries; otherwise half of all examples would look up keys in an empty file.

    Of the small sizes, 0 entries are rejected, and 1 entry is soon full. With a negative size, ``reset`` requests a
    length of 0 (AI-15) or a negative length (AI-44). A size that is 3 or 7 bytes too large must be rounded down.

    Large indexes have about as many entries as the warm section, or twice as many: with these numbers, a search with
    and without a warm section differ (AI-35). They are rare, because a thousand appends take as long as hundreds of
    steps.
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
    # The small indexes come first, so that an example that needs no large index shrinks to a small one.
    return st.sampled_from(few + many * round(len(few) / (5 * len(many))))


def limits(entry_size: int) -> st.SearchStrategy[int | None]:
    """Draw maximum sizes for reopening a file; None is the original size.

    An existing file keeps its length, so the maximum size matters only in a reset. There, -1 is rounded to 0 and
    empties the file (AI-15), and a more negative size is a length that no operating system accepts (AI-44). A new file
    cannot be created with these sizes.
    """
    return st.sampled_from((None, None, None, None, -1, -1, -2 * entry_size))


def first_steps() -> st.SearchStrategy[str]:
    """Draw the operation that is executed immediately after a file is reopened; empty for none."""
    return st.sampled_from(("", "sanity_check", "", "sanity_check", "trim"))


def bulk_counts() -> st.SearchStrategy[int]:
    """Draw numbers of appends in a step: a few, enough to fill a small index, or more than the warm section has."""
    return st.sampled_from((2, 3, 5, 10, 41, 700))


def sizes() -> st.SearchStrategy[AnchoredNumber]:
    """Draw new sizes: the used size, more, less (AI-11), 0, the maximum, and no multiple of an entry."""
    anchors = ("used", "used", "max", "max", "length", "half", "nothing")
    return _anchored(anchors, (0, 1, -1, 12, 8, 24, -12, -24))


def slots() -> st.SearchStrategy[AnchoredNumber]:
    """Draw slots to read: first, last, past the end, negative, and slots whose position exceeds 32 bits (AI-41)."""
    return _anchored(("used", "nothing", "half", "warm"), NEAR) | _anchored(("wrap", "int_min"), (0, 1, 2, -1))


def damages(entry_size: int, st: Any = st) -> Any:
    """Draw a corruption of a closed file: a flipped bit, a truncated or padded end, zeros, exchanged entries, no file.

    Args:
        entry_size: size of an entry in bytes.
        st: module of strategies: ``hypothesis.strategies`` or :mod:`conformance.strategies.draws`.
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
    """Draw producer ids: a few that recur, and the limits of a long."""
    return st.sampled_from((1, 2, 3, 0, -1, LONG_MAX))
