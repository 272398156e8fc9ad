"""``run --update-expectations``: what would have to change in the expectations, as a diff and never as a change.

A proposed entry has no reason and no link yet, and without them no expectation is read: a person writes them, or leaves
the divergence to be mended.
"""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Final

from conformance.expectations import Expectation, expectation_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from conformance.events import Diverged

_Key = tuple[str, str, tuple[str, str]]
"""Implementation, machine, and the clause or shape."""
_ENTRY: Final = re.compile(r"^\[\[\s*expectation\s*\]\]", re.MULTILINE)


def propose(directory: Path | None, stale: Iterable[Expectation], divergences: Sequence[Diverged]) -> str:
    """A unified diff; empty if nothing would have to change.

    Args:
        directory: where the expectations are kept; None for those of the package.
        stale: entries that nothing meets any more: they go.
        divergences: differences that no entry excuses: each gets one, still without reason and link.
    """
    texts = {file.name: file.read_text("utf-8") for file in expectation_files(directory)}
    after = dict(texts)
    for name, text in texts.items():
        paid = {number for origin, number in map(_origin, stale) if origin == name}
        after[name] = _without(text, paid)
    for name, entries in _entries(divergences).items():
        after[name] = "\n".join(filter(None, (after.get(name, "").rstrip("\n"), *entries))) + "\n"
    lines: list[str] = []
    for name in sorted(after):
        path = name if directory is None else str(directory / name)
        before = texts.get(name, "").splitlines(keepends=True)
        source = path if name in texts else "/dev/null"
        lines += difflib.unified_diff(before, after[name].splitlines(keepends=True), source, path)
    return "".join(lines)


def _origin(expectation: Expectation) -> tuple[str, int]:
    """File and number of an entry, as :func:`read_expectations` names it."""
    name, _, number = expectation.origin.rpartition(", entry ")
    return name, int(number)


def _without(text: str, numbers: set[int]) -> str:
    """The text without some of its entries; a comment above an entry goes with it."""
    if not numbers:
        return text
    starts = [_with_comment(text, match.start()) for match in _ENTRY.finditer(text)]
    ends = [*starts[1:], len(text)]
    kept = [text[: starts[0]]]
    kept += [text[a:b] for number, (a, b) in enumerate(zip(starts, ends, strict=True), 1) if number not in numbers]
    return "".join(kept)


def _with_comment(text: str, start: int) -> int:
    """Where the comment lines directly above a position begin."""
    while start and (line := text[: start - 1].rpartition("\n")[2]).startswith("#"):
        start -= len(line) + 1
    return start


def _entries(divergences: Sequence[Diverged]) -> dict[str, list[str]]:
    """For each file, the entries to be added: divergences of one kind in several releases are one."""
    releases: dict[_Key, list[str]] = {}
    examples: dict[_Key, Diverged] = {}
    for event in divergences:
        about = _about(event)
        if event.implementation and about is not None:
            for machine in event.machines or (event.machine,):
                key = (event.implementation, machine, about)
                releases.setdefault(key, []).extend(reversed(event.releases or (event.failure["release"],)))
                examples.setdefault(key, event)
    found: dict[str, list[str]] = {}
    for (implementation, machine, (kind, name)), where in releases.items():
        event = examples[implementation, machine, (kind, name)]
        entry = {
            kind: name,
            "machine": machine,
            "implementation": re.sub(r"([*?\[])", r"[\1]", implementation),
            "releases": ", ".join(dict.fromkeys(where)),
            "reason": "",
            "link": "",
        }
        steps = "; ".join(event.steps)
        lines = [f"\n# {steps}: {', '.join(event.failure['aspects'])} of {event.failure['party']}", "[[expectation]]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
        found.setdefault(_file_name(implementation), []).append("\n".join(lines))
    return found


def _about(event: Diverged) -> tuple[str, str] | None:
    """What an entry names: the clause that fails, or the shape where no clause speaks of the step."""
    if event.requirements:
        return "clause", event.clause or _clause(event)
    # A program that crashes, is late or talks nonsense is never expected.
    return ("shape", event.shape) if event.shape and not event.shape.endswith(": failure") else None


def _clause(event: Diverged) -> str:
    """The narrowest of the clauses at stake: the last MUST, which is the operation's own, else the last."""
    musts = [clause for clause, level, _ in event.requirements if level == "MUST"]
    return (musts or [clause for clause, _, _ in event.requirements])[-1]


def _file_name(implementation: str) -> str:
    return (re.sub(r"[^a-z0-9]+", "-", implementation.rpartition("/")[2].lower()).strip("-") or "mine") + ".toml"
