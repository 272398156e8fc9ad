"""Explanations of steps that the harness itself executes, such as the corruption of a file."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Final

_LISTED: Final = 3
"""Maximum number of operations that are shown one by one; more are shown as a range."""
_WRAPS: Final = " (a position past the end of the file wraps around: modulo the file length + 1)"


def describe_harness_step(step: str) -> str:
    """Return an explanation of a step that the harness itself executes; empty for a step of the implementation.

    Args:
        step: a step as in an event, such as ``"pad_file(count=8, byte=0)"``.
    """
    matched = re.fullmatch(r"(\w+)\((.*)\)", step, re.DOTALL)
    if matched is None or (matched[1] not in _EXPLANATIONS and not matched[1].startswith("damage_")):
        return ""
    try:
        call = ast.parse(step, mode="eval").body
        arguments = {one.arg: ast.literal_eval(one.value) for one in call.keywords}  # type: ignore[attr-defined]
        if matched[1] in _EXPLANATIONS:
            return _EXPLANATIONS[matched[1]](*arguments.values())
        file = arguments.get("path", arguments.get("suffix"))
        return f"{file}: {_EXPLANATIONS[arguments['how']](*arguments['arguments'])}"
    except (SyntaxError, ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError):
        return ""  # a hand-written trace may have any arguments


def _bulk(name: str, first: str, second: str) -> Callable[..., str]:
    """Return a function that explains a bulk operation as calls of ``name`` with two arguments."""

    def words(one: int, two: int, one_step: int, two_step: int, count: int) -> str:
        if count <= _LISTED:
            pairs = ((one + number * one_step, two + number * two_step) for number in range(count))
            return ", ".join(f"{name}({first}={a}, {second}={b})" for a, b in pairs)
        row = f"{_range(first, one, one_step, count)}, {_range(second, two, two_step, count)}"
        return f"{count} times {name}: {row}"

    return words


def _range(name: str, start: int, step: int, count: int) -> str:
    return f"{name} from {start} to {start + (count - 1) * step} by {step}" if step else f"{name} {start}"


def _zeroed(start: int, end: int) -> str:
    """Describe a range of zeroed bytes, whose ends may be in any order."""
    low, high = sorted((start, end))
    if low < 0:
        return f"the bytes between {start} and {end} of the closed file become zero{_WRAPS}"
    if low == high:
        return "no byte of the closed file changes"
    return f"bytes {low} to {high - 1} of the closed file become zero{_WRAPS}"


_EXPLANATIONS: Final[dict[str, Callable[..., str]]] = {
    "bulk_append": _bulk("append", "offset", "position"),
    "bulk_maybe_append": _bulk("maybe_append", "timestamp", "offset"),
    "crash": lambda: "the process is killed: the file remains untrimmed",
    "flip_bit": lambda position, bit: (
        f"bit {bit} of byte {position} of the closed file is flipped"
        " (a position past the end of the file wraps around: modulo the file length)"
    ),
    "cut_file": lambda length: f"the closed file is cut to {length} bytes, if it is longer",
    "pad_file": lambda count, byte: f"{count} bytes 0x{byte:02x} are added at the end of the closed file",
    "zero_range": _zeroed,
    "swap_ranges": lambda first, second, size: (
        f"slots {first} and {second}, {size} bytes each, of the closed file are exchanged (slot numbers wrap around)"
    ),
    "write_file": lambda content: f"the closed file becomes these {len(content) // 2} bytes",
    "remove_file": lambda: "the closed file is removed",
}
