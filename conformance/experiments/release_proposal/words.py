"""A proposal in words, and as JSON."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from conformance.experiments.release_proposal.clause_changes import not_asked
from conformance.experiments.release_proposal.patch import row_of
from conformance.report.divergence import show
from kidx.dialect import DIALECTS
from kidx.dialect.columns import Columns

if TYPE_CHECKING:
    from conformance.experiments.release_proposal.clause_changes import ClauseChange
    from conformance.experiments.release_proposal.proposal import Proposal
    from conformance.experiments.release_proposal.trials import Failing
    from conformance.operations import Json


def described(proposal: Proposal) -> str:
    """Every column with what speaks for its value, every clause with its trace, and what nothing explains."""
    plan, probed = proposal.plan, proposal.probed
    base = DIALECTS[plan.against]
    lines = [f"{plan.release}, compared with {plan.against}: {len(proposal.differing)} traces differ", ""]
    for column, values in probed.kept.items():
        chosen, before = getattr(probed.dialect, column), getattr(base, column)
        said = f"  {column:17}{chosen}" + (f" (it was {before})" if chosen != before else "")
        if others := [value for value in values if value != chosen]:
            said += f"; no step tells it from {', '.join(others)}"
        lines.append(said)
        lines += [f"      not {value}: trace {trace}" for value, trace in probed.refuted[column].items()]
    lines.append(f"  ListOffsets      versions {probed.dialect.list_offsets_versions}, as its classes say")
    lines += [f"  {name}: {value!r}, not as its version says" for name, value in probed.behaviours.items()]
    lines += [f"  {column}: the table of the package says otherwise" for column in proposal.otherwise]
    lines += ["", "row", row_of(probed.dialect)]
    if proposal.changes:
        lines += ["", "clauses"]
        lines += [_clause(change, proposal) for change in proposal.changes]
    if probed.failing:
        lines += ["", "no known value explains"]
        lines += [_unexplained(failing) for failing in probed.failing.values()]
    if unasked := not_asked(plan.machines):
        lines += [
            "",
            f"not looked at: what changed before and no step of these machines exercises ({', '.join(unasked)})",
        ]
    lines += ["", "diff" if proposal.patch else "the package says so already"]
    return "\n".join(lines)


def _clause(change: ClauseChange, proposal: Proposal) -> str:
    what = "begins" if change.holds else "ends"
    because = f", by {', '.join(change.because)}" if change.because else ""
    trace = f", trace {_path(change.trace, proposal)}" if change.trace else ""
    clause = change.clause
    return f"  {clause.id} {what}: {clause.title} ({clause.releases} → {change.releases}{because}{trace})"


def _path(id_: str, proposal: Proposal) -> str:
    failing = proposal.differing.get(id_) or proposal.probed.failing.get(id_)
    return id_ if failing is None else f"{failing.trace.machine}-{id_}"


def _unexplained(failing: Failing) -> str:
    divergence, trace = failing.divergence, failing.trace
    expected, actual = show(divergence.expected), show(divergence.actual)
    where = f"{trace.machine}-{trace.id}, step {divergence.step + 1}: {divergence.operation.name}"
    return f"  {where} ({', '.join(divergence.aspects)}): {expected} → {actual}"


def as_json(proposal: Proposal) -> Json:
    """The same as one document."""
    plan, probed = proposal.plan, proposal.probed
    return {
        "release": plan.release,
        "against": plan.against,
        "row": {column.name: getattr(probed.dialect, column.name) for column in fields(Columns)},
        "kept": {column: list(values) for column, values in probed.kept.items()},
        "refuted": {column: dict(traces) for column, traces in probed.refuted.items()},
        "behaviours": dict(probed.behaviours),
        "clauses": [
            {
                "id": change.clause.id,
                "holds": change.holds,
                "releases": change.releases,
                "because": list(change.because),
                "trace": change.trace,
            }
            for change in proposal.changes
        ],
        "differing": sorted(proposal.differing),
        "unexplained": sorted(probed.failing),
        "otherwise": list(proposal.otherwise),
        "not_asked": list(not_asked(plan.machines)),
        "patch": proposal.patch,
    }
