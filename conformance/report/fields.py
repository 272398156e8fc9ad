"""States and outcomes as text, with the names of their fields, expected and actual values side by side.

In an event, a state and the value of an outcome are nested lists of numbers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from conformance.operations import State, every_effect
from conformance.operations.log import LogState
from conformance.operations.op import FOUND, Effect, Shape
from conformance.operations.operation import OPS
from conformance.operations.segment import IndexState, SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MARK: Final = "*"
"""Mark in front of a difference."""
_IN_ONE_LINE: Final = 3
"""Maximum number of fields that are shown on one line."""
_IN_FULL: Final = 8
"""Maximum number of fields that are shown even if they are equal."""

Names = Any
"""Names of the parts of a value.

A dictionary has the names of a list's elements, in order, and the names of the parts of each. A list of one item has
the names of the parts of every element. A value with None has no parts. A function returns the names for a value.
"""


def _named(*names: str) -> dict[str, Names]:
    return dict.fromkeys(names)


_PAIR: Final = {"time": _named("timestamp", "offset")}
_POSITION: Final = _named("offset", "position")
_TRANSACTION: Final = _named("producer_id", "first_offset", "last_offset", "last_stable_offset")
_FOUND: Final = _named(*FOUND)
_LAST_BATCH: Final = _named("last_sequence", "last_offset", "offset_delta", "timestamp")
_PRODUCER: Final = {
    **_named("id", "epoch", "coordinator_epoch", "timestamp", "transaction_from"),
    "batches": [_LAST_BATCH],
}


def _last(value: Any) -> Names:
    """Return the names of the last entry's fields: a time index has two, an offset index one."""
    return _named("timestamp", "offset") if isinstance(value, list) and len(value) == 2 else _named("offset")


_INDEX: Final = {**_named(*IndexState._fields), "last": _last}
_LOG: Final = {**_named(*LogState._fields), "segments": [_named("base_offset", "size")], "producers": [_PRODUCER]}
_STATES: Final[dict[str, dict[str, Names]]] = {
    "segment": {**_named(*SegmentState._fields), "offset_index": _INDEX, "time_index": _INDEX},
    "log": _LOG,
    "cleaned": _LOG,
}
"""Names by machine; the machines of one index file have :class:`State`."""
_NAMES_OF_SHAPE: Final[dict[Shape, Names]] = {
    Shape.MAYBE_PAIR: _POSITION,
    Shape.TRANSACTIONS: [_TRANSACTION],
    Shape.COLLECTED: {"aborted": [_TRANSACTION], "complete": None},
}
"""Names by the shape of an operation's value; other operations declare the names of their fields."""
_SHORTER: Final = frozenset({"read_log"})
"""Operations whose values have fewer fields in the events of earlier versions."""
_TARGET_NAMES: Final = {
    -1: "latest",
    -2: "earliest",
    -3: "max_timestamp",
    -4: "earliest_local",
    -5: "latest_tiered",
    -6: "earliest_pending_upload",
}
"""Kafka's names of the special timestamps of ListOffsets."""


# -- names ---------------------------------------------------------------------------------------------------------


def operation_of(step: str) -> str:
    """Return the name of the operation in an event's step."""
    return step.partition("(")[0]


def is_closed(steps: Sequence[str]) -> bool:
    """Return True if these steps opened an index, segment or log and closed it again."""
    effects = every_effect()
    known = [effects.get(operation_of(step)) for step in steps]
    changes = [effect for effect in known if effect in (Effect.OPENS, Effect.RELEASES)]
    return bool(changes) and changes[-1] is Effect.RELEASES


def fields_of_state(machine: str, state: Any) -> dict[str, Any]:
    """Return the fields of a state by name; empty if the value is not a state of that machine."""
    names = _STATES.get(machine) or {**_named(*State._fields), "last": _last}
    if not isinstance(state, list) or len(state) != len(names):
        return {}
    return dict(_flat(names, state, ""))


