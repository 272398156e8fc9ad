"""Proposal of this package's data for a new Kafka release, inferred from the release's jars.

The data are the behaviours of the release, which form its dialect, and the clauses that begin or end with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from conformance.clauses import family, load_clauses
from conformance.clauses.behaviour_range import BehaviourRange
from conformance.experiments.release_proposal.clause_changes import ClauseChange, change, changes_of
from conformance.experiments.release_proposal.dialect_probe import Probed, probe
from conformance.experiments.release_proposal.divergence_search import search_divergences
from conformance.experiments.release_proposal.patch import has_release, patch_of
from conformance.experiments.release_proposal.suspects import broken_clauses
from conformance.experiments.release_proposal.trials import Trials
from conformance.implementations.jvm.virtual_machine import release_loader, start_jvm
from conformance.kafka.releases import load_release
from kidx.dialect import DIALECTS, ROWS, Dialect, with_overrides

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.experiments.release_proposal.trials import Failing
    from conformance.kafka.jar_fetch import Progress

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
        plan: The plan.
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
