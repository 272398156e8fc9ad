"""From a release's jars to what the package would have to say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from conformance.clauses import load_clauses
from conformance.experiments.release_diff.stakes import family
from conformance.experiments.release_proposal.clause_changes import ClauseChange, change, changes_of
from conformance.experiments.release_proposal.hunting import hunt
from conformance.experiments.release_proposal.patch import has_row, patch_of
from conformance.experiments.release_proposal.probing import Probed, behaviours_of, fitted, probe
from conformance.experiments.release_proposal.suspects import broken_clauses
from conformance.experiments.release_proposal.trials import Trials
from conformance.implementations.jvm.virtual_machine import release_loader, start_jvm
from conformance.kafka.releases import load_release
from kidx.dialect import DIALECTS, Dialect, varied

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.experiments.release_proposal.trials import Failing
    from conformance.kafka.fetch import Progress
    from conformance.operations.trace import Trace

_ROUNDS: Final = 3


@dataclass(frozen=True)
class Plan:
    """What is to be proposed.

    Attributes:
        release: the new one; locked, by the package or its user.
        against: a known release, whose row is the first guess.
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
        probed: its row, and what was found out of every column.
        changes: the clauses that begin or end with it.
        differing: the traces in which it differs from the release that it is compared with, by id.
        patch: all of it as a diff of the sources; empty if they say so already.
        otherwise: the columns in which the table of the package contradicts what was found, if it has the release.
    """

    plan: Plan
    probed: Probed
    changes: tuple[ClauseChange, ...]
    differing: Mapping[str, Failing]
    patch: str
    otherwise: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether a row of known values says all that the release does, and the table nothing else."""
        return not (self.probed.failing or self.probed.behaviours or self.otherwise)


def propose(plan: Plan, progress: Progress | None = None) -> Proposal:
    """Finds the row of a release and the clauses that begin or end with it.

    Raises:
        UnknownReleaseError: it is not locked.
        ToolError: its classes cannot be had here.
    """
    release = load_release(plan.release).name
    trials = Trials(release, plan.machines, progress)
    start = replace(DIALECTS[plan.against], release=release, list_offsets_versions=_list_offsets(release, progress))
    probed = probe(trials, start)
    for _ in range(_ROUNDS):
        if not trials.add(hunt(probed.dialect, plan.machines, plan.traces, plan.examples, progress=progress)):
            break
        probed = probe(trials, probed.dialect)
    if trials.add(_between(plan, probed, progress)):
        probed = probe(trials, probed.dialect)
    differing = trials.result(start).failing
    otherwise = _otherwise(release, probed) if has_row(release) else ()
    found = (*changes_of(probed.dialect, plan.machines, _alike(probed)), *_ended(trials, probed, start))
    changes = tuple(_with_trace(one, differing) for one in found)
    return Proposal(plan, probed, changes, differing, patch_of(probed.dialect, changes), otherwise)


def _alike(probed: Probed) -> list[Dialect]:
    """The dialects with the values that nothing tells from the proposed ones."""
    return [
        fitted(replace(probed.dialect, **{column: value}))
        for column, values in probed.kept.items()
        for value in values[1:]
    ]


def _otherwise(release: str, probed: Probed) -> tuple[str, ...]:
    mine = DIALECTS[release]
    decided = {column: values[0] for column, values in probed.kept.items() if len(values) == 1}
    return tuple(column for column, value in decided.items() if getattr(mine, column) != value)


def _list_offsets(release: str, progress: Progress | None) -> tuple[int, int]:
    """The versions of the request ListOffsets that a release's own classes know."""
    loader = release_loader(release, "index", progress)
    keys = start_jvm().JClass("org.apache.kafka.common.protocol.ApiKeys", loader=loader)
    return int(keys.LIST_OFFSETS.oldestVersion()), int(keys.LIST_OFFSETS.latestVersion())


def _between(plan: Plan, probed: Probed, progress: Progress | None) -> list[Trace]:
    """Traces that tell values apart which the kept ones do not."""
    found: list[Trace] = []
    for column, values in probed.kept.items():
        for value in values[1:]:
            other = fitted(replace(probed.dialect, **{column: value}))
            if column != "index" or behaviours_of(other) != behaviours_of(probed.dialect):
                found += hunt(other, plan.machines, plan.traces, plan.examples, first=True, progress=progress)
    return found


def _ended(trials: Trials, probed: Probed, start: Dialect) -> Iterator[ClauseChange]:
    """Clauses that the release breaks by values that no known release has, or by nothing that is known."""
    others = [dialect for release, dialect in DIALECTS.items() if release != start.release]
    new = {
        column: getattr(start, column)
        for column in probed.kept
        if getattr(probed.dialect, column) not in {getattr(other, column) for other in others}
    }
    result = trials.result(varied(replace(probed.dialect, **new), **probed.behaviours))
    for clause, trace in broken_clauses(result).items():
        with suppress(ValueError):  # it holds in this release alone
            yield change(load_clauses()[clause], start.release, trace=trace, holds=False)


def _with_trace(one: ClauseChange, differing: Mapping[str, Failing]) -> ClauseChange:
    """The change with the shortest trace in which the release differs at a step about the clause's family."""
    if one.trace:
        return one
    mine = family(one.clause.id)
    for id_, failing in sorted(differing.items(), key=lambda item: len(item[1].trace.operations)):
        if mine in map(family, failing.divergence.clauses):
            return replace(one, trace=id_)
    return one
