"""Broker machine: one topic on a running broker, with crashes of the broker, and the files of the topic's log.

A lockstep has one broker and serves many examples::

    with LocalBroker("4.3.1") as broker, scratch_directory() as scratch:
        lockstep = BrokerLockstep(RunningBroker(broker), scratch)
        run_state_machine_as_test(BrokerMachine.bind(lockstep, restarts=2))
        finish(lockstep)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from conformance.kafka.broker.workload import EPOCH_MS
from conformance.machines.machine import Machine
from conformance.operations import Operation
from conformance.operations.broker import PRODUCERS, SENT_CODECS
from conformance.strategies import broker as strategies

if TYPE_CHECKING:
    from conformance.lockstep.scopes.broker import BrokerLockstep

MACHINE: Final = "broker"
_TRANSACTIONAL: Final = (None, None, *PRODUCERS)  # None: a batch outside of transactions


class BrokerMachine(Machine):
    """Machine of one topic; after each rule the lockstep compares every lookup and every file.

    Attributes:
        newest: The largest timestamp so far, in milliseconds.
        compacted: True if the topic is compacted.
        large: How often records may still be appended that are large enough to roll a segment of 1 MiB.
    """

    kind = MACHINE
    lockstep: ClassVar[Any]
    restarts: ClassVar[int] = 0
    """Maximum number of restarts in all examples together, because each takes seconds."""
    omitted: ClassVar[frozenset[str]] = frozenset()
    """The names of operations that are not executed."""

    def __init__(self) -> None:
        super().__init__()
        if self.lockstep.failure is not None:
            raise self.lockstep.failure  # the first divergence ends the run: Hypothesis must not run more examples
        self.newest = EPOCH_MS
        self.compacted = False
        self.large = 0

    def do(self, name: str, *arguments: Any) -> None:
        """Execute an operation with the broker and the reference, unless it is omitted."""
        if name not in self.omitted:
            self.lockstep.perform(Operation(name, arguments))

    def records(self, shape: strategies.Shape, *, keyed: bool | None = None) -> list[list[Any]]:
        """Return the rows of an operation; records of a compacted topic have keys unless ``keyed`` is False."""
        key = 4 if (self.compacted if keyed is None else keyed) else None
        rows: list[list[Any]] = []
        for gap, value in shape.records:
            timestamp = -1 if gap is None else self.newest + gap
            self.newest = max(self.newest, timestamp)
            rows.append([timestamp, key, value])
        return rows

    @initialize(data=st.data(), shapes=st.lists(strategies.shapes(3), min_size=4, max_size=8))
    def create(self, data: st.DataObject, shapes: list[strategies.Shape]) -> None:
        """Create a topic with a few batches, so that even the simplest example has records to look up."""
        settings = data.draw(strategies.settings(self.lockstep.release), "settings")
        self.compacted = "compact" in settings["cleanup.policy"]
        self.large = int(settings["segment.bytes"] >= strategies.ROLLS_BY_SIZE)
        self.do("create_topic", settings)
        self.append_all(shapes)

    def append_all(self, shapes: list[strategies.Shape]) -> None:
        """Append batches outside of transactions."""
        for shape in shapes:
            self.do("append_batch", self.records(shape), shape.codec, None)

    # -- producing ---------------------------------------------------------------------------------------------

    @rule(shape=strategies.shapes(), producer=st.sampled_from(_TRANSACTIONAL))
    def append_batch(self, shape: strategies.Shape, producer: str | None) -> None:
        """Append one batch, alone or as part of a transaction."""
        self.do("append_batch", self.records(shape), shape.codec, producer)

    @rule(shapes=st.lists(strategies.shapes(3), min_size=3, max_size=6))
    def append_several(self, shapes: list[strategies.Shape]) -> None:
        """Append batches one after the other, so that indexes fill."""
        self.append_all(shapes)

    @rule(shape=strategies.shapes(), codec=st.sampled_from(SENT_CODECS))
    def send_records(self, shape: strategies.Shape, codec: str) -> None:
        """Send records with an ordinary producer."""
        self.do("send_records", self.records(shape, keyed=True), codec)

    @precondition(lambda self: self.compacted)
    @rule(shape=strategies.shapes(2))
    def append_without_keys(self, shape: strategies.Shape) -> None:
        """Append records without keys, which a compacted topic rejects."""
        self.do("append_batch", self.records(shape, keyed=False), shape.codec, None)

    @rule(shape=strategies.shapes(2))
    def append_corrupt(self, shape: strategies.Shape) -> None:
        """Append a batch with a wrong checksum, which the broker rejects."""
        self.do("append_corrupt", self.records(shape))

    @rule(producer=st.sampled_from(PRODUCERS), commit=st.booleans())
    def end_transaction(self, producer: str, commit: bool) -> None:
        """End the producer's transaction if one is open."""
        self.do("end_transaction", producer, commit)

    @rule(hours=st.sampled_from((1, 30)))
    def roll_by_time(self, hours: int) -> None:
        """Append a timestamp that exceeds the segment's first timestamp by more than ``segment.ms``."""
        self.newest += hours * strategies.HOUR_MS + 1
        self.do("append_batch", self.records(strategies.Shape(((0, 20),))), "none", None)

    @precondition(lambda self: self.large > 0)
    @rule(gap=st.sampled_from((10, -2000)))
    def roll_by_size(self, gap: int) -> None:
        """Append two batches that exceed the smallest ``segment.bytes`` that every release accepts; once per topic."""
        self.large -= 1
        large = strategies.Shape(((gap, strategies.LARGE),))
        for _ in range(2):
            self.do("append_batch", self.records(large), "none", None)

    # -- deleting, stopping ------------------------------------------------------------------------------------

    @rule(anchor=strategies.anchors())
    def delete_records(self, anchor: tuple[str, int]) -> None:
        """Delete the records before an offset, which may be the high watermark (-1)."""
        place, delta = anchor
        log = self.lockstep.topic.reference.log
        bases = [segment.base_offset for segment in log.segments]
        offsets = {
            "start": log.start_offset,
            "end": log.end_offset,
            "high_watermark": -1,
            "active": bases[-1],
            "second": bases[min(1, len(bases) - 1)],
            "half": (log.start_offset + log.end_offset) // 2,
        }
        self.do("delete_before", max(-1, offsets[place] + delta))

    @precondition(lambda self: self.lockstep.statistics.stops < self.restarts)
    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        """Stop the broker cleanly or with kill -9, and start it again."""
        self.do("restart_broker" if clean else "kill_broker")


def finish(lockstep: BrokerLockstep) -> None:
    """End the examples of a broker: kill and restart the broker, append to each topic, and stop it cleanly.

    Raises:
        DivergenceError: The broker and the reference differ.
        BrokerError: The broker died, or does not start or stop.
    """
    lockstep.perform(Operation("kill_broker", ()))
    for topic in lockstep.topics:
        rows = [[max(topic.subject.timestamps, default=0) + 1, 4, 20]]
        lockstep.perform_on(topic, Operation("append_batch", (rows, "none", None)))
    lockstep.stop(clean=True)
