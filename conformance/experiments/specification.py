"""Pages of the specification: one for each chapter of the catalogue of clauses, byte layouts, and changes.

Each clause has an anchor, a bar of all releases (inline SVG with a text for screen readers), and the smallest trace
that shows or exercises it, with the results of the releases. Traces are executed to find it.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cached_property
from html import escape
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.attribution.tables import machines_of, rows_of
from conformance.clauses import EVIDENCE, LEVELS, family, load_chapters, load_clauses
from conformance.clauses.machines import MACHINES as MACHINE_ROWS
from conformance.clauses.machines import driven_releases
from conformance.implementations.mutants import MUTANTS
from conformance.lockstep.divergence import plain
from conformance.machines import MACHINES
from conformance.operations.shortened import shortened
from conformance.report.divergence import format_value
from conformance.report.fields import fields_of_state, fields_of_value, in_one_line
from conformance.report.file_entries import first_difference
from conformance.report.markdown_escape import prose, table, text
from conformance.scratch import scratch_directory
from kidx import layout
from kidx.dialect import PUBLISHED, ROWS, version_of
from kidx.dialect import ROWS as BEHAVIOURS
from kidx.dialect.release_range import range_of
from kidx.printable import printable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from conformance.clauses import Clause
    from conformance.lockstep import Lockstep
    from conformance.lockstep.scope import Group
    from conformance.operations import Observation, Operation
    from conformance.operations.trace import Trace
    from kidx.dialect.behaviour import Behaviour
    from kidx.dialect.release_range import ReleaseRange

_RELEASES = PUBLISHED.split()
_FILE_TIME = re.compile(r"(lastModifiedTime=)(\d+)(?:(, largestTime=)\2)?")
"""The time of a file in an error text, also as the largest time of a segment without records."""


def _without_time(found: re.Match[str]) -> str:
    return "…".join(part for part in (found[1], found[3], "") if part is not None)


class Evidence(IntEnum):
    """Evidence of a trace's last step about a clause, the strongest first."""

    SEPARATES = 0
    """The releases in which the clause holds respond or write differently from all others."""
    RECORDED = 1
    """An implementation that violates the clause diverged at this step."""
    EXERCISED = 2
    """The step exercises the clause."""


class Shown(NamedTuple):
    """Steps that exercise a clause.

    Attributes:
        evidence: what the last of these steps says about the clause.
        steps: number of steps up to the step that exercises the clause.
        name: name of the trace for ``conformance replay``.
        trace: the trace that begins with these steps.
        answers: results of the last of these steps, each as (range of releases, result).
    """

    evidence: Evidence
    steps: int
    name: str
    trace: Trace
    answers: tuple[tuple[str, str], ...]

    @property
    def violator(self) -> str:
        """Name of the implementation that diverged in the trace; empty if none did."""
        return str((self.trace.failure or {}).get("participant", "")).partition(" ")[0]


def smallest_traces(traces: Mapping[str, Trace]) -> dict[str, Shown]:
    """Return the shortest beginning of a trace with the best evidence for each clause, by the id of the clause.

    The reference executes the traces in the dialect of every published release.

    Args:
        traces: the traces by their names for ``conformance replay``.
    """
    found: dict[str, Shown] = {}
    of_machine: dict[str, list[str]] = {}
    for name, trace in traces.items():
        of_machine.setdefault(trace.machine, []).append(name)
    for machine, members in of_machine.items():
        with scratch_directory() as scratch:
            lockstep = MACHINES[machine].new_lockstep([], scratch, releases=driven_releases(machine, _RELEASES))
            lockstep.drop_models()
            releases = _releases_of_groups(lockstep, machine)
            for name in members:
                _execute(lockstep, releases, scratch, name, traces[name], found)
    return found


