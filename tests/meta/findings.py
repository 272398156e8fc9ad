"""Writer of the declared part of each page in `findings`: ``python -m tests.meta.findings``.

With the number of a finding it prints the page in the markup of Kafka's tracker, with the test and the fix; with
``--diff``, too, only the diff against the source of a release, which it fetches.
"""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Final

from conformance.kafka.releases import RELEASES

sys.path.append(str(Path(__file__).parents[1] / "support"))

from kafka_diffs import RELEASE as DIFF_RELEASE
from kafka_diffs import Edit
from kafka_findings import ROOT, Finding, Patch, findings, locked, patch

_BLOCK: Final = re.compile(r"<!-- declared -->\n.*?<!-- end -->\n", re.DOTALL)
_MARKUP: Final = (
    (r"<!-- .*? -->\n", ""),
    (r"(?m)^```(\w*)$", lambda match: f"{{code:{match[1]}}}" if match[1] else "{code}"),
    (r"(?m)^#(#*) ", lambda match: f"h{1 + len(match[1])}. "),
    (r"(?m)^- ", "* "),
    (r"(?m)^\d+\. ", "# "),
    (r"\*\*(.+?)\*\*", r"*\1*"),
    (r"\[([^]]+)\]\((https:[^)]+)\)", r"[\1|\2]"),
    (r"\[([^]]+)\]\([^)]+\)", r"\1"),
    (r"`([^`\n]+)`", r"{{\1}}"),
)
"""Markdown of the pages, and what JIRA has for it."""
_WRAPPED: Final = re.compile(r"(?<=\S)\n +(?=\S)|(?<=\S)\n(?!h\d\. |[*#|] )(?=\S)")
"""End of a line within a paragraph or an item, which the tracker would show."""
_PRIVATE: Final = (
    "- **Not public at first:** a client that sends what no official client sends is needed, so this is for the "
    "private list of [Kafka's security page](https://kafka.apache.org/project-security.html)"
)
_OF_THIS_PROJECT: Final = tuple(
    f"- **{name}" for name in ("Clauses", "JUnit", "Patch,", "Diff against", "Test on ", "Print the diff", "Run it")
)
"""Lines of a page that say nothing about Kafka."""
_CLAUSES: Final = re.compile(r" \((?:[A-Z]{2,3}-\d+\w*(?:, )?)+\)")
_COMMAND: Final = "python3 bootstrap.py pytest tests/jvm/test_findings.py"
_DIFF: Final = "python3 bootstrap.py python -m tests.meta.findings --diff"


def with_block(text: str, lines: list[str]) -> str:
    """Return a page with its declared part replaced."""
    return _BLOCK.sub(lambda _: "\n".join(("<!-- declared -->", *lines, "<!-- end -->", "")), text, count=1)


def header(finding: Finding) -> list[str]:
    """Return the declared part of a finding's page."""
    others = [each for each in RELEASES if not (finding.fails_on(each) or finding.passes_on(each))]
    fixed = f"{finding.fixed} with the proposed fix applied to its class files" if finding.fixed else "no release"
    return [
        *([_PRIVATE] if finding.hostile else []),
        f"- **Component:** {finding.component}",
        f"- **Affected, as executed:** {_releases(finding.affected)}",
        f"- **Not affected, as executed:** {_releases(finding.unaffected) or 'none'}",
        *([f"- **Not executed:** {', '.join(others)}: {finding.elsewhere}"] if others else []),
        f"- **The test passes with the fix:** {fixed}",
        f"- **Clauses:** {', '.join(finding.clauses) or 'none'}",
        *(f"- **JUnit test:** [{test}]({_source(test)})" for test in finding.tests),
        f"- **The first test says, on {RELEASES[-1]}:** `{finding.says}`",
        *(f"- **Patch, as the test has it:** {_words(patch)}" for patch in finding.patches),
        *(f"- **Diff against the source of {DIFF_RELEASE}:** {_place(edit)}" for edit in finding.edits if edit.words),
        *(
            f"- **Test on Kafka's own helpers, in the diff:** [{file.stem}]({file.relative_to(ROOT).as_posix()})"
            for file in finding.added_files
        ),
        f"- **Print the diff:** `{_DIFF} {finding.number}`",
        f"- **Run it:** `{_COMMAND}`; [other releases](README.md#run-the-tests)",
    ]


