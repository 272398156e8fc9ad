"""Text of one divergence: requirement, expected, actual, steps, and the command that replays it.

Steps that the harness itself executes, such as the corruption of a file, are explained.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, Final

from conformance.report.fields import (
    as_table,
    differing,
    fields_of_state,
    fields_of_value,
    in_one_line,
    is_closed,
    on_two_lines,
)
from conformance.report.file_entries import first_difference
from kidx.printable import printable_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.events import Diverged

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


_SHOWN_BYTES: Final = 48
_HEXADECIMAL: Final = re.compile("[0-9a-f]*")


_MUST_RETURN: Final = "every operation returns a result or an error: a crash, a hang or an invalid reply is neither"


def format_divergence(event: Diverged) -> str:
    """Return the text that a run prints for a divergence; it ends with the replay command."""
    failure = event.failure
    against = "the abstract model" if failure["against"] == "model" else "kidx"
    lines = [
        f"{failure['participant']} diverges from {against} ({event.machine} machine, release {failure['release']})",
        "",
    ]
    lines += _requirement(event)
    steps, last = list(event.steps), failure["step"]
    executed = steps[: last + 1]
    lines += [
        f"  {line}"
        for line in sides(event.machine, executed, failure["aspects"], failure["expected"], failure["actual"])
    ]
    lines += ["", "  steps"]
    for number, step in enumerate(steps):
        mark = ">" if number == last else " "
        lines.append(f"  {mark} {number + 1:3}  {step}")
        if explanation := describe_harness_step(step):
            lines.append(f"         = {explanation}")
    lines += ["", *(f"  {label:13}{text}" for label, text in _places(event))]
    for related in event.related:
        lines += _related(related)
    if event.shrinking and event.shrinking != "minimal":
        lines.append(f"  shrinking    {event.shrinking}")
    lines += [f"  {label:13}{text}" for label, text in _replay(event)]
    return "\n".join(indent_continuation_lines(lines, indent=" " * 15))


def _requirement(event: Diverged) -> Iterator[str]:
    """Yield the line of the contradicted clause, and a line with the other clauses that the step exercises.

    If the implementation failed and no MUST clause applies, the first line is the requirement to return a result.
    """
    if event.signature.endswith(": failure") and all(level != "MUST" for _, level, _ in event.requirements):
        yield f"  requirement  {_MUST_RETURN}"
        yield from _implicated(event.requirements)
        return
    if not event.requirements:
        yield "  requirement  (not covered by any clause)"
        return
    first, *others = contradicted_first(event)
    clause, level, statement = first
    yield f"  requirement  {clause} ({level}): {statement}"
    yield from _implicated(others)


def contradicted_first(event: Diverged) -> list[tuple[str, str, str]]:
    """Return the requirements of a divergence; the report prints the first in full.

    MUST clauses come before OBSERVED clauses. No MUST clause covers the text of an error, so if only a text differs,
    the failing clause comes first.
    """
    only_text = list(event.failure["aspects"]) == ["text"]
    ranks = {"MUST": 0, "API": 1, "OBSERVED": 2}
    return sorted(
        event.requirements, key=lambda each: (not only_text and ranks.get(each[1], 2), each[0] != event.clause)
    )


def _implicated(requirements: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    if requirements:
        named = ", ".join(f"{clause} ({level})" for clause, level, _ in requirements)
        yield f"  implicated   also {named}; `conformance clauses ID` explains them"


def indent_continuation_lines(lines: Iterable[str], *, indent: str) -> Iterator[str]:
    """Yield the lines, sanitized, with an indent after each line break in them.

    A line may contain a program's output, in which a line may look like a verdict or like the next step.
    """
    for line in lines:
        first, *more = printable_lines(line).split("\n")
        yield first
        yield from (f"{indent}{each}" for each in more)


def _places(event: Diverged) -> Iterator[tuple[str, str]]:
    """Yield label and text of the divergence's releases and of its machines, if there are several."""
    if len(event.releases) > 1:
        yield "releases", f"{', '.join(event.releases)} ({len(event.releases)})"
    if len(event.machines) > 1:
        yield "machines", ", ".join(event.machines)


def _replay(event: Diverged) -> Iterator[tuple[str, str]]:
    """Yield label and text of the trace, of the replay command, and of the note about a problem in reporting."""
    if event.trace or event.replay:
        yield "trace", event.trace
        yield "replay", event.replay
    if event.note:
        yield "note", event.note


