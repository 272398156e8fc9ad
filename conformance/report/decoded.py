"""What a difference says in the terms of an implementer: states by field, bytes by entry, and the harness's own steps.

Every writer of reports decodes with this; entries are cut as :mod:`kidx.layout` has them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from conformance.operations import State
from conformance.operations.log import LogState
from conformance.operations.segment import IndexState, SegmentState
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX, Layout

_STATES: Final[dict[str, type[Any]]] = {"segment": SegmentState, "log": LogState, "cleaned": LogState}
"""By machine; the machines of one index file have :class:`State`."""
_NESTED: Final[dict[str, type[Any]]] = {"offset_index": IndexState, "time_index": IndexState}
_LAYOUTS: Final = {".index": OFFSET_INDEX, ".timeindex": TIME_INDEX, ".txnindex": ABORTED_TXN}
_OF_MACHINE: Final = {"offset": OFFSET_INDEX, "time": TIME_INDEX, "transaction": ABORTED_TXN}
_ROW: Final = 16
_MARK: Final = "*"


# -- states --------------------------------------------------------------------------------------------------------


def fields_of(machine: str, state: Any) -> dict[str, Any]:
    """The fields of a state as a trace has it, by name; empty if it is none of that machine's.

    A nested state's fields are called as in ``"offset_index.entries"``.
    """
    return dict(_fields(_STATES.get(machine, State), state, ""))


def _fields(kind: type[Any], state: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    names: tuple[str, ...] = kind._fields
    if not isinstance(state, list) or len(state) != len(names):
        return
    for name, value in zip(names, state, strict=True):
        if name in _NESTED and isinstance(value, list):
            yield from _fields(_NESTED[name], value, f"{name}.")
        else:
            yield prefix + name, value


def state_table(machine: str, expected: Any, actual: Any) -> list[str]:
    """Both states, a field a line, those that differ marked; nothing if neither side is a state."""
    mine, theirs = fields_of(machine, expected), fields_of(machine, actual)
    if not mine and not theirs:
        return []
    rows = [("", "field", "expected", "actual")]
    for name in dict.fromkeys((*mine, *theirs)):
        both = _value(mine, name), _value(theirs, name)
        rows.append((_MARK if both[0] != both[1] else "", name, *both))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return [" ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _value(fields: Mapping[str, Any], name: str) -> str:
    return "-" if name not in fields else "none" if fields[name] is None else str(fields[name])


# -- bytes ---------------------------------------------------------------------------------------------------------


def first_differing_entry(machine: str, expected: Any, actual: Any) -> list[str]:
    """The first entry in which two files differ, as a hexdump and decoded, both sides.

    Args:
        machine: whose trace it is; says the format of a file without a name.
        expected: hexadecimal or None for no file; for a directory lists of a name and that.
        actual: the same of the other side.
    """
    for name, mine, theirs in _files(expected, actual):
        layout = _LAYOUTS.get(_suffix(name)) if name else _OF_MACHINE.get(machine)
        lines = _entry(layout, mine, theirs)
        return [f"{name}: {lines[0]}" if name else lines[0], *lines[1:]]
    return []


def _files(expected: Any, actual: Any) -> Iterator[tuple[str, bytes | None, bytes | None]]:
    """Every file that differs: its name, empty if there is only one, and both contents."""
    try:
        if isinstance(expected, list) and isinstance(actual, list):
            mine, theirs = ({str(name): _bytes(data) for name, data in side} for side in (expected, actual))
            yield from ((n, mine.get(n), theirs.get(n)) for n in {**mine, **theirs} if mine.get(n) != theirs.get(n))
        elif expected != actual:
            yield "", _bytes(expected), _bytes(actual)
    except (TypeError, ValueError):
        return  # the names of files, which say what differs themselves


def _bytes(data: Any) -> bytes | None:
    return None if data is None else bytes.fromhex(data)


def _suffix(name: str) -> str:
    return "".join(re.findall(r"\.(?:index|timeindex|txnindex)(?=\.|$)", name)[:1])


def _entry(layout: Layout | None, mine: bytes | None, theirs: bytes | None) -> list[str]:
    if mine is None or theirs is None:
        where = "expected" if mine is None else "there"
        return [f"no file {where}, {len(mine or theirs or b'')} bytes on the other side"]
    pairs = enumerate(zip(mine, theirs, strict=False))
    at = next((place for place, (a, b) in pairs if a != b), min(len(mine), len(theirs)))
    size = _ROW if layout is None else layout.size
    start = at - at % size
    what = f"entry {start // size}" if layout is not None else "row"
    lengths = f"expected {len(mine)} bytes, actual {len(theirs)}"
    sides = (("expected", mine), ("actual", theirs))
    return [
        f"first difference at byte {at}, in the {what} from byte {start} ({lengths})",
        *(f"  {side:8}  {start:08x}  {_row(data[start : start + size], layout)}" for side, data in sides),
    ]


def _row(data: bytes, layout: Layout | None) -> str:
    if not data:
        return "(end of file)"
    if layout is None or len(data) < layout.size:
        return data.hex(" ")
    values = layout.struct.unpack(data)
    cells = (data[field.offset : field.offset + field.size].hex() for field in layout.fields)
    names = (f"{field.name}={value}" for field, value in zip(layout.fields, values, strict=True))
    return f"{' '.join(cells)}  {' '.join(names)}"


# -- steps ---------------------------------------------------------------------------------------------------------


def stands_for(step: str) -> str:
    """What a step of the harness that the protocol does not have stands for, in words; empty for every other step.

    Args:
        step: as an event has it, such as ``"pad_file(count=8, byte=0)"``.
    """
    matched = re.fullmatch(r"(\w+)\((.*)\)", step, re.DOTALL)
    if matched is None or (matched[1] not in _WORDS and not matched[1].startswith("damage_")):
        return ""
    try:
        call = ast.parse(step, mode="eval").body
        arguments = {one.arg: ast.literal_eval(one.value) for one in call.keywords}  # type: ignore[attr-defined]
        if matched[1] in _WORDS:
            return _WORDS[matched[1]](*arguments.values())
        file = arguments.get("path", arguments.get("suffix"))
        return f"{file}: {_WORDS[arguments['how']](*arguments['arguments'])}"
    except (SyntaxError, ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError):
        return ""  # written by hand: the step speaks for itself


def _row_of(name: str, first: str, second: str) -> Callable[..., str]:
    def words(one: int, two: int, one_step: int, two_step: int, count: int) -> str:
        last = max(count - 1, 0)
        return (
            f"{count} times {name}: {first} from {one} to {one + last * one_step} by {one_step}, "
            f"{second} from {two} to {two + last * two_step} by {two_step}"
        )

    return words


_WORDS: Final[dict[str, Callable[..., str]]] = {
    "bulk_append": _row_of("append", "offset", "position"),
    "bulk_maybe_append": _row_of("maybe_append", "timestamp", "offset"),
    "crash": lambda: "the process is killed: the file stays as it is, untrimmed",
    "flip_bit": lambda position, bit: f"bit {bit} of byte {position} (modulo the length) of the closed file is flipped",
    "cut_file": lambda length: f"the closed file is cut to {length} bytes, if it is longer",
    "pad_file": lambda count, byte: f"{count} bytes 0x{byte:02x} are added at the end of the closed file",
    "zero_range": lambda start, end: f"bytes {start} to {end} (modulo the length) of the closed file become zero",
    "swap_ranges": lambda first, second, size: f"slots {first} and {second} of {size} bytes of the closed file change",
    "write_file": lambda content: f"the closed file becomes these {len(content) // 2} bytes",
    "remove_file": lambda: "the closed file is removed",
}
