"""``run --suggest-expectations``: changes of the files of expectations (known divergences) as a diff.

The diff removes stale entries and adds an entry for each divergence that no entry matches. No file is changed.
``git apply`` accepts the diff in the directory in which the run was started.

A proposed entry has neither a reason nor a link, and is rejected without them. The user adds them, or fixes the
divergence instead.
"""

from __future__ import annotations

import difflib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.expectations import Expectation, expectation_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.events import Diverged

_Key = tuple[str, str, tuple[str, str]]
"""Implementation, machine, and the kind (``clause`` or ``signature``) and text of what the entry names."""
_ENTRY: Final = re.compile(r"^\[\[\s*expectation\s*\]\]", re.MULTILINE)


def propose(directory: Path | None, stale: Iterable[Expectation], divergences: Sequence[Diverged]) -> str:
    """Return a unified diff; empty if nothing has to change.

    Args:
        directory: directory of the expectations; the package's files if None.
        stale: entries to remove, because no divergence matches them.
        divergences: divergences that no entry matches. An entry without reason and link is added for each.
    """
    texts = {file.name: file.read_text("utf-8") for file in expectation_files(directory)}
    after = dict(texts)
    for name, text in texts.items():
        removed = {number for origin, number in map(_origin, stale) if origin == name}
        after[name] = _without(text, removed)
    for name, entries in _entries(divergences).items():
        after[name] = "\n".join(filter(None, (after.get(name, "").rstrip("\n"), *entries))) + "\n"
    lines: list[str] = []
    for name in sorted(after):
        path = name if directory is None else _from_here(directory / name)
        before = texts.get(name, "").splitlines(keepends=True)
        source = f"a/{path}" if name in texts else "/dev/null"
        lines += difflib.unified_diff(before, after[name].splitlines(keepends=True), source, f"b/{path}")
    return "".join(lines)


def _from_here(path: Path) -> str:
    """Return a path as in a diff: relative to the working directory if it is inside, else relative to the root.

    A tab ends a path with a blank, as ``git`` and ``patch`` require.
    """
    full, here = path.resolve(), Path.cwd()
    name = (full.relative_to(here) if full.is_relative_to(here) else full.relative_to(full.anchor)).as_posix()
    return f"{name}\t" if " " in name else name


def _origin(expectation: Expectation) -> tuple[str, int]:
    """Return file and number of an entry from its ``origin``, which :func:`read_expectations` writes."""
    name, _, number = expectation.origin.rpartition(", entry ")
    return name, int(number)


def _without(text: str, numbers: set[int]) -> str:
    """Return the text without the entries of these numbers, and without the comments directly above them."""
    if not numbers:
        return text
    starts = [_with_comment(text, match.start()) for match in _ENTRY.finditer(text)]
    ends = [*starts[1:], len(text)]
    kept = [text[: starts[0]]]
    kept += [text[a:b] for number, (a, b) in enumerate(zip(starts, ends, strict=True), 1) if number not in numbers]
    return "".join(kept)


def _with_comment(text: str, start: int) -> int:
    """Return the position at which the comment lines directly above ``start`` begin."""
    while start and (line := text[: start - 1].rpartition("\n")[2]).startswith("#"):
        start -= len(line) + 1
    return start


def _entries(divergences: Sequence[Diverged]) -> dict[str, list[str]]:
    """Return the entries to add, by file. Divergences with the same key in several releases get one entry."""
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
        lines = [
            f"\n# {steps}: {', '.join(event.failure['aspects'])} of {event.failure['participant']}",
            "[[expectation]]",
        ]
        lines += [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
        found.setdefault(_file_name(implementation), []).append("\n".join(lines))
    return found


def _about(event: Diverged) -> tuple[str, str] | None:
    """Return what an entry names: the violated clause, or the signature if no clause covers the step."""
    if event.requirements:
        return "clause", event.clause or _clause(event)
    # A program that crashes, times out or sends a malformed reply is never expected.
    return ("signature", event.signature) if event.signature and not event.signature.endswith(": failure") else None


def _clause(event: Diverged) -> str:
    """Return the clause that describes the divergence best: the last MUST clause, or else the last clause."""
    musts = [clause for clause, level, _ in event.requirements if level == "MUST"]
    return (musts or [clause for clause, _, _ in event.requirements])[-1]


def _file_name(implementation: str) -> str:
    return (re.sub(r"[^a-z0-9]+", "-", implementation.rpartition("/")[2].lower()).strip("-") or "mine") + ".toml"
