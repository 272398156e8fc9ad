"""``-i wire:HOST:PORT``: the wire machine against a running broker, compared with each release."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from conformance.events import Progressed, Result
from conformance.kafka.client import ClientError
from conformance.lockstep.scopes.wire import MACHINE, WireLockstep
from conformance.machines.wire import WireMachine
from conformance.runs.divergence_event import divergence_event
from conformance.runs.server_examples import Amount, run_examples, verdicts_of
from conformance.runs.shrinking import SHRINK_SECONDS, shrink
from conformance.runs.wire_options import WireOptions
from conformance.runs.wire_root_causes import group_by_root_cause
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.events import Sink
    from conformance.expectations import ExpectationTracker
    from conformance.implementations.wire.broker import WireBroker
    from conformance.lockstep import Divergence
    from conformance.lockstep.scopes.wire_topic import Statistics, WireDivergence
    from conformance.operations import Operation
    from conformance.runs.wire_root_causes import RelatedDivergence

_AMOUNTS: Final = {"dev": Amount(3, 8, 2), "ci": Amount(8, 15, 6), "nightly": Amount(60, 30, 40)}
"""The amounts by profile; only a broker that was started for the run is stopped."""
_ANSWERS: Final = {"dev": 30_000, "ci": 150_000, "nightly": 2_000_000}


@dataclass(frozen=True, slots=True)
class WireRun:
    """Parameters of a run.

    Attributes:
        implementation: The ``-i`` argument, such as ``"wire:localhost:9092"``.
        seed: The seed of all random choices.
        profile: ``dev``, ``ci`` or ``nightly``.
        level: The level of the verdict; a broker has no API, so that "api" is "observed".
        topics: The number of topics, instead of the profile's number.
        seconds: The time after which no more requests are sent; None for no limit.
        shrink_time: The maximum time for shrinking each divergence, seconds.
        traces: The directory for traces of divergences.
        sink: A callback that receives every event.
        ledger: The expectations.
        options: The connection options.
    """

    implementation: str
    seed: int
    profile: str
    level: Literal["must", "api", "observed"]
    traces: Path
    sink: Sink
    ledger: ExpectationTracker
    topics: int | None = None
    seconds: float | None = None
    shrink_time: float = SHRINK_SECONDS
    options: WireOptions = field(default_factory=WireOptions)


def run_wire(releases: Sequence[str], run: WireRun, announce: Callable[[str], None]) -> list[Result]:
    """Compare one broker with each release, one after the other.

    Args:
        releases: The releases.
        run: The parameters of the run.
        announce: A callback that receives a description of the topics to be created, before the first one.

    Raises:
        ToolError: The broker cannot be reached, hangs, closes the connection, or lacks a required feature; divergences
            found before are emitted.
    """
    results: list[Result] = []
    for number, release in enumerate(releases, start=1):
        with ExitStack() as stack:
            broker = stack.enter_context(run.options.open(run.implementation))
            scratch = stack.enter_context(scratch_directory())
            stops = "" if broker.process is None else "stops, kills and starts it, "
            end = "deletes" if broker.deletes else "leaves"
            announce(
                f"creates topics named {broker.prefix}… on {broker.address}, {stops}{end} them at the end, and touches"
                " no other topic"
            )
            result = _ReleaseRun(run, broker, release, scratch).carry_out()
        run.sink(Progressed(MACHINE, sum(r.examples for r in results), result.steps, number / len(releases)))
        run.sink(result)
        results.append(result)
    return results


class _ReleaseRun:
    """A broker that is compared with one release."""

    def __init__(self, run: WireRun, broker: WireBroker, release: str, scratch: Path) -> None:
        self.run = run
        self.broker = broker
        self.release = release
        self.started = time.monotonic()
        self.expected: set[str] = set()
        self.lockstep = self._lockstep(scratch / "run", is_over=self._is_late, limit=_ANSWERS[run.profile])
        self._scratch = scratch

    def _lockstep(self, scratch: Path, **options: Any) -> WireLockstep:
        return WireLockstep(
            self.broker,
            self.release,
            scratch,
            level="must" if self.run.level == "must" else "observed",
            on_divergence=self._is_known,
            **options,
        )

    def _is_late(self) -> bool:
        return self.run.seconds is not None and time.monotonic() - self.started > self.run.seconds

    def carry_out(self) -> Result:
        """Run the examples, and emit their divergences.

        Raises:
            ClientError: The connection is lost; the divergences found until then are emitted.
        """
        with self._reporting():
            self._examples()
        return self.result()

    def _examples(self) -> None:
        amount = _AMOUNTS[self.run.profile]
        if self.run.topics is not None:
            amount = amount._replace(examples=self.run.topics)
        bound = WireMachine.on(self.lockstep, restarts=amount.restarts if self.broker.process else 0)
        # A topic that was abandoned does not end the run.
        run_examples(bound, self.run.seed, amount, lambda: self.lockstep.is_exhausted)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except ClientError:
            for difference, sights in self._root_divergences():
                self._tell(difference, "the broker is gone: not shrunk", sights)
            raise
        for difference, sights in self._root_divergences():
            self._tell(*self._shrunk(difference), sights)

    def _root_divergences(self) -> list[tuple[WireDivergence, list[RelatedDivergence]]]:
        return list(group_by_root_cause(self.lockstep.differences.values()))

    def _shrunk(self, difference: WireDivergence) -> tuple[WireDivergence, str]:
        numbers = iter(range(1 << 30))
        key = difference.divergence.clauses[0], difference.shape

        def still(operations: Sequence[Operation]) -> WireDivergence | None:
            fresh = self._lockstep(self._scratch / f"shrink-{key[0]}-{next(numbers)}")
            run_then_check(fresh, operations)
            return fresh.differences.get(key)

        found = shrink(difference.operations, still, seconds=self.run.shrink_time)
        if found is None:
            return difference, "not reproduced when its operations were replayed: not shrunk"
        return found.shown, "minimal" if found.minimal else f"not minimal: {self.run.shrink_time:g} s were over"

    def _is_known(self, divergence: Divergence, shape: str) -> bool:
        number = self.run.ledger.find(divergence.clauses, shape, MACHINE, self.run.implementation, self.release)
        if number is None:
            return False
        self.expected.update(divergence.clauses)
        return True

    def _tell(self, difference: WireDivergence, shrinking: str, sights: Sequence[RelatedDivergence]) -> None:
        run, divergence = self.run, difference.divergence
        event = divergence_event(
            MACHINE,
            divergence,
            difference.operations,
            run.traces,
            implementation=run.implementation,
            seed=run.seed,
            shrinking=shrinking,
            level="must" if run.level == "must" else "observed",
        )
        key = divergence.clauses[0], difference.shape
        run.sink(
            replace(
                event,
                clause=divergence.clauses[0],
                signature=difference.shape,
                occurrences=self.lockstep.statistics.occurrences[key],
                related=tuple(map(self._related_json, sights)),
            )
        )

    def _related_json(self, sight: RelatedDivergence) -> dict[str, Any]:
        difference, because = sight
        clause = difference.divergence.clauses[0]
        return {
            "signature": difference.shape,
            "clause": clause,
            "clauses": [clause],
            "occurrences": self.lockstep.statistics.occurrences[clause, difference.shape],
            "trace": "",
            "reason": because,
        }

    def result(self) -> Result:
        """Return the result of this release."""
        tally, found = self.lockstep.statistics, self.lockstep.differences.values()
        broken = {clause for difference in found for clause in difference.divergence.clauses}
        clauses, verdicts = verdicts_of(MACHINE, self.release, tally.clauses, broken, self.expected)
        return Result(
            MACHINE,
            self.run.implementation,
            self.release,
            tally.topics,
            tally.steps,
            time.monotonic() - self.started,
            len(self._root_divergences()),
            clauses,
            verdicts,
            details_of(self.broker, tally),
        )


def details_of(broker: WireBroker, tally: Statistics) -> dict[str, Any]:
    """Return the details of a result: the requests, and the features that were skipped."""
    return {
        "address": str(broker.address),
        "answers": tally.answers,
        "asked": dict(sorted(tally.asked.items())),
        "fetches": tally.fetches,
        "acknowledged": tally.acknowledged,
        "left": tally.abandoned,
        "unstamped": tally.without_log_append_time,
        "restarts": tally.restarts,
        "kills": tally.kills,
        "performed": sorted(tally.performed),
        "expected": tally.expected,
        "versions": list(broker.versions),
        "without": sorted(broker.without),
        "refused_settings": dict(broker.refused_settings),
    }


def run_then_check(lockstep: WireLockstep, operations: Sequence[Operation]) -> None:
    """Execute operations, and compare after the last one only.

    Raises:
        ClientError: The connection is lost.
    """
    for number, operation in enumerate(operations, start=1):
        lockstep.watches = number == len(operations)
        lockstep.perform(operation)
    lockstep.close_topic()
