"""Results on mutants, as a page in Markdown and as lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from conformance.report import markdown_escape
from conformance.studies.mutants.recording import drawn_of
from conformance.studies.mutants.verdicts import Header, Score, Verdict, reason_of, score_of, scores_by


def headline(header: Header, verdicts: Sequence[Verdict], sites: int) -> str:
    """Return the score in one sentence."""
    score = score_of(verdicts)
    drawn = f"{len(verdicts)} of {sites} mutants" if len(verdicts) < sites else f"all {sites} mutants"
    return (
        f"Kafka {header.release}, {drawn}: {score.text} without a reason to survive are killed, "
        f"{score.killed} of {score.decided} in total"
    )


def survivor(verdict: Verdict) -> str:
    """Return a survivor as a line of text."""
    seen = f"reached by {verdict.reached} examples" if verdict.reached else "not reached"
    return f"{verdict.site}, line {verdict.line}: {verdict.change} ({seen})"


def shown(header: Header, verdicts: Sequence[Verdict], sites: int) -> Iterator[str]:
    """Yield the results as lines for people."""
    for name, score in scores_by(verdicts, "class_name").items():
        yield f"{name:34}  {score.text}"
    for each in verdicts:
        if each.verdict == "survived" and reason_of(each) is None:
            yield f"SURVIVED  {survivor(each)}"
        elif each.verdict == "could-not-run":
            yield f"COULD NOT RUN  {each.site}: {each.how}"
    yield headline(header, verdicts, sites)


def page(
    header: Header, verdicts: Sequence[Verdict], sites: int, command: str, others: Mapping[str, Verdict] | None = None
) -> str:
    """Return a Markdown page of the results.

    Args:
        header: what the verdicts depend on.
        sites: number of all mutants of the classes.
        command: command that writes the page.
        others: verdicts of other examples or tests by site, for a comparison of the mutants that both have decided.
    """
    lines = [
        f"# Mutants of Kafka {header.release}",
        "",
        f"`{command}` prints this page.",
        "",
        *_introduction(header),
        "",
        f"{headline(header, verdicts, sites)}.",
        "",
        *_table("class", scores_by(verdicts, "class_name")),
        "",
        *_table("operator", scores_by(verdicts, "operator")),
        *(_comparison(verdicts, others) if others else []),
    ]
    survivors = [each for each in verdicts if each.verdict == "survived"]
    titles = (("Survivors", None), ("Out of scope", "out-of-scope"), ("Equivalent", "equivalent"))
    for title, kind in titles:
        rows = [each for each in survivors if (reason.kind if (reason := reason_of(each)) else None) == kind]
        if rows:
            lines += ["", f"## {title}", "", *_survivors(rows, with_reason=kind is not None)]
    failed = [each for each in verdicts if each.verdict == "could-not-run"]
    if failed:
        names = [[markdown_escape.code(each.site), markdown_escape.text(each.how)] for each in failed]
        lines += ["", "## Could not run", "", *markdown_escape.table(["place", "reason"], names, numbers=2)]
    return "\n".join(lines) + "\n"


def _introduction(header: Header) -> list[str]:
    if header.against == "kafka-tests":
        return [
            "A mutant is Kafka's log layer with one changed instruction. It is killed by the first of Kafka's own unit",
            "tests that fails, hangs or crashes Java.",
        ]
    return [
        "A mutant is Kafka's log layer with one changed instruction. It is killed by the first recorded example in",
        "which a reply, a state or a file differs, or that hangs or crashes Java. The examples are the regression",
        f"traces of the machines ({', '.join(header.machines)}) and {header.examples} drawn examples of each",
        f"(tiered: {drawn_of('tiered', header.examples)}), seed {header.seed}.",
    ]


def _table(name: str, scores: Mapping[str, Score]) -> list[str]:
    rows = [
        [f"`{key}`", str(each.killed), str(each.open), str(each.excused), str(each.could_not_run), each.text]
        for key, each in scores.items()
    ]
    head = [name, "killed", "survive", "with a reason", "could not run", "killed without a reason to survive"]
    return markdown_escape.table(head, rows, numbers=1)


def _comparison(verdicts: Sequence[Verdict], others: Mapping[str, Verdict]) -> list[str]:
    """Return a table of the mutants without a reason to survive that both have decided, by class."""
    both = [
        (each, others[each.site])
        for each in verdicts
        if each.site in others and "could-not-run" not in (each.verdict, others[each.site].verdict)
    ]
    both = [pair for pair in both if reason_of(pair[0]) is None or "killed" in (pair[0].verdict, pair[1].verdict)]
    names = sorted({each.class_name for each, _ in both})
    rows = [_compared(f"`{name}`", [pair for pair in both if pair[0].class_name == name]) for name in names]
    head = ["class", "mutants", "killed here", "killed by the others", "here alone", "by the others alone"]
    lines = ["", "## Compared", "", *markdown_escape.table(head, [*rows, _compared("all", both)], numbers=1)]
    missed = [each for each, other in both if each.verdict == "survived" and other.verdict == "killed"]
    if missed:
        lines += ["", "Killed by the others alone:", "", *(f"- {markdown_escape.code(each.site)}" for each in missed)]
    return lines


def _compared(name: str, pairs: Sequence[tuple[Verdict, Verdict]]) -> list[str]:
    kills = Counter((mine.verdict == "killed", other.verdict == "killed") for mine, other in pairs)
    here, others = kills[True, False], kills[False, True]
    numbers = (len(pairs), kills[True, True] + here, kills[True, True] + others, here, others)
    return [name, *map(str, numbers)]


def _survivors(rows: Sequence[Verdict], *, with_reason: bool) -> list[str]:
    cells = []
    for each in rows:
        reason = reason_of(each)
        why = [markdown_escape.text(f"{reason.why}; {reason.seen_by}".strip("; "))] if reason else []
        where = [markdown_escape.code(each.site), str(each.line), markdown_escape.code(each.change)]
        cells.append([*where, str(each.reached), *why])
    head = ["place", "line", "change", "examples that reach it", *(["reason"] if with_reason else [])]
    return markdown_escape.table(head, cells, numbers=5 if with_reason else 3)