def fields_of_value(machine: str, step: str, value: Any) -> dict[str, Any]:
    """Return the fields of an outcome's value by name; empty for a value without parts."""
    operation = operation_of(step)
    op = OPS.get(operation)
    if op is None:
        return {}
    names = _NAMES_OF_SHAPE.get(op.gives) or _named(*op.fields)
    if op.gives is Shape.PAIR:
        names = _PAIR.get(machine, _POSITION)
    if not names or not isinstance(value, list):
        return {}
    if op.gives is Shape.ANSWERS:
        return _answers(_targets(step), value)
    if operation in _SHORTER and len(value) < len(names):
        names = dict(list(names.items())[: len(value)])
    return dict(_flat(names, value, ""))


def _answers(targets: list[int], answers: list[Any]) -> dict[str, Any]:
    """Return the results for the targets of ``list_offsets``."""
    found: dict[str, Any] = {}
    for number, answer in enumerate(answers):
        target = targets[number] if number < len(targets) else None
        name = f"target {number}" if target is None else _TARGET_NAMES.get(target, str(target))
        found |= _flat(_FOUND, answer, f"{name}.")
    return found


def _targets(step: str) -> list[int]:
    matched = re.search(r"targets=[\[(]([-\d, ]*)[\])]", step)
    return [int(each) for each in re.findall(r"-?\d{1,19}", matched[1])] if matched else []


def _flat(names: Names, value: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    if callable(names):
        names = names(value)
    if isinstance(names, dict) and isinstance(value, list) and len(value) == len(names):
        for (name, below), each in zip(names.items(), value, strict=True):
            yield from _flat(below, each, f"{prefix}{name}.")
    elif isinstance(names, list) and isinstance(value, list):
        yield f"{prefix}count", len(value)
        for number, each in enumerate(value):
            yield from _flat(names[0], each, f"{prefix.removesuffix('.')}[{number}].")
    else:
        yield prefix.removesuffix("."), value


# -- two sides -----------------------------------------------------------------------------------------------------


def differing(expected: dict[str, Any], actual: dict[str, Any]) -> list[str]:
    """Return the names of the differing fields."""
    both = dict.fromkeys((*expected, *actual))
    return [name for name in both if _shown(expected, name) != _shown(actual, name)]


def on_two_lines(expected: dict[str, Any], actual: dict[str, Any]) -> tuple[str, str] | None:
    """Return one line for each side, with a mark before differing fields; None if the sides have too many fields."""
    if expected.keys() != actual.keys() or len(expected) > _IN_ONE_LINE:
        return None
    wrong = differing(expected, actual)
    cells = [[f"{name}={_shown(side, name)}" for name in expected] for side in (expected, actual)]
    widths = [max(map(len, pair)) for pair in zip(*cells, strict=True)]
    marks = [MARK if name in wrong else " " for name in expected]
    one, other = (
        " ".join(mark + cell.ljust(width) for mark, cell, width in zip(marks, side, widths, strict=True)).rstrip()
        for side in cells
    )
    return one, other


def in_one_line(fields: dict[str, Any]) -> str:
    """Return the fields of one side as a line."""
    return " ".join(f"{name}={_shown(fields, name)}" for name in fields)


def as_table(expected: dict[str, Any], actual: dict[str, Any], *, whole: bool = False) -> list[str]:
    """Return both sides as a table with one field per line and a mark before differing fields.

    Args:
        expected: the expected fields.
        actual: the actual fields.
        whole: True to show equal fields if there are few fields. Otherwise equal fields are only counted.
    """
    wrong = set(differing(expected, actual))
    names = list(dict.fromkeys((*expected, *actual)))
    shown = names if whole and len(names) <= _IN_FULL else [name for name in names if name in wrong]
    rows = [("", "field", "expected", "actual")]
    rows += [(MARK if name in wrong else "", name, _shown(expected, name), _shown(actual, name)) for name in shown]
    left = len(names) - len(shown)
    return [*_aligned(rows), *([f"  ({left} other field{'s are' if left > 1 else ' is'} equal)"] if left else [])]


def _aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    rows = list(rows)
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return [" ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _shown(fields: dict[str, Any], name: str) -> str:
    if name not in fields:
        return "-"
    value = fields[name]
    if name == "crc32c_of_all" and isinstance(value, int):
        return f"0x{value:08x}"
    return "nothing" if value is None else str(value)
