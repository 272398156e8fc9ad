"""``-i wire:HOST:PORT``: the wire machine against a running broker, compared with each release."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from conformance.errors import ToolError
from conformance.lockstep.scopes.wire import MACHINE, WireLockstep
from conformance.machines.wire import WireMachine
from conformance.runs.server_run import ServerRun
from conformance.runs.wire_options import WireOptions
from conformance.runs.wire_root_causes import group_by_root_cause
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from conformance.events import Result
    from conformance.implementations.wire.broker import WireBroker
    from conformance.lockstep import DivergenceError
    from conformance.lockstep.scopes.wire_topic import Statistics
    from conformance.operations import Operation


class WireRun(ServerRun):
    """Run of one broker that is tested only through the protocol.

    The run announces the topics that it will create before it creates the first, and how to remove them by hand. A
    request without a usable response is a divergence. If the broker lacks a required feature, cannot be reached or
    creates no topic, the run ends and is incomplete; it raises a ToolError if it has found no divergence until then,
    not even an expected one.
    """

    machine = MACHINE

    @property
    def level(self) -> Literal["must", "observed"]:
        """The level of the comparison; API clauses are about Java classes, so a broker has none."""
        return "must" if self.plan.level == "must" else "observed"

    def carry_out(self) -> Result:
        """Connect to the broker, run the examples, emit their divergences, and return the result."""
        with ExitStack() as stack:
            self._broker = broker = stack.enter_context((self.plan.wire or WireOptions()).open(self.name))
            self._scratch = stack.enter_context(scratch_directory())
            stops = "" if broker.process is None else "stops, kills and starts it, "
            end = "deletes" if broker.deletes else "leaves"
            self.context.announce(
                f"creates topics named {broker.prefix}… on {broker.address}, {stops}{end} them at the end, and touches"
                f" no other topic; after a kill -9, remove them with {broker.removal}"
            )
            self.started = time.monotonic()
            lockstep = self._lockstep("run", is_over=self.is_late, limit=self.amount.answers)
            bound = WireMachine.bind(
                lockstep, restarts=self.amount.restarts if broker.process else 0, omitted=self.omitted
            )
            ended: ToolError | None = None
            try:
                # A topic that was abandoned does not end the run.
                self.run_examples(bound, lambda: lockstep.is_exhausted)
            except ToolError as error:
                ended = error
            divergences = self._report(lockstep, is_gone=broker.gone is not None)
            if ended is not None:
                if not (divergences or lockstep.statistics.expected):
                    raise ended
                self.context.announce(f"ended early: {ended}")
            tally, diverging = lockstep.statistics, (clause for clause, _ in lockstep.differences)
            details = details_of(broker, tally) | ({"ended": str(ended)} if ended is not None else {})
            return self.result(tally, diverging, divergences, details)

    def _lockstep(self, name: str, **options: Any) -> WireLockstep:
        scratch = self._scratch / name
        return WireLockstep(
            self._broker, self.release, scratch, level=self.level, on_divergence=self.is_expected, **options
        )

    def _report(self, lockstep: WireLockstep, *, is_gone: bool = False) -> int:
        """Emit the divergences with different root causes, shrunk unless the broker is gone; return their number."""
        times = lockstep.statistics.occurrences
        found = list(group_by_root_cause(lockstep.differences.values()))
        for first, others in found:
            shown: DivergenceError = first
            if is_gone:
                shown.shrinking = "the broker is gone: not shrunk"
            else:
                shown = self.shrunk(first, self._attempts(first.key))
            related = tuple(
                {
                    "signature": each.shape,
                    "clause": each.clause,
                    "clauses": [each.clause],
                    "occurrences": times[each.key],
                    "trace": "",
                    "reason": because,
                }
                for each, because in others
            )
            event = replace(self.event(shown), clause=first.clause, signature=first.shape, related=related)
            self.context.sink(replace(event, occurrences=times[first.key]))
        return len(found)

    def _attempts(self, key: tuple[str, str]) -> Callable[[Sequence[Operation]], DivergenceError | None]:
        """Return a function that executes operations in a topic, and returns the divergence with a key or None."""
        numbers = itertools.count()

        def attempt(operations: Sequence[Operation]) -> DivergenceError | None:
            fresh = self._lockstep(f"shrink-{key[0]}-{next(numbers)}")
            try:
                for number, operation in enumerate(operations, start=1):
                    fresh.watches = number == len(operations)
                    fresh.perform(operation)
                fresh.finish()
            except ToolError:
                return None
            return fresh.differences.get(key)

        return attempt


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
