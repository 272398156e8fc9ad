"""Pages of the specification, one for each chapter of the catalogue of clauses, with an anchor for every clause."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from conformance.attribution.tables import machines_of, rows_of
from conformance.clauses import EVIDENCE, LEVELS, family, load_chapters, load_clauses
from conformance.clauses.machines import MACHINES
from conformance.experiments.specification.shown import Evidence, release_bar
from conformance.implementations.mutants import MUTANTS
from conformance.operations.shortened import shortened
from conformance.report.markdown_escape import prose, table, text
from kidx.dialect import ROWS as BEHAVIOURS
from kidx.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.clauses import Clause
    from conformance.experiments.specification.shown import Shown

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
        f"- [{each.id}]({chapter}.md#{each.id}){{ #{each.id} }} {text(each.title)}"
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
    whys = dict.fromkeys(row.why for machine in MACHINES for row in rows_of(machine) if row.clause == clause.id)
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
