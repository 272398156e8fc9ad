"""Proposal of this package's data for a new Kafka release, inferred from the release's jars.

The data are the behaviours of the release, which form its dialect, and the clauses that begin or end with it. A report
names both, as text and as JSON.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from conformance.clauses import family, load_clauses
from conformance.clauses.release_ranges import BehaviourRange
from conformance.experiments.release_proposal.patch import (
    ClauseChange,
    change,
    changes_of,
    clauses_of,
    edited_rows,
    has_release,
    patch_of,
    unexercised_clauses,
)
from conformance.experiments.release_proposal.trials import Probed, Trials, broken_clauses, probe, search_divergences
from conformance.implementations.jvm.virtual_machine import release_loader, start_jvm
from conformance.kafka.releases import load_release
from conformance.report.divergence import format_value
from kidx.dialect import DIALECTS, ROWS, Dialect, with_overrides

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from conformance.experiments.release_proposal.trials import Failing
    from conformance.kafka.jar_fetch import Progress
    from conformance.operations import Json

_ROUNDS: Final = 3
"""Maximum number of searches for traces that the behaviours found so far do not explain."""


@dataclass(frozen=True)
class Plan:
    """Plan of a proposal.

    Attributes:
        release: The new release, locked by the package or the user.
        against: A known release, whose behaviours are the initial guess.
        machines: The state machines that test the release.
        traces: The directory of the traces.
        examples: The number of examples for each machine and search; None for the number of the profile ``dev``.
    """

    release: str
    against: str
    machines: tuple[str, ...]
    traces: Path
    examples: int | None = None


@dataclass(frozen=True)
class Proposal:
    """Proposed data for a release.

    Attributes:
        probed: The behaviours, and the traces that show them.
        changes: The clauses that begin or end with the release.
        differing: The traces in which the release differs from the baseline release, by id.
        patch: All changes as a diff of the sources; empty without changes.
        conflicts: The behaviours whose values in the package's table are wrong, if the table has the release.
    """

    plan: Plan
    probed: Probed
    changes: tuple[ClauseChange, ...]
    differing: Mapping[str, Failing]
    patch: str
    conflicts: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """True if known behaviours explain all traces, and the table does not contradict them."""
        return not (self.probed.failing or self.conflicts)


def propose(plan: Plan, progress: Progress | None = None) -> Proposal:
    """Find the behaviours of a release and the clauses that begin or end with it.

    Raises:
        UnknownReleaseError: The release is not locked.
        ToolError: The release's classes are not available here.
    """
    release = load_release(plan.release).name
    trials = Trials(release, plan.machines, progress)
    base = Dialect(release, DIALECTS[plan.against].like)  # the behaviours of the known release
    known = {"list_offsets_versions": _list_offsets(release, progress)}
    start = with_overrides(base, **known)
    probed = probe(trials, base, known)
    for _ in range(_ROUNDS):
        if not trials.add(
            search_divergences(probed.dialect, plan.machines, plan.traces, plan.examples, progress=progress)
        ):
            break
        again = probe(trials, base, probed.changed)
        probed = replace(again, because={**probed.because, **again.because})
    differing = trials.result(start).failing
    conflicts = tuple(
        name
        for name in (ROWS.keys() - probed.unknown if has_release(release) else ())
        if getattr(DIALECTS[release], name) != getattr(probed.dialect, name)
    )
    found = (*changes_of(probed.dialect, plan.machines, probed.unknown), *_ended(trials, probed, start))
    changes = tuple(_with_trace(one, differing) for one in {one.clause.id: one for one in reversed(found)}.values())
    return Proposal(
        plan, probed, changes[::-1], differing, patch_of(probed.dialect, changes[::-1], probed.untested), conflicts
    )


def _list_offsets(release: str, progress: Progress | None) -> tuple[int, int]:
    """Return the versions of the request ListOffsets that a release's own classes support."""
    loader = release_loader(release, "index", progress)
    keys = start_jvm().JClass("org.apache.kafka.common.protocol.ApiKeys", loader=loader)
    return int(keys.LIST_OFFSETS.oldestVersion()), int(keys.LIST_OFFSETS.latestVersion())


def _ended(trials: Trials, probed: Probed, start: Dialect) -> Iterator[ClauseChange]:
    """Yield the clauses that the release breaks with values that no known release has, or for unknown reasons."""
    others = [dialect for release, dialect in DIALECTS.items() if release != start.release]
    new = {
        name: getattr(start, name)
        for name, value in probed.changed.items()
        if name in probed.because and value not in {getattr(other, name) for other in others}
    }
    result = trials.result(with_overrides(probed.dialect, **new))
    for clause, trace in broken_clauses(result).items():
        ended = load_clauses()[clause]
        if isinstance(ended.releases, BehaviourRange) and ended.releases.behaviour in probed.changed:
            continue  # the range follows the behaviour's row
        with suppress(ValueError):  # the clause applies only to this release
            yield change(ended, start.release, trace=trace, applies=False)


def _with_trace(one: ClauseChange, differing: Mapping[str, Failing]) -> ClauseChange:
    """Return the change with the shortest trace whose divergence implicates the clause or a variant."""
    if one.trace:
        return one
    wanted = family(one.clause.id)
    for id_, failing in sorted(differing.items(), key=lambda item: len(item[1].trace.operations)):
        if wanted in map(family, failing.divergence.clauses):
            return replace(one, trace=id_)
    return one


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