def _related(related: dict[str, Any]) -> Iterator[str]:
    """Yield two lines about a related divergence."""
    clause = f" ({related['clause']})" if related["clause"] else ""
    yield f"  related      {related['signature']}{clause}, {related['occurrences']} times: {related['reason']}"
    yield f"               {related['trace']}"


def sides(machine: str, steps: Sequence[str], aspects: Sequence[str], expected: Any, actual: Any) -> list[str]:
    """Return lines that show the differing aspect and both values, field by field, with differing fields marked.

    Args:
        steps: steps up to the divergence.
        aspects: what differs (``outcome``, ``text``, ``state`` or ``bytes``); both values are about the first one.
        expected: the expected value, as in an event.
        actual: the actual value, as in an event.
    """
    aspect, others = aspects[0], [f"also in {', '.join(aspects[1:])}"] * bool(aspects[1:])
    if aspect == "state":
        what, lines = _states(machine, steps, expected, actual)
    elif aspect == "outcome":
        what, lines = _outcomes(machine, steps[-1] if steps else "", expected, actual)
    elif aspect == "bytes":
        what, lines = _contents(machine, expected, actual)
    else:
        what, lines = "", _both_sides(format_value(expected), format_value(actual))
    text = "; ".join([f"{aspect}: {what}" if what else aspect, *others])
    return [f"differs in   {text}", *lines]


def _both_sides(expected: str, actual: str) -> list[str]:
    return [f"expected     {expected}", f"actual       {actual}"]


def _states(machine: str, steps: Sequence[str], expected: Any, actual: Any) -> tuple[str, list[str]]:
    expected_fields, actual_fields = fields_of_state(machine, expected), fields_of_state(machine, actual)
    if not expected_fields and not actual_fields:
        return "", _both_sides(format_value(expected), format_value(actual))
    closed = is_closed(steps)
    what = (
        ", ".join(differing(expected_fields, actual_fields))
        if expected_fields and actual_fields
        else "one side is closed"
    )
    if expected_fields and actual_fields and closed:
        what += " (after closing, when the state need not be reported)"
    missing = [
        f"{side:12} {'closed' if closed else 'not open'}: no state"
        for side, value in (("expected", expected), ("actual", actual))
        if value is None
    ]
    return what, [*missing, *(f"  {row}" for row in as_table(expected_fields, actual_fields))]


def _outcomes(machine: str, step: str, expected: Any, actual: Any) -> tuple[str, list[str]]:
    values = format_outcome(expected), format_outcome(actual)
    expected_fields, actual_fields = (fields_of_value(machine, step, value) for value in values)
    if expected_fields and actual_fields:
        what = ", ".join(differing(expected_fields, actual_fields))
        if lines := on_two_lines(expected_fields, actual_fields):
            return what, _both_sides(*lines)
        return what, [f"  {row}" for row in as_table(expected_fields, actual_fields, whole=True)]
    shown = (
        in_one_line(side) or format_value(value)
        for side, value in zip((expected_fields, actual_fields), values, strict=True)
    )
    return "", _both_sides(*shown)


def _contents(machine: str, expected: Any, actual: Any) -> tuple[str, list[str]]:
    found = first_difference(machine, expected, actual)
    if found is None:
        return "", _both_sides(format_value(expected), format_value(actual))
    more = [f"also in      {', '.join(found.more)}"] * bool(found.more)
    return found.title, [*_both_sides(found.expected, found.actual), *more]


def format_outcome(outcome: Any) -> Any:
    """Return the value of an outcome, or the kind and the text of its error.

    An outcome of a trace is a list of error kind, value, and possibly error text.
    """
    if not isinstance(outcome, list) or len(outcome) < 2:
        return outcome
    error, value, *text = outcome
    if error is None:
        return value
    return f"{error}: {text[0]}" if text and text[0] else error


def format_value(value: Any) -> str:
    """Return an observed value as text; the content of a long file is cut in the middle."""
    if value is None:
        return "nothing"
    if isinstance(value, str) and len(value) > 2 * _SHOWN_BYTES and _HEXADECIMAL.fullmatch(value):
        return f"{value[:_SHOWN_BYTES]}…{value[-_SHOWN_BYTES:]} ({len(value) // 2} bytes)"
    return str(value)
