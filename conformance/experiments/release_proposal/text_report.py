"""Report about the inferred behaviours and clauses of a new Kafka release, as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.experiments.release_proposal.clause_changes import clauses_of, unexercised_clauses
from conformance.experiments.release_proposal.patch import edited_rows
from conformance.report.divergence import format_value
from kidx.dialect import DIALECTS, ROWS

if TYPE_CHECKING:
    from conformance.experiments.release_proposal.clause_changes import ClauseChange
    from conformance.experiments.release_proposal.proposal import Proposal
    from conformance.experiments.release_proposal.trials import Failing
    from conformance.operations import Json


def format_proposal(proposal: Proposal) -> str:
    """Return the proposal as text: behaviours and clauses, each with a trace, and unexplained differences."""
    plan, probed = proposal.plan, proposal.probed
    base = DIALECTS[plan.against]
    lines = [f"{plan.release}, compared with {plan.against}: {len(proposal.differing)} traces differ", ""]
    changed = {name: value for name, value in probed.changed.items() if value != getattr(base, name)}
    lines.append("behaviours" if changed else f"behaviours: the same as {plan.against}")
    for name, value in changed.items():
        lines.append(f"  {name}: {value!r} (it was {getattr(base, name)!r}): {ROWS[name].__doc__}")
        if shown := probed.because.get(name):
            more = f" and {len(shown) - 1} more" if len(shown) > 1 else ""
            lines.append(f"      shown by trace {_path(shown[0], proposal)}{more}")
    if edited := edited_rows(probed.dialect, probed.untested):
        lines += ["", "rows"]
        lines += [f"  {name}: {old} → {new}" for name, ranges in edited.items() for old, new in ranges]
    followers = [clause.id for clause in clauses_of(edited)]
    if followers:
        lines.append(f"  which decide {', '.join(followers)}")
    lines += [f"  {name}: the package's table contradicts it" for name in proposal.conflicts]
    if proposal.changes:
        lines += ["", "clauses"]
        lines += [_clause(change, proposal) for change in proposal.changes]
    if probed.failing:
        lines += ["", "no known behaviour explains"]
        lines += [_unexplained(failing) for failing in probed.failing.values()]
    if probed.unknown:
        lines += ["", f"not tested, as no step depends on them: {', '.join(sorted(probed.unknown))}"]
    if undecided := unexercised_clauses(plan.machines):
        lines += [
            "",
            f"not tested: clauses that changed before and that these machines never exercise ({', '.join(undecided)})",
        ]
    lines += ["", "diff" if proposal.patch else "the package has this data already"]
    return "\n".join(lines)


def _clause(change: ClauseChange, proposal: Proposal) -> str:
    what = "begins" if change.applies else "ends"
    because = f", by {', '.join(change.because)}" if change.because else ""
    trace = f", trace {_path(change.trace, proposal)}" if change.trace else ""
    clause = change.clause
    return f"  {clause.id} {what}: {clause.title} ({clause.releases} → {change.releases}{because}{trace})"


def _path(id_: str, proposal: Proposal) -> str:
    failing = proposal.differing.get(id_) or proposal.probed.failing.get(id_)
    return id_ if failing is None else f"{failing.trace.machine}-{id_}"


def _unexplained(failing: Failing) -> str:
    divergence, trace = failing.divergence, failing.trace
    expected, actual = format_value(divergence.expected), format_value(divergence.actual)
    where = f"{trace.machine}-{trace.id}, step {divergence.step + 1}: {divergence.operation.name}"
    return f"  {where} ({', '.join(divergence.aspects)}): {expected} → {actual}"


def as_json(proposal: Proposal) -> Json:
    """Return the proposal as one document."""
    plan, probed = proposal.plan, proposal.probed
    return {
        "release": plan.release,
        "against": plan.against,
        "behaviours": dict(probed.changed),
        "because": {name: list(traces) for name, traces in probed.because.items()},
        "rows": {
            name: [list(pair) for pair in ranges]
            for name, ranges in edited_rows(probed.dialect, probed.untested).items()
        },
        "unread": sorted(probed.unknown),
        "clauses": [
            {
                "id": change.clause.id,
                "holds": change.applies,
                "releases": change.releases,
                "because": list(change.because),
                "trace": change.trace,
            }
            for change in proposal.changes
        ],
        "differing": sorted(proposal.differing),
        "unexplained": sorted(probed.failing),
        "conflicts": list(proposal.conflicts),
        "unexercised_clauses": list(unexercised_clauses(plan.machines)),
        "patch": proposal.patch,
    }
