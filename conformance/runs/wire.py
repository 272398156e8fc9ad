"""``-i wire:HOST:PORT``: the wire machine against a running broker, compared with each release.

The divergences are grouped by root cause:

- *The same result elsewhere.* The same request has the same wrong result in more circumstances, for example with
  deleted records as well.
- *No response.* Several requests of one kind make the broker close the connection, or send malformed responses.
- *The same result about deleted records.* In some cases the right record is a deleted one, and the result is wrong in
  the same way.
- *The same last stable offset.* A fetch returns the offset that the lookup of the latest committed offset returns, and
  the record with the largest timestamp has to be before it.
"""

from __future__ import annotations

import itertools
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from conformance.errors import ToolError
from conformance.lockstep.scopes.wire import MACHINE, WireLockstep
from conformance.machines.wire import WireMachine
from conformance.runs.sameness import Sameness
from conformance.runs.server_run import ServerRun
from conformance.runs.wire_options import WireOptions
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from conformance.events import Result
    from conformance.implementations.wire.broker import WireBroker
    from conformance.lockstep import DivergenceError
    from conformance.lockstep.scopes.wire_topic import Statistics, WireDivergenceError
    from conformance.operations import Operation

# Texts of divergences: requests, differences between results, and circumstances.
_WRONG_LAST_STABLE_OFFSET: Final = "fetch", "another last stable offset"
_LATEST: Final = "list_offsets -1"
_LARGEST_TIMESTAMP: Final = "list_offsets -3"
_TRANSACTION_BEGIN_DELETED: Final = "its begin deleted"
_NO_RESPONSE: Final = ("CONNECTION_CLOSED", "UNDECODABLE_ANSWER", "TIMED_OUT")
_DELETED_RECORD: Final = "a deleted record"
_RECORD: Final = "a record"


class RelatedDivergence(NamedTuple):
    """Related divergence (``difference``), and the reason why it has the same root cause."""

    difference: WireDivergenceError
    because: str


def group_by_root_cause(
    differences: Collection[WireDivergenceError],
) -> Iterator[tuple[WireDivergenceError, list[RelatedDivergence]]]:
    """Yield the divergences with different root causes, in their order, each with its related divergences."""
    parents: dict[tuple[str, str], RelatedDivergence] = {}
    for one in differences:
        reasons = (
            RelatedDivergence(each, _no_response(one, each) or _shared_symptom(one, each)) for each in differences
        )
        found = next((each for each in reasons if each.because), None)
        if found is not None:
            parents[one.key] = found
    for one in differences:
        if one.key not in parents:
            kin = (each for each in differences if each.key in parents and _root(each, parents) is one)
            yield one, [RelatedDivergence(each, parents[each.key].because) for each in kin]


def _root(one: WireDivergenceError, parents: dict[tuple[str, str], RelatedDivergence]) -> WireDivergenceError:
    while one.key in parents:  # every step has fewer circumstances, or leads from a fetch to a lookup
        one = parents[one.key].difference
    return one


def _shared_symptom(one: WireDivergenceError, other: WireDivergenceError) -> str:
    """Return the reason why the first divergence has the same root cause as the second; empty if it does not."""
    (asked, places), (asked_there, places_there), how, how_there = one.situation, other.situation, one.how, other.how
    where, where_there = frozenset(places), frozenset(places_there)
    if (asked, how) == _WRONG_LAST_STABLE_OFFSET and asked_there == _LATEST:
        return "the latest offset of committed data is wrong, too"
    if asked == _LARGEST_TIMESTAMP and asked_there == _LATEST and _TRANSACTION_BEGIN_DELETED in where & where_there:
        return "what is visible ends at the latest offset of committed data, which is wrong"
    if one.clause != other.clause or asked != asked_there:
        return ""
    if (
        how != how_there
        and how.removeprefix(_DELETED_RECORD) == how_there.removeprefix(_RECORD)
        and where_there <= where
    ):
        return "the same answer is wrong where the right record is not deleted"
    if _sameness(one).needs_more_than(_sameness(other)):
        return f"the same answer is wrong without {' and '.join(sorted(where - where_there))}"
    return ""


def _sameness(one: WireDivergenceError) -> Sameness:
    """Return what two divergences share if one differs from the other only in more circumstances."""
    asked, where = one.situation
    return Sameness(one.divergence.participant, one.clause, asked, one.how, frozenset(where))


def _no_response(one: WireDivergenceError, other: WireDivergenceError) -> str:
    """Return the reason for two requests of one kind that both get no response; empty if one gets a response."""
    (request, silence, *rank), (request_there, silence_there, *rank_there) = map(_silence, (one, other))
    if silence not in _NO_RESPONSE or (request, silence) != (request_there, silence_there):
        return ""
    return "the same request gets no response" if rank_there < rank else ""


def _silence(one: WireDivergenceError) -> tuple[Any, ...]:
    """Return the kind of request, what came instead of a response, and a sort key."""
    return one.situation.request.split()[0], one.how.rpartition(" -> ")[2], len(one.situation.circumstances), one.key


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