def _execute(
    lockstep: Lockstep,
    releases: Mapping[Group[Any, Any], Sequence[str]],
    scratch: Path,
    name: str,
    trace: Trace,
    found: dict[str, Shown],
) -> None:
    """Execute a trace, and add it for each clause for which no trace before it is better."""
    lockstep.begin()
    counted = [dict(group.exercised) for group in lockstep.groups]
    for steps, operation in enumerate(trace.operations, 1):
        lockstep.perform(operation)
        exercised = set[str]()
        for group, before in zip(lockstep.groups, counted, strict=True):
            exercised |= {clause for clause, times in group.exercised.items() if times != before.get(clause)}
            before.update(group.exercised)
        results = _Results(lockstep, releases, scratch, trace.machine, operation)
        for id_ in exercised:
            if id_ in found and found[id_][:2] <= (Evidence.SEPARATES, steps):
                continue  # this step cannot be better evidence
            clause = load_clauses()[id_]
            by_answers = results.separates(clause, with_files=False)
            by_files = not by_answers and results.separates(clause, with_files=True)
            if by_answers or by_files:
                evidence = Evidence.SEPARATES
            else:
                evidence = Evidence.RECORDED if _diverged(trace, steps, id_) else Evidence.EXERCISED
            if id_ not in found or (evidence, steps) < found[id_][:2]:
                found[id_] = Shown(evidence, steps, name, trace, results.answers(with_files=by_files))
    lockstep.end()


def _releases_of_groups(lockstep: Lockstep, machine: str) -> dict[Group[Any, Any], list[str]]:
    """Return the releases of each group, oldest first, in the order of the groups' first releases."""
    rules = lockstep.scope.rules
    groups = {rules(group.dialect.release): group for group in lockstep.groups}
    members: dict[Group[Any, Any], list[str]] = {}
    for release in driven_releases(machine, _RELEASES):
        members.setdefault(groups[rules(release)], []).append(release)
    return members


def _diverged(trace: Trace, steps: int, clause: str) -> bool:
    """Return True if an implementation other than Kafka itself violated the clause at a step of the trace."""
    failure = trace.failure or {}
    is_kafka = str(failure.get("participant", "")).startswith("jvm")
    return not is_kafka and failure.get("step") == steps - 1 and clause in failure.get("clauses", ())


class _Results:
    """Results of all releases after one step.

    Args:
        lockstep: the references, which have executed the step.
        members: the releases of each group.
        scratch: the directory of their files, which an error text may name.
    """

    def __init__(
        self,
        lockstep: Lockstep,
        members: Mapping[Group[Any, Any], Sequence[str]],
        scratch: Path,
        machine: str,
        operation: Operation,
    ) -> None:
        self.members, self.scratch, self.machine, self.operation = members, scratch, machine, operation
        self.by_name, self.names = lockstep.scope.by_name, lockstep.watched

    @cached_property
    def answer_of(self) -> dict[Group[Any, Any], str]:
        """Answer of each group, without the files. Error texts have no directories and no times of files."""
        place = re.compile(rf"{re.escape(str(self.scratch))}/kidx-[\d.]+/")
        texts = {group: _answer(self.machine, self.operation, group.observation) for group in self.members}
        return {group: _FILE_TIME.sub(_without_time, place.sub("", text)) for group, text in texts.items()}

    def separates(self, clause: Clause, *, with_files: bool) -> bool:
        """Return True if releases in which the clause holds and all others have different results.

        Args:
            with_files: True to tell results apart, too, whose files differ.
        """
        inside = [group for group, releases in self.members.items() if any(map(clause.applies_to, releases))]
        outside = [group for group, releases in self.members.items() if not all(map(clause.applies_to, releases))]
        if not inside or not outside or set(inside) & set(outside):
            return False

        def result(group: Group[Any, Any]) -> tuple[str, Any]:
            return self.answer_of[group], group.files if with_files else None

        others = [result(group) for group in outside]
        return not any(result(group) in others for group in inside)

    def answers(self, *, with_files: bool) -> tuple[tuple[str, str], ...]:
        """Return the results, each as (range of releases, result).

        Args:
            with_files: True to tell results apart, too, whose files differ, and to append the first difference.
        """
        rows: dict[tuple[str, tuple[tuple[str, bytes | None], ...]], list[str]] = {}
        for group, releases in self.members.items():
            files = tuple(sorted(self.by_name(group.files, self.names).items())) if with_files else ()
            rows.setdefault((self.answer_of[group], files), []).extend(releases)
        (_, first), *others = rows
        other = next((files for _, files in others if files != first), first)
        return tuple(
            (range_of(releases, _RELEASES), answer + self._content(files, other if files == first else first))
            for (answer, files), releases in rows.items()
        )

    def _content(self, files: Any, other: Any) -> str:
        """Return the content of the files where they differ from others, to be appended to an answer."""
        difference = None if files == other else first_difference(self.machine, plain(files), plain(other))
        return "" if difference is None else f"; {difference.where}: {difference.expected}"


