"""From a release's jars to what the package would have to say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from conformance.clauses import family, load_clauses
from conformance.clauses.behaviour_range import BehaviourRange
from conformance.experiments.release_proposal.clause_changes import ClauseChange, change, changes_of
from conformance.experiments.release_proposal.hunting import hunt
from conformance.experiments.release_proposal.patch import has_release, patch_of
from conformance.experiments.release_proposal.probing import Probed, probe
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


@dataclass(frozen=True)
class Plan:
    """What is to be proposed.

    Attributes:
        release: the new one; locked, by the package or its user.
        against: a known release, whose behaviours are the first guess.
        machines: what compares them.
        traces: where traces are written.
        examples: for each machine and search; the profile ``dev`` decides by default.
    """

    release: str
    against: str
    machines: tuple[str, ...]
    traces: Path
    examples: int | None = None


@dataclass(frozen=True)
class Proposal:
    """What the package would have to say of a release.

    Attributes:
        plan: what was asked.
        probed: its behaviours, and which traces show them.
        changes: the clauses that begin or end with it.
        differing: the traces in which it differs from the release that it is compared with, by id.
        patch: all of it as a diff of the sources; empty if they say so already.
        otherwise: the behaviours that the table of the package contradicts, if it has the release.
    """

    plan: Plan
    probed: Probed
    changes: tuple[ClauseChange, ...]
    differing: Mapping[str, Failing]
    patch: str
    otherwise: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """True if known behaviours explain everything and the table contradicts none of them."""
        return not (self.probed.failing or self.otherwise)


def propose(plan: Plan, progress: Progress | None = None) -> Proposal:
    """Find the behaviours of a release and the clauses that begin or end with it.

    Raises:
        UnknownReleaseError: it is not locked.
        ToolError: its classes cannot be had here.
    """
    release = load_release(plan.release).name
    trials = Trials(release, plan.machines, progress)
    base = Dialect(release, DIALECTS[plan.against].like)
    known = {"list_offsets_versions": _list_offsets(release, progress)}
    start = with_overrides(base, **known)
    probed = probe(trials, base, known)
    for _ in range(_ROUNDS):
        if not trials.add(hunt(probed.dialect, plan.machines, plan.traces, plan.examples, progress=progress)):
            break
        again = probe(trials, base, probed.turned)
        probed = replace(again, because={**probed.because, **again.because})
    differing = trials.result(start).failing
    otherwise = tuple(
        name
        for name in (ROWS.keys() - probed.unread if has_release(release) else ())
        if getattr(DIALECTS[release], name) != getattr(probed.dialect, name)
    )
    found = (*changes_of(probed.dialect, plan.machines, probed.unread), *_ended(trials, probed, start))
    changes = tuple(_with_trace(one, differing) for one in {one.clause.id: one for one in reversed(found)}.values())
    return Proposal(plan, probed, changes[::-1], differing, patch_of(probed.dialect, changes[::-1]), otherwise)


def _list_offsets(release: str, progress: Progress | None) -> tuple[int, int]:
    """The versions of the request ListOffsets that a release's own classes know."""
    loader = release_loader(release, "index", progress)
    keys = start_jvm().JClass("org.apache.kafka.common.protocol.ApiKeys", loader=loader)
    return int(keys.LIST_OFFSETS.oldestVersion()), int(keys.LIST_OFFSETS.latestVersion())


def _ended(trials: Trials, probed: Probed, start: Dialect) -> Iterator[ClauseChange]:
    """Yield the clauses that the release breaks by values that no known release has, or by nothing that is known."""
    others = [dialect for release, dialect in DIALECTS.items() if release != start.release]
    new = {
        name: getattr(start, name)
        for name, value in probed.turned.items()
        if name in probed.because and value not in {getattr(other, name) for other in others}
    }
    result = trials.result(with_overrides(probed.dialect, **new))
    for clause, trace in broken_clauses(result).items():
        ended = load_clauses()[clause]
        if isinstance(ended.releases, BehaviourRange) and ended.releases.behaviour in probed.turned:
            continue  # the row says it
        with suppress(ValueError):  # it holds in this release alone
            yield change(ended, start.release, trace=trace, holds=False)


def _with_trace(one: ClauseChange, differing: Mapping[str, Failing]) -> ClauseChange:
    """The change with the shortest trace in which the release differs at a step about the clause's family."""
    if one.trace:
        return one
    mine = family(one.clause.id)
    for id_, failing in sorted(differing.items(), key=lambda item: len(item[1].trace.operations)):
        if mine in map(family, failing.divergence.clauses):
            return replace(one, trace=id_)
    return one
