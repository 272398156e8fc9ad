"""Strategies for logs with a remote tier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.strategies import draws as st
from conformance.strategies.log import Shape
from conformance.strategies.log import shapes as shapes_of_logs

if TYPE_CHECKING:
    from conformance.strategies.draws import Draw


def settings() -> Draw[dict[str, Any]]:
    """Draw topic settings under which a segment holds two to five batches of 70 bytes.

    Local retention of 0 bytes or 1 millisecond deletes each copied segment; -2 is the retention of both tiers.
    """
    return st.fixed_dictionaries(
        {
            "segment.bytes": st.sampled_from((300, 300, 1000, 150)),
            "segment.index.bytes": st.sampled_from((120, 120, 24)),
            "index.interval.bytes": st.sampled_from((0, 0, 100, 4096)),
            "retention.ms": st.sampled_from((-1, -1, 5000, 20_000)),
            "retention.bytes": st.sampled_from((-1, -1, 400, 900)),
            "local.retention.ms": st.sampled_from((-1, -2, 1, 2000)),
            "local.retention.bytes": st.sampled_from((-2, 0, 0, 300)),
        }
    )


def shapes() -> Draw[list[Shape]]:
    """Draw one to four batches of a leader; their timestamps grow, are equal, go back or are missing."""
    return st.lists(shapes_of_logs(gaps=False), min_size=1, max_size=4)


def transactional_writes() -> Draw[list[tuple[int, str]]]:
    """Draw batches of two producers' transactions and their ends, ``""`` for a batch; most transactions are aborted."""
    ends = st.sampled_from(("", "", "", "abort", "abort", "commit"))
    return st.lists(st.tuples(st.sampled_from((1, 2)), ends), min_size=1, max_size=6)


def fetch_sizes() -> Draw[int]:
    """Draw maximum sizes of a fetch: of a part of a batch, of a few batches, and of more than a segment."""
    return st.sampled_from((1, 70, 150, 300, 1 << 20))


def anchors() -> Draw[str]:
    """Draw names of offsets at the boundaries of both tiers, and inside."""
    return st.sampled_from(("local", "remote", "later remote", "copied", "half", "active", "end", "second", "start"))


def start_anchors() -> Draw[str]:
    """Draw the name of the offset in the log start's checkpoint: up to date, older, or beyond the remote part."""
    return st.sampled_from(("start", "start", "zero", "local", "half"))


def recovery_anchors() -> Draw[str]:
    """Draw the name of the offset in the recovery point's checkpoint: up to date, or older."""
    return st.sampled_from(("end", "end", "zero", "active", "local"))


def closings() -> Draw[str]:
    """Draw how a broker ends: by a clean shutdown, or killed."""
    return st.sampled_from(("shutdown", "shutdown", "crash"))


def mostly() -> Draw[bool]:
    """Draw True mostly."""
    return st.sampled_from((True, True, True, False))


def seldom() -> Draw[bool]:
    """Draw False mostly."""
    return st.sampled_from((False, False, False, False, True))
