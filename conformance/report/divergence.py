"""One difference in words: requirement, expected, actual, the steps, and the command that replays it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from conformance.report.decoded import first_differing_entry, stands_for, state_table
from kidx.printable import printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.events import Diverged

_SHOWN_BYTES: Final = 48
_HEXADECIMAL: Final = re.compile("[0-9a-f]*")


def describe(event: Diverged) -> str:
    """The text that a run prints for a difference; ends with the replay command."""
    failure = event.failure
    against = "the abstract model" if failure["against"] == "model" else "kidx"
    lines = [f"{failure['party']} diverges from {against} ({event.machine} machine, release {failure['release']})", ""]
    lines += [f"  {label:13}{said}" for label, said in _places(event)]
    for clause, level, statement in event.requirements:
        lines.append(f"  requirement  {clause} ({level}): {statement}")
    if not event.requirements:
        lines.append("  requirement  (no clause speaks of this step: a finding)")
    expected, actual = failure["expected"], failure["actual"]
    if failure["aspects"][0] == "bytes" and isinstance(expected, str) and isinstance(actual, str):
        lines.append(
            f"  differs in   {', '.join(failure['aspects'])}, first at byte {_first_difference(expected, actual)}"
        )
    else:
        lines.append(f"  differs in   {', '.join(failure['aspects'])}")
    lines += _sides(event.machine, failure["aspects"][0], expected, actual)
    lines += ["", "  steps"]
    last = failure["step"]
    for number, step in enumerate(event.steps):
        mark = ">" if number == last else " "
        lines.append(f"  {mark} {number + 1:3}  {step}")
        if words := stands_for(step):
            lines.append(f"         = {words}")
    for sight in event.also:
        lines += ["", *_also(sight)]
    if event.shrinking and event.shrinking != "minimal":
        lines += ["", f"  shrinking    {event.shrinking}"]
    lines += ["", f"  trace        {event.trace}", f"  replay       {event.replay}"]
    return "\n".join(on_lines_of_their_own(lines, indent=" " * 15))


def on_lines_of_their_own(lines: Iterable[str], *, indent: str) -> Iterator[str]:
    """The lines, fit to be shown; what one of them brings along after a line break is set in.

    A program's last words may be anything, a line that looks like a verdict or like the next step too.
    """
    for line in lines:
        first, *more = printable_lines(line).split("\n")
        yield first
        yield from (f"{indent}{each}" for each in more)


def _places(event: Diverged) -> Iterator[tuple[str, str]]:
    """Where else it shows, if it does."""
    if len(event.releases) > 1:
        yield "releases", f"{', '.join(event.releases)} ({len(event.releases)})"
    if len(event.machines) > 1:
        yield "machines", ", ".join(event.machines)


def _also(sight: dict[str, Any]) -> Iterator[str]:
    """Another sight of the difference, in two lines."""
    clause = f" ({sight['clause']})" if sight["clause"] else ""
    yield f"  also seen    {sight['shape']}{clause}, {sight['times']} times: {sight['because']}"
    yield f"               {sight['trace']}"


def _sides(machine: str, aspect: str, expected: Any, actual: Any) -> list[str]:
    """What both sides say: a state field by field, of files the first entry that differs."""
    if aspect == "state" and (table := state_table(machine, expected, actual)):
        missing = [side for side, value in (("expected", expected), ("actual", actual)) if value is None]
        return [*(f"  {side:12} no state: nothing is open" for side in missing), *(f"    {row}" for row in table)]
    if aspect == "outcome":
        expected, actual = in_words(expected), in_words(actual)
    lines = [f"  expected     {show(expected)}", f"  actual       {show(actual)}"]
    if aspect == "bytes":
        lines += [f"  {line}" for line in first_differing_entry(machine, expected, actual)]
    return lines


def in_words(outcome: Any) -> Any:
    """An outcome as a trace has it (error kind, value, perhaps a text): the kind and the text, or the value."""
    if not isinstance(outcome, list) or len(outcome) < 2:
        return outcome
    error, value, *text = outcome
    if error is None:
        return value
    return f"{error}: {text[0]}" if text and text[0] else error


def show(value: Any) -> str:
    """A value of an observation, short: long files are cut in the middle, and words are not."""
    if value is None:
        return "nothing"
    if isinstance(value, str) and len(value) > 2 * _SHOWN_BYTES and _HEXADECIMAL.fullmatch(value):
        return f"{value[:_SHOWN_BYTES]}…{value[-_SHOWN_BYTES:]} ({len(value) // 2} bytes)"
    return str(value)


def _first_difference(expected: str, actual: str) -> int:
    """Index of the first byte in which two hexadecimal strings differ."""
    pairs = zip(expected, actual, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(expected), len(actual))) // 2
