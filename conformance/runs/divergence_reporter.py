"""Reporter of unique divergences: each is shrunk, saved as a trace, and emitted with the command that replays it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from conformance.lockstep.divergence import DivergenceError, decide
from conformance.runs.divergence_event import divergence_event, in_one_line
from conformance.runs.divergences.deduplication import deduplicate
from conformance.runs.divergences.root_causes import are_twins, group_by_root_cause
from conformance.runs.divergences.signatures import Buckets, signature_detail, signature_of
from conformance.runs.replay import replay_operations
from conformance.runs.shrinking.divergence import shrink_divergence
from conformance.runs.shrinking.reductions import is_valid_sequence
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from conformance.events import Diverged, Sink
    from conformance.implementations.protocol import Implementation
    from conformance.lockstep.divergence import Decision, Divergence
    from conformance.operations import Operation
    from conformance.runs.chunks import ChunkResult
    from conformance.runs.divergences.deduplication import UniqueDivergence
    from conformance.runs.machine_run import MachineRun
    from conformance.runs.plan import Plan
    from conformance.runs.sameness import Sameness


_MOST_FORMS: Final = 3
"""The maximum number of other forms in which a divergence is shown."""
_SECONDS_OF_FORM: Final = 5.0
"""The maximum time for shrinking one of the other forms."""
ANOTHER_WAY: Final = "the same clause, another way; it may have another cause"
"""The reason for listing a form that has the clause of a divergence: nothing proves that it has the same cause."""
TWIN: Final = "the same goes wrong in the other kind of index"
"""The reason for listing a divergence of the time index that the offset index has as well."""


def _group_by_root_cause(
    run: MachineRun, cases: list[UniqueDivergence]
) -> list[tuple[UniqueDivergence, list[tuple[UniqueDivergence, str]]]]:
    """Return the divergences of one implementation by root cause; if grouping fails, each is a separate group."""
    try:
        return group_by_root_cause(cases, partial(_first_difference, run))
    except Exception:  # noqa: BLE001 -- a failure of the harness must not lose divergences
        return [(case, []) for case in cases]


class DivergenceReporter:
    """Reporter of a run's divergences. Each unique divergence is emitted once, after all machines have run.

    With ``stop_at_first``, the first divergence of each participant is emitted immediately instead.

    Args:
        sink: A callback that receives the events.

    Attributes:
        count: The number of unique divergences.
    """

    def __init__(self, plan: Plan, seed: int, sink: Sink) -> None:
        self.plan = plan
        self.seed = seed
        self.sink = sink
        self.count = 0
        self._events: list[tuple[UniqueDivergence | None, Diverged]] = []
        self._known: dict[Sameness, UniqueDivergence] = {}  # the reported divergence of each found one
        self._reported_when_found: list[UniqueDivergence] = []

    def found(self, run: MachineRun, evidence: ChunkResult) -> list[UniqueDivergence]:
        """Add the result of a machine, and return its unique divergences."""
        if evidence.broken is not None:
            self._queue(
                None,
                as_event(
                    run,
                    _shrunk(run.lockstep, DivergenceError(*evidence.broken), None, self.plan.shrink_time),
                    self.seed,
                ),
            )
        if self.plan.stop_at_first:
            return [one for one in self._reported_when_found if one.machine == run.name]
        found = deduplicate(run.name, evidence.buckets, run.specification, evidence.credited)
        cases: dict[str, list[UniqueDivergence]] = {}
        for one in found:
            if one.identity not in self._known:
                shrink_and_save(run, one, self.seed)
                cases.setdefault(one.identity.implementation, []).append(one)
        own = [each for same in cases.values() for each in _group_by_root_cause(run, same)]
        for case, others in sorted(own, key=lambda each: each[0].first):
            if not self._is_twin(case, others):
                self._emit_group(case, others)
        return self._unique_for_machine(found)

    def _emit_group(self, case: UniqueDivergence, others: list[tuple[UniqueDivergence, str]]) -> None:
        """Queue a divergence with its related divergences."""
        event = _with_related(case.event, others)
        case.reported_clauses = frozenset(event.clauses)
        for one in (case, *(other for other, _ in others)):
            self._known[one.identity] = case
        self._queue(case, event)

    def _is_twin(self, case: UniqueDivergence, others: list[tuple[UniqueDivergence, str]]) -> bool:
        """Return True if a divergence in the other kind of index has the same root cause, and relate the two.

        Args:
            others: The related divergences of ``case``, each with the reason.
        """
        for number, (reported, event) in enumerate(self._events):
            if reported is not None and are_twins(reported, case):
                self._events[number] = reported, _with_related(event, [(case, TWIN), *others])
                self._known.update((one.identity, reported) for one in (case, *(other for other, _ in others)))
                return True
        return False

    def _unique_for_machine(self, found: list[UniqueDivergence]) -> list[UniqueDivergence]:
        """Return the divergences of a machine, once per root cause. Related divergences count as occurrences."""
        mine: dict[Sameness, UniqueDivergence] = {}
        for one in found:
            reported = self._known[one.identity]
            one.reported_clauses = reported.reported_clauses
            if one is not reported:
                reported.merge(one)
            known = mine.setdefault(reported.identity, one)
            if known is not one and known is not reported:
                known.merge(one)
        return list(mine.values())

    def report_first_failures(self, run: MachineRun, evidence: ChunkResult) -> None:
        """With ``stop_at_first``, emit the first divergence of each participant that has dropped out."""
        if not self.plan.stop_at_first:
            return
        reported = {(one.machine, one.representative.divergence.participant) for one in self._reported_when_found}
        for key, bucket in evidence.buckets.items():
            if (own := (run.name, bucket.divergence.participant)) not in reported:
                reported.add(own)
                (one,) = deduplicate(run.name, Buckets({key: bucket}), run.specification, {})
                self._reported_when_found.append(one)
                self.count += 1
                shrink_and_save(run, one, self.seed)
                one.reported_clauses = frozenset(one.event.failure["clauses"])
                self.sink(one.event)

    def _queue(self, unique: UniqueDivergence | None, event: Diverged) -> None:
        """Queue an event; ``unique`` is None for a divergence of the reference."""
        self.count += 1
        self._events.append((unique, event))

    def finish(self) -> None:
        """Emit all queued divergences; violations of MUST clauses come first."""
        events = [
            event
            if one is None
            else replace(event, releases=one.releases, machines=one.machines, occurrences=one.count)
            for one, event in self._events
        ]
        for event in sorted(events, key=is_observed_only_event):
            self.sink(event)
        self._events.clear()


def is_observed_only_event(event: Diverged) -> bool:
    """Return True if only clauses of level OBSERVED are violated: what Kafka happens to do."""
    levels = {level for _, level, _ in event.requirements}
    return levels == {"OBSERVED"}


def _with_related(event: Diverged, others: Iterable[tuple[UniqueDivergence, str]]) -> Diverged:
    """Return an event with further related divergences, each with the reason."""
    more = (_related_json(other.event, other.count, why) for other, why in others)
    return replace(event, related=(*event.related, *more))


def _related_json(event: Diverged, occurrences: int, why: str) -> dict[str, Any]:
    return {
        "signature": event.signature,
        "clause": event.clause,
        "clauses": event.failure["clauses"],
        "occurrences": occurrences,
        "trace": event.trace,
        "reason": why,
    }


def shrink_and_save(run: MachineRun, unique: UniqueDivergence, seed: int) -> None:
    """Shrink a divergence in a lockstep of the participant alone, save it, and set its steps and its event."""
    subject = _participant(run, unique)
    unique.minimized = _alone(run, subject, unique, run.plan.shrink_time)
    event = as_event(run, unique.minimized, seed, run.specification(subject.name))
    # The failing clause is the first clause of its level.
    requirements = sorted(event.requirements, key=lambda one: (one[1] != "MUST", one[0] != unique.clause))
    unique.event = replace(
        event,
        requirements=tuple(requirements),
        clause=unique.clause,
        releases=unique.releases,
        occurrences=unique.count,
        related=tuple(_other_forms(run, subject, unique, seed)),
    )


def _participant(run: MachineRun, unique: UniqueDivergence) -> Implementation:
    name = unique.representative.divergence.participant
    return next(subject for _, subject in run.subjects if subject.name == name)


def _alone(run: MachineRun, subject: Implementation, unique: UniqueDivergence, seconds: float) -> DivergenceError:
    """Return the representative of a divergence, shrunk in a lockstep of the participant alone."""
    divergence = unique.representative.divergence

    def tolerate_others(found: Divergence) -> Decision:
        return decide(found, run.plan.level, tolerated=not unique.matches_participant(found))

    lockstep = run.machine.new_lockstep(
        [subject], run.scratch / "shrink", releases=[divergence.release], on_divergence=tolerate_others
    )
    return _shrunk(
        lockstep, DivergenceError(divergence, unique.representative.operations), unique.matches_participant, seconds
    )


def _other_forms(
    run: MachineRun, subject: Implementation, unique: UniqueDivergence, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield other forms of a divergence with their own steps. Their root cause may be the same or not."""
    mine = unique.representative.divergence
    for bucket, times in unique.other_forms[:_MOST_FORMS]:
        if bucket.divergence.participant != mine.participant:
            continue
        other = replace(unique, representative=bucket, shape=signature_of(bucket.divergence))
        event = as_event(run, _alone(run, subject, other, min(run.plan.shrink_time, _SECONDS_OF_FORM)), seed)
        yield _related_json(replace(event, clause=unique.clause), times, ANOTHER_WAY)