def _answer(machine: str, operation: Operation, seen: Observation) -> str:
    """Return the outcome and the state after it, in one line."""
    outcome = seen.outcome
    if outcome.error is not None:
        answer = f"{outcome.error}: {outcome.text}" if outcome.text else outcome.error
    else:
        value = plain(outcome.value)
        answer = in_one_line(fields_of_value(machine, str(operation), value)) or format_value(value)
    state = in_one_line(fields_of_state(machine, plain(seen.state)))
    return f"{answer}; then {state}" if state else answer


_BAR_RELEASES: Final = PUBLISHED.split()
_CELL: Final = 10
_WIDTH: Final = _CELL * len(_BAR_RELEASES)
_LABELLED: Final = ("2.4.0", "3.0.0", "4.0.0")


def release_bar(releases: ReleaseRange | Collection[str], label: str) -> str:
    """Return a bar with one cell per published release.

    Args:
        releases: the releases whose cells are filled.
        label: the text for screen readers.
    """
    parts, at = list[str](), 0
    for filled, cells in groupby(release in releases for release in _BAR_RELEASES):
        count = len(list(cells))
        if filled:
            parts.append(f'<rect class="held" x="{at * _CELL}" width="{count * _CELL}" height="12"/>')
        at += count
    minors = [version_of(release)[:2] for release in _BAR_RELEASES]
    starts = [number for number, (one, other) in enumerate(pairwise(minors), 1) if one != other]
    ticks = "".join(f"M{number * _CELL} 0v12" for number in starts)
    words = "".join(
        f'<text x="{_BAR_RELEASES.index(release) * _CELL}" y="25">{release.removesuffix(".0")}</text>'
        for release in _LABELLED
    )
    newest = f'<text x="{_WIDTH}" y="25" text-anchor="end">{_BAR_RELEASES[-1]}</text>'
    return (
        f'<svg class="releases" viewBox="0 0 {_WIDTH} 28" role="img" aria-label="{escape(label)}">'
        f'<rect class="all" width="{_WIDTH}" height="12"/>{"".join(parts)}<path d="{ticks}"/>{words}{newest}</svg>'
    )


_COLUMNS = PUBLISHED.split()


_FORMATS = """# Byte layouts

All integers are big-endian and signed (AI-1). No index file has a header or a checksum: each is a dense array of
entries from byte 0. The code is driven by these tables, `kidx/layout.py`.
"""
_CHANGES = """# What changed from release to release

{count} behaviours differ between Kafka's releases from {first} to {last}. The release with the largest number is first.
A patch release may have what a later minor release lacks: 3.9.2 appeared after 4.0.0.
"""
_CHANGED = {"True": "is new", "False": "is no longer so"}


def formats_page() -> str:
    """Return the page of byte layouts."""
    lines = [_FORMATS]
    for each in (layout.OFFSET_INDEX, layout.TIME_INDEX, layout.ABORTED_TXN):
        rows = [
            [f"{field.offset}–{field.offset + field.size - 1}", str(field.size), f"`{field.name}`", text(field.meaning)]
            for field in each.fields
        ]
        lines += [f"## `{each.name}`: {each.size} bytes an entry {{ #{each.name[1:]} }}\n"]
        lines += [*table(["bytes", "size", "field", "meaning"], rows, numbers=4), "", f"Source: {text(each.source)}\n"]
    return "\n".join(lines)


