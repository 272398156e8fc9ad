"""File of an interleaving: operations of two threads, the points of their switches, and the results.

A point is an access to a field, a buffer or a file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.experiments.interleave.experiment import Result, Schedule
from conformance.experiments.interleave.scenarios import KINDS, Case

if TYPE_CHECKING:
    from conformance.experiments.interleave.shrinking import Shown
    from conformance.operations import Json

FORMAT: Final = "kidx-interleaving"
VERSION: Final = 1
_TEXT_FIELDS: Final = ("release", "machine", "first", "others", "where")


def document(shown: Shown, release: str, clause: str | None) -> Json:
    """Return the content of the file for an interleaving that is not atomic in a release."""
    case, violation = shown.case, shown.violation
    return {
        "format": FORMAT,
        "version": VERSION,
        "release": release,
        "clause": clause,
        "machine": case.kind,
        "setup": list(case.setup),
        "first": case.first,
        "others": case.others,
        "stop": violation.schedule.stop,
        "back": violation.schedule.back,
        "where": violation.where,
        "result": violation.seen._asdict(),
        "orders": [order._asdict() for order in sorted(shown.orders)],
        "points": list(shown.points),
    }


def load(path: Path) -> Json:
    """Return the content of a file.

    Raises:
        ToolError: the file cannot be read, or is no interleaving.
    """
    try:
        content: Any = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ToolError(f"cannot read {path}: not JSON: {error}") from error
    if not isinstance(content, dict) or (content.get("format"), content.get("version")) != (FORMAT, VERSION):
        raise ToolError(f"cannot read {path}: its format is not {FORMAT}, version {VERSION}")
    valid = (
        all(isinstance(content.get(name), str) for name in _TEXT_FIELDS)
        and content["machine"] in KINDS
        and isinstance(content.get("setup"), list)
        and all(isinstance(each, str) for each in content["setup"])
        and all(type(content.get(name)) is int for name in ("stop", "back"))
        and isinstance(content.get("result"), dict)
        and set(content["result"]) == set(Result._fields)
    )
    if not valid:
        raise ToolError(f"cannot read {path}: a field is missing or has a value of another type")
    return content


def case_of(content: Json) -> tuple[Case, Schedule]:
    """Return the operations and the schedule of a file."""
    case = Case(content["machine"], tuple(content["setup"]), content["first"], content["others"])
    return case, Schedule(content["stop"], content["back"])


def readable(content: Json) -> list[str]:
    """Return the interleaving as a table of two columns, one for each thread, around the interruption."""
    points = [point.partition(" ") for point in content["points"]]
    begin = next((number for number, point in enumerate(points) if point[0] == "1"), len(points))
    end = max((number + 1 for number, point in enumerate(points) if point[0] == "1"), default=begin)
    rows = [(f"{content['first']}", f"{content['others']}")]
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