def _first_difference(
    run: MachineRun, unique: UniqueDivergence, operations: tuple[Operation, ...]
) -> Divergence | None:
    """Return the participant's first divergence in these operations that counts at the run's level, or None."""
    if not is_valid_sequence(operations):
        return None
    subject = _participant(run, unique)
    with scratch_directory() as scratch:
        lockstep = run.machine.new_lockstep(
            [subject],
            scratch,
            releases=[subject.release],
            on_divergence=lambda each: decide(each, run.plan.level, tolerated=not each.counts(run.plan.level)),
        )
        try:
            replay_operations(lockstep, operations)
        except DivergenceError as error:
            return error.divergence if error.divergence.participant == subject.name else None
        except (TypeError, ValueError, LookupError):
            return None  # the remaining steps depend on a deleted step
    return None


def _shrunk(
    lockstep: Any, failure: DivergenceError, same: Callable[[Divergence], bool] | None, seconds: float
) -> DivergenceError:
    """Return the shrunk divergence; if the shrinker fails, the original one with the reason."""
    try:
        return shrink_divergence(lockstep, failure, same=same, seconds=seconds)
    except Exception as error:  # noqa: BLE001 -- a divergence is reported even if it cannot be shrunk
        failure.shrinking = f"not shrunk, because the shrinker failed: {in_one_line(error)}"
        return failure


def as_event(
    run: MachineRun, failed: DivergenceError, seed: int, specification: str = "", machine: str = ""
) -> Diverged:
    """Save the trace of a divergence and return the event.

    Args:
        specification: The ``-i`` argument of the implementation that diverges; empty for the reference.
        machine: The machine of the operations; by default the machine of the run.
    """
    machine = machine or run.name
    event = divergence_event(
        machine,
        failed.divergence,
        failed.operations,
        run.plan.traces,
        implementation=specification,
        seed=seed,
        shrinking=failed.shrinking,
        level=run.plan.level,
        edition=run.plan.edition,
        profile=run.plan.profile.name,
    )
    return replace(
        event, signature=signature_of(failed.divergence), signature_detail=signature_detail(failed.divergence)
    )