def changes_page() -> str:
    """Return the page of the changes from release to release."""
    changed: dict[str, list[str]] = {}
    for before, release in pairwise(_COLUMNS):
        for name, row in ROWS.items():
            if row.value_in(before) != row.value_in(release):
                change = _CHANGED.get(str(row.value_in(release))) or f"becomes {_value(row.value_in(release))}"
                changed.setdefault(release, []).append(f"[`{name}`](#{name}) {change}: {_sentence(row)}")
    rows = [[release, "<br>".join(changes)] for release, changes in reversed(changed.items())]
    lines = [
        _CHANGES.format(count=len(ROWS), first=_COLUMNS[0], last=_COLUMNS[-1]),
        *table(["release", "differs from the preceding one"], rows, numbers=2),
        "",
    ]
    section = ""
    for name, row in ROWS.items():
        if row.section != section:
            section = row.section
            lines += [f"## {section.capitalize()}\n"]
        lines += _behaviour(name, row)
    return "\n".join(lines)


def _behaviour(name: str, row: Behaviour[object]) -> list[str]:
    lines = [f"### `{name}` {{ #{name} }}\n", f"{_sentence(row)}\n"]
    for value in row.values:
        releases = [release for release in _COLUMNS if row.value_in(release) == value]
        if releases and value is not False:
            label = f"{name} is {value} in {range_of(releases, _COLUMNS)}"
            lines += [f"{_value(value)}: `{range_of(releases, _COLUMNS)}`\n", f"{release_bar(releases, label)}\n"]
    named = [each for each in load_clauses() if family(each) in row.clauses]
    return [*lines, *([f"Clauses: {', '.join(named)}\n"] if named else [])]


def _sentence(row: Behaviour[object]) -> str:
    return prose(row.__doc__ or "")


def _value(value: object) -> str:
    shown = str(value) if str(value).isidentifier() else repr(value)
    return {"True": "yes", "False": "no"}.get(shown, f"<code>{text(shown)}</code>")


_OVERVIEW = """# The specification

{count} clauses say what Kafka's log layer does, release by release.
Each has an id, which never changes, and an address: `specification/#OI-7` is its entry
[below](#all-clauses), which leads to its chapter.

| level | who relies on it |
| --- | --- |
| MUST | Users: it is promised to them, or Kafka cannot read the files without it. |
| API | Only callers of Kafka's Java classes. |
| OBSERVED | Nobody: Kafka happens to do it, and an implementation need not copy it. |

{table}

[Byte layouts](formats.md) · [What changed from release to release](changes.md)

These pages are generated. The reference executes each trace in the dialect of every release while they are made;
runs compare the reference with Kafka's own classes.
{executed}
## All clauses

{entries}
"""

_EVIDENCE = {
    Evidence.SEPARATES: "in which other releases differ",
    Evidence.RECORDED: "that shows it ({} diverges at the last step)",
    Evidence.EXERCISED: "that exercises it",
}


def chapter_pages(shown: Mapping[str, Shown], exercised: Mapping[str, int]) -> dict[str, str]:
    """Return the pages of the chapters and their overview, by file name.

    Args:
        shown: the smallest trace of each clause.
        exercised: the number of steps of runs that exercised each clause; empty without runs.
    """
    chapters: dict[str, list[Clause]] = {}
    for clause in load_clauses().values():
        chapters.setdefault(clause.chapter, []).append(clause)
    pages = {
        f"{chapter}.md": "\n".join(
            [
                f"# {_title(chapter)}\n",
                "[All chapters](index.md)\n",
                *(line for clause in clauses for line in _clause(clause, shown.get(clause.id), exercised)),
            ]
        )
        for chapter, clauses in chapters.items()
    }
    return {"index.md": _overview(chapters, shown, exercised), **pages}


def _title(chapter: str) -> str:
    return text(load_chapters()[chapter] or chapter.replace("_", " "))


