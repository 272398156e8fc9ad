"""Event stream of a comparison of two Kafka releases, for ``conformance report``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version as version_of_package
from typing import TYPE_CHECKING

from conformance.events import Diverged, Result, RunFinished, RunStarted
from conformance.experiments.release_diff.sides import PROFILE
from conformance.lockstep.divergence import failure_json
from conformance.runs.divergence_event import requirements_of
from conformance.runs.divergences.signatures import signature_of

if TYPE_CHECKING:
    from conformance.events import Event
    from conformance.experiments.release_diff.comparison import Comparison
    from conformance.experiments.release_diff.difference import Difference


def events_of(comparison: Comparison, *, all_expected: bool) -> Iterator[Event]:
    """Yield the header, the differences, a result for each state machine, and the footer.

    Args:
        comparison: The result of the comparison.
        all_expected: True if all differences are expected, or nothing differs.
    """
    plan = comparison.plan
    old, new = plan.sides
    versions = {"kidx": version_of_package("kidx"), "hypothesis": version_of_package("hypothesis")}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    releases = (old.release,)
    specification = new.specification if new.is_build else f"jvm {new.release}"
    parameters = (releases, (specification,), plan.machines, PROFILE.name, "observed", plan.seed)
    yield RunStarted(*parameters, versions, now, seed_source="given")
    for difference in comparison.differences:
        yield _diverged(difference, specification)
    for machine in plan.machines:
        found = [difference for difference in comparison.differences if difference.machine == machine]
        clauses = {clause for difference in found for clause in difference.implicated.old}
        verdicts = dict.fromkeys(sorted(clauses), "diverges")
        yield Result(
            machine,
            specification,
            old.release,
            comparison.examples,
            comparison.steps,
            comparison.seconds,
            len(found),
            dict.fromkeys(verdicts, 1),
            verdicts,  # type: ignore[arg-type]
            {"compared with": old.label},
        )
    compared = comparison.compared(int(not all_expected))
    missing = {"missing": list(comparison.missing)} if comparison.missing else {}
    yield RunFinished(compared.conclusion, comparison.steps, comparison.seconds, missing)


def _diverged(difference: Difference, specification: str) -> Diverged:
    ids = (*difference.implicated.old, *difference.implicated.new)
    return Diverged(
        difference.machine,
        failure_json(difference.divergence),
        requirements_of(ids),
        tuple(map(str, difference.operations)),
        str(difference.trace),
        difference.new.side.replay(difference.trace),
        specification,
        releases=(difference.old.side.release,),
        machines=(difference.machine,),
        clause=ids[0] if ids else "",
        signature=signature_of(difference.divergence),
    )
