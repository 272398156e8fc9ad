"""What a machine's run says of each implementation and clause, and of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from conformance import attribution
from conformance.clauses import clauses_for
from conformance.errors import ToolError
from conformance.events import Measured, Result
from conformance.implementations.forms import directory_of
from conformance.kafka.releases import newest
from conformance.lockstep.generator_coverage import cells_of, demanded_examples, empty_cells, impossible_cells, measured
from conformance.operations import every_signature
from conformance.operations.log_capabilities import is_beyond

if TYPE_CHECKING:
    from conformance.events import Verdict
    from conformance.runs.differences.distinct import Distinct
    from conformance.runs.evidence import Evidence
    from conformance.runs.machine_run import MachineRun
    from conformance.runs.participation import Participation


def results_of(run: MachineRun, evidence: Evidence, found: Sequence[Distinct], seconds: float) -> Iterator[Result]:
    """A row for each implementation and release, also of those that the machine cannot drive.

    Args:
        run: the machine's.
        evidence: of all its chunks.
        found: the distinct differences.
        seconds: how long it took.
    """
    for specification, subject in run.subjects:
        counts = evidence.credited.get(subject.name, Counter())
        clauses = {clause.id: counts.get(clause.id, 0) for clause in clauses_for(run.name, subject.release)}
        mine = [one for one in found if any(place.participant == subject.name for place in one.places)]
        yield Result(
            run.name,
            specification,
            subject.release,
            evidence.examples,
            evidence.steps,
            seconds,
            len(mine),
            clauses,
            _verdicts(run.name, subject, clauses, evidence, mine),
            _details(evidence, subject),
        )
    for specification, error in run.unsupported.items():
        why = {"why": str(error)} if directory_of(specification) else {}
        for release in run.plan.releases:
            ids = [clause.id for clause in clauses_for(run.name, release)]
            verdicts: dict[str, Verdict] = dict.fromkeys(ids, "unsupported")
            yield Result(run.name, specification, release, 0, 0, 0.0, 0, dict.fromkeys(ids, 0), verdicts, why)


def _details(evidence: Evidence, subject: Participation) -> dict[str, Any]:
    excused = evidence.excused.get(subject.name)
    cut = {"cut_by_time": True} if evidence.cut else {}
    return cut | ({"excused": dict(sorted(excused.items()))} if excused else {})


def excused_in(run: MachineRun, evidence: Evidence) -> Iterator[Measured]:
    """What was not held against implementations because they lack a capability; a table of the reports."""
    for specification, subject in run.subjects:
        for words, steps in sorted(evidence.excused.get(subject.name, Counter()).items()):
            yield Measured("excused differences", f"{specification} {subject.release}: {words}", None, {"steps": steps})


def _verdicts(
    machine: str, subject: Participation, clauses: dict[str, int], evidence: Evidence, mine: Sequence[Distinct]
) -> dict[str, Verdict]:
    # What is told of, and what was at stake in differences and held in no other step.
    diverging = {clause for clause in clauses if any(one.concerns(clause) for one in mine)}
    at_stake = {clause for kind in evidence.sightings if kind.participant == subject.name for clause in kind.clauses}
    diverging |= {clause for clause in at_stake if not clauses.get(clause)}
    expected = evidence.expected.get(subject.name, set())
    lacking = evidence.lacking.get(subject.name, set())
    capabilities: frozenset[str] | None = getattr(subject, "capabilities", None)
    verdicts: dict[str, Verdict] = {}
    for clause, count in clauses.items():
        if clause in diverging:
            verdicts[clause] = "diverges"
        elif capabilities is not None and is_beyond(clause, capabilities):
            verdicts[clause] = "unsupported"
        elif clause in expected:
            verdicts[clause] = "expected-divergence"
        elif count:
            verdicts[clause] = "conforms"
        elif _lacks(machine, subject, clause, lacking):
            verdicts[clause] = "unsupported"
        else:
            verdicts[clause] = "not-run"
    return verdicts


def _lacks(machine: str, subject: Participation, clause: str, lacking: set[str]) -> bool:
    """Whether an implementation has none of the operations that can show a clause."""
    if "open" in lacking:
        return True
    rows = attribution.ROWS.get(machine, ())
    operations = {name for row in rows if row.clause == clause for name in row.operations.split()}
    return bool(operations) and not any(subject.supports(name) and name not in lacking for name in operations)


def coverage_of(run: MachineRun, evidence: Evidence) -> Iterator[Measured]:
    """The histogram of what drawn examples did in which state; the ci profile demands cells of it.

    Raises:
        ToolError: one that has to be reached is empty, after as many examples as that takes, or one was reached that
            cannot be.
    """
    cells = cells_of(evidence.drawn_cells)
    # The cells are those of the newest rules: an older release refuses what that answers, and the other way round.
    demanded = (
        run.plan.profile.name == "ci"
        and newest() in run.plan.releases
        and not evidence.sightings
        and evidence.broken is None
        and evidence.drawn >= demanded_examples(run.name)
    )
    yield from measured(run.name, cells, demanded=demanded)
    if not demanded:
        return
    impossible = impossible_cells(run.name, cells)
    if impossible:
        (operation, state, outcome), reason = impossible[0]
        raise ToolError(f"lockstep/cells.toml is wrong: {operation} on {state} came to {outcome}, although: {reason}")
    supported = {operation for operation in every_signature() if run.lockstep.supports(operation)}
    empty = empty_cells(run.name, cells, supported)
    if empty:
        told = ", ".join(f"{operation} on {state}: {outcome}" for operation, state, outcome in empty[:5])
        raise ToolError(f"the {run.name} machine never reached {len(empty)} cells of lockstep/cells.toml: {told}")