def _overview(chapters: Mapping[str, list[Clause]], shown: Mapping[str, Shown], exercised: Mapping[str, int]) -> str:
    rows = [
        [
            f"[{_title(chapter)}]({chapter}.md)",
            f"{clauses[0].id.partition('-')[0]}-…",
            *(str(sum(clause.level == level for clause in clauses)) for level in LEVELS),
            str(sum(clause.id in shown for clause in clauses)),
        ]
        for chapter, clauses in chapters.items()
    ]
    executed = f"\nThe runs for these pages exercised {len(exercised)} clauses.\n" if exercised else ""
    chapter_table = "\n".join(table(["chapter", "ids", *LEVELS, "with a trace"], rows, numbers=2))
    entries = "\n".join(
        f'- [{each.id}]({chapter}.md#{each.id}){{ #{each.id} data-level="{each.level}" }} {text(each.title)}'
        for chapter, clauses in chapters.items()
        for each in clauses
    )
    return _OVERVIEW.format(
        count=sum(map(len, chapters.values())), table=chapter_table, executed=executed, entries=entries
    )


def _clause(clause: Clause, shown: Shown | None, exercised: Mapping[str, int]) -> list[str]:
    defects = [f"`mutant:{each.name}` {prose(each.title)}" for each in MUTANTS.values() if each.clause == clause.id]
    facts = [
        ("Releases", f"`{clause.releases}`"),
        ("Source in Kafka", text(clause.source)),
        ("Evidence", f"{EVIDENCE[clause.evidence]}; {_machines(clause)}"),
        ("A violation shows in", "; ".join(map(prose, _symptoms(clause)))),
        ("Decided by", ", ".join(f"[`{name}`](changes.md#{name})" for name in _behaviours(clause))),
        ("Planted defects", "<br>".join(defects)),
        ("Exercised", f"by {exercised.get(clause.id, 0):,} steps of the runs" if exercised else ""),
    ]
    why = f"{prose(clause.reason or clause.promise)} {text(clause.ticket)}".strip()
    return [
        f"## {clause.id} {text(clause.title)} {{ #{clause.id} }}\n",
        f"{prose(clause.statement)}\n",
        f"{release_bar(clause.releases, f'{clause.id} holds in the releases {clause.releases}')}\n",
        *table([clause.level, why], [[name, value] for name, value in facts if value], numbers=2),
        "",
        *(_steps(shown) if shown else []),
    ]


def _machines(clause: Clause) -> str:
    machines = machines_of(clause.id)
    return f"exercised by {', '.join(machines)}" if machines else prose(clause.not_exercised)


def _symptoms(clause: Clause) -> list[str]:
    """Return at most three descriptions of steps that would detect a violation."""
    whys = dict.fromkeys(row.why for machine in MACHINE_ROWS for row in rows_of(machine) if row.clause == clause.id)
    return list(whys)[:3]


def _behaviours(clause: Clause) -> list[str]:
    return [name for name, row in BEHAVIOURS.items() if family(clause.id) in row.clauses]


def _steps(shown: Shown) -> list[str]:
    """Return the steps that exercise a clause, folded, with the results of the releases."""
    steps = "\n".join(
        f"{number:2}  {escape(printable(shortened(step)))}"
        for number, step in enumerate(shown.trace.operations[: shown.steps], 1)
    )
    answers = "".join(
        f"<tr><td>{escape(releases)}</td><td><code>{escape(printable(answer))}</code></td></tr>"
        for releases, answer in shown.answers
    )
    count = f"{shown.steps} step{'s' if shown.steps > 1 else ''}"
    evidence = _EVIDENCE[shown.evidence].format(escape(shown.violator))
    head = f"Smallest trace {evidence}: {count} of the {shown.trace.machine} machine"
    columns = f"<tr><th>releases</th><th>answer to step {shown.steps}, and the state after it</th></tr>"
    replay = f"<p><code>conformance replay {escape(shown.name)}</code></p>"
    table_of_answers = f"<table><thead>{columns}</thead><tbody>{answers}</tbody></table>"
    folded = f"<summary>{head}</summary><pre><code>{steps}</code></pre>{table_of_answers}{replay}"
    return [f'<details class="steps">{folded}</details>\n']
