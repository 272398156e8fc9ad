"""File of an interleaving: operations of two threads, the points of their switches, and the results.

A point is an access to a field, a buffer or a file.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from conformance.studies.interleave.interrupter import Result, Schedule
from conformance.studies.interleave.scenarios import KINDS, Case


class Interleaving(msgspec.Struct, frozen=True, kw_only=True):
    """Interleaving that is not atomic in a release; see :class:`Case` and :class:`Schedule`.

    Attributes:
        clause: clause that states it; None if none does.
        machine: kind of the object on which the operations are called.
        where: point at which the first operation was interrupted.
        result: results of all operations, and the final state.
        orders: results of the sequential orders.
        points: accesses to fields, buffers and files in their order, each as the number of its thread, a blank, and
            its name.
    """

    format: Literal["kidx-interleaving"] = "kidx-interleaving"
    version: Literal[1] = 1
    release: str
    clause: str | None
    machine: str
    setup: tuple[str, ...]
    first: str
    others: str
    stop: int
    back: int
    where: str
    result: Result
    orders: tuple[Result, ...]
    points: tuple[str, ...]

    def __post_init__(self) -> None:
        """Reject a machine that does not exist.

        Raises:
            ValueError: it does not exist.
        """
        if self.machine not in KINDS:
            raise ValueError(f"unknown machine {self.machine!r}")


def case_of(content: Interleaving) -> tuple[Case, Schedule]:
    """Return the operations and the schedule of a file."""
    case = Case(content.machine, content.setup, content.first, content.others)
    return case, Schedule(content.stop, content.back)


def readable(content: Interleaving) -> list[str]:
    """Return the interleaving as a table of two columns, one for each thread, around the interruption."""
    points = [point.partition(" ") for point in content.points]
    begin = next((number for number, point in enumerate(points) if point[0] == "1"), len(points))
    end = max((number + 1 for number, point in enumerate(points) if point[0] == "1"), default=begin)
    rows = [(f"{content.first}", f"{content.others}")]
    rows += _side(points[max(0, begin - _SHOWN_POINTS) : begin - 1], cut=begin > _SHOWN_POINTS + 1)
    if begin:
        rows.append((f"    stops before {points[begin - 1][2]}", ""))
    middle = [point for point in points[begin:end] if point[0] == "1"]
    writes = [point for point in middle if _WRITES.intersection(point[2].replace(".", " ").split())]
    rows += _side(writes or middle[:_SHOWN_POINTS], cut=False)
    rows.append(("    continues", ""))
    rows += _side(points[end : end + _SHOWN_POINTS], cut=False)
    width = max(len(left) for left, _ in rows)
    return [f"{left:<{width}}  | {right}".rstrip() for left, right in rows]


_SHOWN_POINTS: Final = 4
"""Maximum number of points that are shown before and after the switches."""
_WRITES: Final = frozenset({"write", "putInt", "putLong", "set", "getAndAdd", "unmap", "truncate", "close", "delete"})


def _side(points: list[tuple[str, str, str]], *, cut: bool) -> list[tuple[str, str]]:
    """Return a row for each point, in the column of its thread; ``cut`` marks that earlier points are missing."""
    rows = [("", f"    {at}") if thread == "1" else (f"    {at}", "") for thread, _, at in points]
    return [("    ...", ""), *rows] if cut else rows
