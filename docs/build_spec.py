"""Writer of docs/spec, a page per chapter of clauses: ``python3 bootstrap.py python docs/build_spec.py``.

With ``--check`` it writes nothing, and fails if a page is not current. The site has its own pages of the specification,
with the answers of the releases, in place of these.
"""

from __future__ import annotations

import sys
from pathlib import Path

from links import addresses, linked

from conformance.attribution.tables import machines_of
from conformance.clauses import EVIDENCE, LEVELS, Clause, load_chapters, load_clauses
from conformance.report.markdown_escape import prose, table, text

PLACE = Path(__file__).parent / "spec"
_OVERVIEW = """# The specification

{count} clauses say what Kafka's log layer does, release by release. Each has an id that never changes,
which failures, findings and the output of `kidx verify` name.

| level | who relies on it |
| --- | --- |
| MUST | Users: it is promised to them, or Kafka cannot read the files without it. |
| API | Only callers of Kafka's Java classes. |
| OBSERVED | Nobody: Kafka happens to do it, and an implementation need not copy it. |

`conformance clauses TI --kafka 3.9.2 --level must` filters by chapter, release and level, and
`conformance clauses --grep TEXT` searches.

{table}

[What is different in a release](../changes.md) tells the changes in a user's words.

`python3 bootstrap.py python docs/build_spec.py` writes these pages from `conformance/clauses`.
"""


def pages() -> dict[str, str]:
    """Return the text of each page by its name."""
    chapters: dict[str, list[Clause]] = {}
    for clause in load_clauses().values():
        chapters.setdefault(clause.chapter, []).append(clause)
    rows = [
        [
            f"[{text(load_chapters()[name])}]({name}.md)",
            f"{clauses[0].id} …",
            *(str(sum(each.level == level for each in clauses)) for level in LEVELS),
        ]
        for name, clauses in chapters.items()
    ]
    overview = _OVERVIEW.format(
        count=len(load_clauses()), table="\n".join(table(["chapter", "ids", *LEVELS], rows, numbers=2))
    )
    known = addresses("docs/spec")
    texts = {
        name: "\n".join([f"# {text(load_chapters()[name])}\n", "[All chapters](README.md)\n", *map(_clause, clauses)])
        for name, clauses in chapters.items()
    }
    return {f"{name}.md": linked(each, f"docs/spec/{name}.md", known) for name, each in texts.items()} | {
        "README.md": overview
    }


def _clause(clause: Clause) -> str:
    machine = clause.trace.partition("-")[0]
    why = f"{prose(clause.reason or clause.promise)} {text(clause.ticket)}".strip()
    machines = ", ".join(machines_of(clause.id))
    facts = [
        ("Releases", f"`{clause.releases}`"),
        ("Why" if clause.reason else "Promised by", why),
        ("Source in Kafka", text(clause.source)),
        (
            "Evidence",
            f"{EVIDENCE[clause.evidence]}; {f'exercised by {machines}' if machines else prose(clause.not_exercised)}",
        ),
        (
            "Smallest trace",
            f"`conformance replay {clause.trace}` ([traces](../../conformance/traces/{machine}.ndjson))"
            if clause.trace
            else "",
        ),
    ]
    lines = "\n".join(f"- **{name}:** {value}" for name, value in facts if value)
    return (
        f'<a id="{clause.id}"></a>\n\n## {clause.id} {text(clause.title)}\n\n'
        f"**{clause.level}.** {prose(clause.statement)}\n\n{lines}\n"
    )


def main() -> None:
    """Write the pages, or check them."""
    wanted = pages()
    found = {path.name: path.read_text("utf-8") for path in PLACE.glob("*.md")}
    stale = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if "--check" in sys.argv[1:]:
        command = "python3 bootstrap.py python docs/build_spec.py"
        sys.exit(f"docs/spec is not current: {', '.join(stale)}; run: {command}" if stale else 0)
    PLACE.mkdir(exist_ok=True)
    for name in stale:
        if name in wanted:
            (PLACE / name).write_text(wanted[name], "utf-8")
        else:
            (PLACE / name).unlink()


if __name__ == "__main__":
    main()