def listing() -> list[str]:
    """Return the list of all findings, the highest cost first."""
    rows = ["| | finding | cost to a user | affected | not affected |", "|--:|---|---|---|---|"]
    for each in sorted(findings(), key=lambda each: each.rank):
        title = f"[{each.title}]({each.page.name})" + (" (a curiosity)" if each.curiosity else "")
        rows.append(
            f"| {each.page.name[:2]} | {title} | {each.cost} | {_span(each.affected)} | {_span(each.unaffected)} |"
        )
    return rows


def ticket(finding: Finding) -> str:
    """Return the text of a ticket without its diff: what the page says about Kafka, and the sources of its tests."""
    text = finding.page.read_text("utf-8")
    for line in header(finding):
        if line.startswith(_OF_THIS_PROJECT):
            text = text.replace(f"{line}\n", "")
    text = _CLAUSES.sub("", text)
    for pattern, new in _MARKUP:
        text = re.sub(pattern, new, text)
    parts = re.split(r"(\{code.*?\{code\})", text, flags=re.DOTALL)
    text = "".join(each if each.startswith("{code") else _WRAPPED.sub(" ", each) for each in parts)
    sources = [
        f"h2. {path.rpartition('/')[2]}\n\n{{code:java}}\n{(ROOT / path).read_text('utf-8')}{{code}}"
        for path in dict.fromkeys(_source(test) for test in finding.tests)
    ]
    return "\n\n".join([text.rstrip(), *sources])


def _place(edit: Edit) -> str:
    return f"in `{edit.within.rpartition('/')[2].rstrip('.')}`, {edit.words}"


def _with_diff(finding: Finding) -> str:
    return f"{ticket(finding)}\n\nh2. Diff\n\n{{code:diff}}\n{patch([finding])}{{code}}\n"


def _words(patch: Patch) -> str:
    within, call, by = (each.rsplit("/", 1)[-1] for each in (patch.within, patch.call, patch.by))
    what = f"in `{within}`, calls of `{call}` become" if call else f"`{within}` becomes"
    return f"{what} [{by}]({_fix(patch)})"


def _fix(patch: Patch) -> str:
    return f"java/fixes/{patch.by.rsplit('/', 1)[-1].split('.', maxsplit=1)[0]}.java"


def _releases(text: str) -> str:
    return ", ".join(locked(text))


def _span(text: str) -> str:
    """Return the releases of a range, consecutive ones as the first and the last."""
    chosen, runs = set(locked(text)), list[list[str]]()
    for before, release in pairwise(["", *RELEASES]):
        if release in chosen and before in chosen:
            runs[-1].append(release)
        elif release in chosen:
            runs.append([release])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


def _source(test: str) -> str:
    name = test.split(".", maxsplit=1)[0]
    return next((ROOT / "java").rglob(f"{name}.java")).relative_to(ROOT).as_posix()


def pages() -> dict[Path, str]:
    """Return what each page has to be."""
    wanted = {each.page: with_block(each.page.read_text("utf-8"), header(each)) for each in findings()}
    readme = ROOT / "README.md"
    return {readme: with_block(readme.read_text("utf-8"), listing()), **wanted}


if __name__ == "__main__":
    if numbers := {int(each) for each in sys.argv[1:] if each != "--diff"}:
        chosen = [each for each in findings() if each.number in numbers]
        if missing := numbers - {each.number for each in chosen}:
            sys.stderr.write(f"there is no finding {', '.join(map(str, sorted(missing)))}\n")
            sys.exit(2)
        if "--diff" in sys.argv:
            sys.stdout.write(patch(chosen))
        else:
            sys.stdout.write("\n\n".join(map(_with_diff, chosen)))
    else:
        for page, text in pages().items():
            page.write_text(text, "utf-8")
