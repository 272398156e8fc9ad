"""Verdicts for each implementation and clause after the run of a machine, and the coverage of its generator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.attribution.tables import clauses_for, operations_for
from conformance.clauses import load_clauses
from conformance.clauses.machines import MACHINES, why_not_driven
from conformance.events import Measured, Result
from conformance.implementations.forms import directory_of
from conformance.implementations.process.participant import ProcessParticipant
from conformance.kafka.releases import newest
from conformance.lockstep.generator_coverage import EXAMPLES, measured, missed_rows, name_of
from conformance.operations import every_signature
from conformance.operations.log_capabilities import needs_missing_capability

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from conformance.events import Verdict
    from conformance.implementations.protocol import Implementation
    from conformance.runs.chunks import ChunkResult
    from conformance.runs.divergences.deduplication import UniqueDivergence
    from conformance.runs.machine_run import MachineRun


def results_of(
    run: MachineRun, evidence: ChunkResult, found: Sequence[UniqueDivergence], seconds: float
) -> Iterator[Result]:
    """Yield a result for each implementation and release, including those that the machine cannot test.

    Args:
        evidence: The result of all its chunks.
        seconds: The duration.
    """
    for specification, subject in run.subjects:
        counts = evidence.credited.get(subject.name, Counter())
        clauses = {clause.id: counts.get(clause.id, 0) for clause in clauses_for(run.name, subject.release)}
        mine = [one for one in found if any(place.participant == subject.name for place in one.places)]
        if (opening := _lacks_opening(run, evidence, subject)) and not mine:
            yield _idle(run, specification, subject, opening)
            continue
        yield Result(
            run.name,
            specification,
            subject.release,
            *evidence.done_by(subject.name),
            seconds,
            len(mine),
            clauses,
            _verdicts(run, subject, clauses, evidence, mine),
            _details(run, evidence, subject),
            _operations(evidence, subject),
        )
    for (specification, release), error in run.unsupported.items():
        explains = directory_of(specification) or why_not_driven(run.name, release)
        yield _unsupported(run, specification, release, {"why": str(error)} if explains else {})


def _unsupported(run: MachineRun, specification: str, release: str, details: dict[str, str]) -> Result:
    """Return the result of an implementation that the machine cannot test."""
    ids = [clause.id for clause in clauses_for(run.name, release)]
    verdicts: dict[str, Verdict] = dict.fromkeys(ids, "unsupported")
    return Result(run.name, specification, release, 0, 0, 0.0, 0, dict.fromkeys(ids, 0), verdicts, details)


def _idle(run: MachineRun, specification: str, subject: Implementation, opening: str) -> Result:
    """Return the result of an implementation that answers the opening operation with ``unsupported``.

    A program has declared in its introduction that it has what the machine tests; a Python factory declares nothing.
    """
    result = _unsupported(run, specification, subject.release, {})
    if not isinstance(subject, ProcessParticipant):
        return result
    why = f"it declares {run.name}, and answers {opening} with unsupported"
    return replace(result, verdicts=dict.fromkeys(result.verdicts, "could-not-run"), details={"why": why})


def _lacks_opening(run: MachineRun, evidence: ChunkResult, subject: Implementation) -> str:
    """Return the operation without which an implementation cannot open what the machine tests; empty if it can."""
    opening = MACHINES[run.name].needs[0]
    lacks = opening in evidence.lacking.get(subject.name, ()) and not evidence.executed.get(subject.name)
    return opening if lacks else ""


def _operations(evidence: ChunkResult, subject: Implementation) -> dict[str, int]:
    """Return how often an implementation was compared in each operation that it has, of those that it could meet.

    A program that takes turns meets the operations of its examples, any other participant all operations of the run.
    """
    done, lacking = evidence.executed.get(subject.name, Counter()), evidence.lacking.get(subject.name, ())
    reached = {operation for operation, _, _ in evidence.kinds}
    if (own := evidence.requested.get(subject.name)) is not None:
        reached &= own
    return {
        name: done[name] for name in sorted(reached) if done[name] or (subject.supports(name) and name not in lacking)
    }


def _details(run: MachineRun, evidence: ChunkResult, subject: Implementation) -> dict[str, Any]:
    excused = evidence.excused.get(subject.name)
    failed = evidence.failed.get(subject.name)
    details: dict[str, Any] = {}
    if evidence.cut or evidence.not_replayed:
        wanted = run.plan.examples_of(run.name)
        details["cut_by_time"] = True
        details["not_executed"] = {
            "regression traces": [evidence.not_replayed, evidence.examples - evidence.drawn + evidence.not_replayed],
            "examples": [max(0, wanted - evidence.drawn), wanted],
        }
    if omitted := sorted(run.plan.omitted(run.name)):
        details["operations not run"] = omitted
    partners = run.turn_order.partners(subject.name)
    if partners > 1:
        details["takes_turns"] = partners
    if lacked := _lacked_needs(run, evidence, subject):
        details["lacks"] = lacked
    if excused:
        details["excused"] = dict(sorted(excused.items()))
    if failed:
        wanted = run.plan.examples_of(run.name) + evidence.examples - evidence.drawn
        left = evidence.left.get(subject.name)
        missing = 0 if left is None else max(0, wanted - left[0]) // partners
        details["failures"] = {
            "examples": evidence.done_by(subject.name)[0] + missing,
            "cut short": failed.total(),
            "not executed": missing,
            "shapes": dict(failed.most_common()),
            "not survived": sorted(_operations_of(failed) - evidence.survived.get(subject.name, set())),
            "avoided": evidence.avoided.get(subject.name, Counter()).total(),
        }
    return details


def _lacked_needs(run: MachineRun, evidence: ChunkResult, subject: Implementation) -> list[str]:
    """Return the operations that the machine needs and the implementation does not have."""
    lacking = evidence.lacking.get(subject.name, ())
    needs = (each.split() for each in MACHINES[run.name].needs)
    return [" or ".join(each) for each in needs if all(not subject.supports(op) or op in lacking for op in each)]


def _operations_of(failed: Iterable[str]) -> set[str]:
    """Return the operations of failures, whose signatures begin with them."""
    return {signature.partition(":")[0] for signature in failed}


def tolerance_rows(run: MachineRun, evidence: ChunkResult) -> Iterator[Measured]:
    """Yield the tolerated differences of implementations that lack a capability; a table of the reports."""
    for specification, subject in run.subjects:
        for words, steps in sorted(evidence.excused.get(subject.name, Counter()).items()):
            yield Measured("excused differences", f"{specification} {subject.release}: {words}", None, {"steps": steps})


def _verdicts(
    run: MachineRun,
    subject: Implementation,
    clauses: dict[str, int],
    evidence: ChunkResult,
    mine: Sequence[UniqueDivergence],
) -> dict[str, Verdict]:
    # Clauses of reported divergences, and implicated clauses that no other step exercised, diverge.
    diverging = {clause for clause in clauses if any(one.concerns(clause) for one in mine)}
    seen = (bucket.divergence for bucket in evidence.buckets.values())
    at_stake = {clause for each in seen if each.participant == subject.name for clause in each.clauses}
    diverging |= {clause for clause in at_stake if not clauses.get(clause)}
    # A step that violates a guarantee may also differ in a way that does not count at the level.
    catalogue = load_clauses()
    below = {clause for clause in diverging if not catalogue[clause].counts(run.plan.level)}
    diverging -= below
    expected = evidence.expected.get(subject.name, set())
    tolerated = evidence.tolerated.get(subject.name, set()) | below
    lacking = evidence.lacking.get(subject.name, set())
    # After a failure an example continues without the participant, and may exercise what it was never compared in.
    hidden = evidence.failed.get(subject.name) and run.turn_order.partners(subject.name) == 1
    capabilities = subject.capabilities
    verdicts: dict[str, Verdict] = {}
    for clause, count in clauses.items():
        unsupported = capabilities is not None and needs_missing_capability(clause, capabilities)
        if unsupported and clause not in diverging:
            verdicts[clause] = "unsupported"
        else:
            verdicts[clause] = verdict_of(clause, count, diverging, expected, tolerated)
        if verdicts[clause] == "not-run":
            if _lacks(run.name, subject, clause, lacking):
                verdicts[clause] = "unsupported"
            elif hidden and clause in evidence.reached.get(subject.name, ()):
                verdicts[clause] = "could-not-run"
    return verdicts


def verdict_of(
    clause: str,
    count: int,
    diverging: AbstractSet[str],
    expected: AbstractSet[str],
    tolerated: AbstractSet[str] = frozenset(),
) -> Verdict:
    """Return the verdict of a clause that an implementation can be tested for.

    Args:
        clause: The id of the clause.
        count: The number of steps that exercised it.
        diverging: The ids of clauses in which a divergence was found.
        expected: The ids of clauses whose divergences are expected.
        tolerated: The ids of clauses with a divergence that does not count at the level.
    """
    if clause in diverging:
        return "diverges"
    if clause in expected:
        return "expected-divergence"
    if clause in tolerated:
        return "tolerated"
    return "conforms" if count else "not-run"


def _lacks(machine: str, subject: Implementation, clause: str, lacking: set[str]) -> bool:
    """Return True if an implementation has none of the operations that can exercise a clause."""
    operations = operations_for(machine, clause)
    return bool(operations) and not any(subject.supports(name) and name not in lacking for name in operations)


def coverage_of(run: MachineRun, evidence: ChunkResult) -> Iterator[Measured]:
    """Yield the number of steps of generated examples that match each row of attribution.

    Args:
        evidence: The result of all its chunks.
    """
    yield from measured(run.name, evidence.drawn_kinds, demanded=_is_demanded(run, evidence))


def missing_coverage(run: MachineRun, evidence: ChunkResult) -> str:
    """Return a message about the rows that a run missed although the plan demands coverage; empty without any.

    Args:
        evidence: The result of all its chunks.
    """
    if not _is_demanded(run, evidence):
        return ""
    supported = {operation for operation in every_signature() if run.lockstep.supports(operation)}
    missed = missed_rows(run.name, evidence.drawn_kinds, supported)
    if not missed:
        return ""
    return f"the {run.name} machine never reached {len(missed)} rows: {'; '.join(map(name_of, missed[:5]))}"


def _is_demanded(run: MachineRun, evidence: ChunkResult) -> bool:
    """Return True if all rows are demanded: the plan says so, and there were enough examples.

    They are the rows of the newest rules, because an older release rejects other operations.
    """
    return (
        run.plan.demand_coverage
        and newest() in run.plan.releases
        and not evidence.buckets
        and evidence.broken is None
        and evidence.drawn >= EXAMPLES.get(run.name, 0)
    )
