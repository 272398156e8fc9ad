"""The life of a partition's log (KAFKA_BEHAVIOUR.md sections 6.3 and 8).

Segments hold a few batches, so that every run spans several. Bind it as the other machines::

    lockstep = LogLockstep([JvmLog("3.9.2")], scratch)
    TestLog = LogMachine.bind(lockstep).TestCase
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from conformance.lockstep.levels.log import LogLockstep
from conformance.machines.files import FilesMachine
from conformance.operations import Operation
from conformance.operations.log import LogState
from conformance.strategies import log as strategies

if TYPE_CHECKING:
    from conformance.kafka.fetch import Progress

_EMPTY = LogState(0, 0, 0, 0, 0, ())
_SPECIAL = (-1, -2, -3, -4, -5, -6, -7)
"""Every target that some release knows, and one that none does."""


def in_transaction(producer: int) -> dict[str, Any]:
    """What a batch says of a producer in a transaction."""
    return {"transactional": True, "producer": [producer, 0, 0]}


def marker(producer: int, ends: str) -> dict[str, Any]:
    """What the end of a transaction says."""
    return {"marker": ends, "producer": [producer, 0, -1]}


class LogMachine(FilesMachine):
    """Drives a lockstep through the life of one log."""

    kind: ClassVar[str] = "log"
    lockstep_type = LogLockstep
    lockstep: ClassVar[LogLockstep]

    @staticmethod
    def jvm(release: str, progress: Progress | None = None) -> Any:
        """See the base class."""
        from conformance.implementations.jvm.log import JvmLog  # noqa: PLC0415 -- part of an extra

        return JvmLog(release, progress)

    def __init__(self) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {}
        self.timestamps: set[int] = set()
        self.now = 10_000
        self.newest = 1000
        self.epoch = 0
        self.asks = False
        self.is_open = False
        self.producers_since: int | None = None

    def do(self, name: str, *arguments: Any) -> None:
        """Everybody performs an operation, if the log is open."""
        if self.is_open:
            self.lockstep.perform(Operation(name, arguments))

    def cut(self, name: str, offset: int) -> None:
        """A truncation; where one stops half way, the log is of no more use and the example ends (LG-11)."""
        self.do(name, offset)
        self.is_open = self.is_open and all(group.observation.outcome.error is None for group in self.lockstep.groups)

    # -- what there is -----------------------------------------------------------------------------------------

    @property
    def state(self) -> LogState:
        """What the newest dialect's reference says of its log."""
        return self.lockstep.primary.observation.state or _EMPTY

    def offset(self, anchor: str, delta: int = 0) -> int:
        """An offset that an anchor speaks of, not negative."""
        state = self.state
        bases = [base for base, _ in state.segments] or [0]
        anchors = {
            "start": state.start_offset,
            "end": state.end_offset,
            "high_watermark": state.high_watermark,
            "active": bases[-1],
            "second": bases[min(1, len(bases) - 1)],
            "middle": bases[len(bases) // 2],
            "half": (state.start_offset + state.end_offset) // 2,
            "zero": 0,
        }
        return max(0, anchors[anchor] + delta)

    def timestamp(self, gap: int | None) -> int:
        """The next record's timestamp: some distance from the newest one, or none at all."""
        if gap is None:
            return -1
        timestamp = max(0, self.newest + gap)
        self.newest = max(self.newest, timestamp)
        self.timestamps.add(timestamp)
        return timestamp

    def records(self, shape: strategies.Shape) -> list[list[int]]:
        """The records of a batch."""
        offset, records = 0, []
        for gap, distance in shape.records:
            offset += distance
            records.append([offset, self.timestamp(gap)])
            offset += 1
        return records

    def meet_producer(self) -> int:
        """Where a producer's batch comes to lie: at the end; ``producers_since`` is the first such place."""
        end: int = self.state.end_offset
        self.producers_since = end if self.producers_since is None else min(self.producers_since, end)
        return end

    def append_one(self, of_producer: dict[str, Any]) -> None:
        """A follower gets a batch of one record."""
        batch = {"base": self.state.end_offset, "epoch": self.epoch, "records": [[0, self.timestamp(1)]]}
        self.do("append_as_follower", [batch | of_producer], self.epoch)

    # -- opening and closing -----------------------------------------------------------------------------------

    @initialize(settings=strategies.settings(), asks=st.sampled_from((True, True, False)))
    def begin(self, settings: dict[str, Any], asks: bool) -> None:
        """Makes the log; two of three examples ask for offsets after every step, which opens every time index."""
        self.settings, self.asks = settings, asks
        self.open(clean=True, recovery_point=0, start=0)

    def open(self, *, clean: bool, recovery_point: int, start: int) -> None:
        """Opens the log as a broker does with what its checkpoints say; where some do not open it, the example ends."""
        arguments = (self.settings, start, recovery_point, clean, self.now)
        self.lockstep.perform(Operation("open_log", arguments))
        self.is_open = all(group.observation.state is not None for group in self.lockstep.groups)

    @rule(how=strategies.closings(), opening=strategies.openings(), damages=strategies.damages())
    def reopen(self, how: str, opening: tuple[bool, str, str], damages: list[strategies.Damage]) -> None:
        """Closes or crashes, damages files, and opens again."""
        if not self.is_open:
            return
        clean, recovery_anchor, start_anchor = opening
        # A killed broker leaves no mark of a clean shutdown. Where somebody makes one, Kafka believes its snapshots of
        # producers, or that there were none (LG-30); kidx reads them from the log and knows no snapshots.
        clean = clean and not (how == "crash" and self.producers_since is not None)
        recovery_point, start = self.offset(recovery_anchor), self.offset(start_anchor)
        bases = [base for base, _ in self.state.segments]
        if self.producers_since is not None and (
            0 < max(start, self.state.start_offset) >= self.state.last_stable_offset or self.producers_since < bases[0]
        ):
            return  # a transaction that began before the log start is known, or forgotten, from snapshots only
        if how == "crash":
            self.do("crash_log")
        else:
            self.do("close_log", how == "shutdown")
        for damage in damages:
            base = bases[damage.segment % len(bases)]
            name = f"{base:020d}{damage.suffix}" if damage.suffix.startswith(".") else damage.suffix
            self.do("damage_log_file", name, damage.how, list(damage.arguments))
        self.is_open = False
        self.open(clean=clean, recovery_point=recovery_point, start=start)

    # -- writing -----------------------------------------------------------------------------------------------

    @rule(shape=strategies.shapes(gaps=False), newer=strategies.newer_epochs())
    def append_as_leader(self, shape: strategies.Shape, newer: int) -> None:
        """A producer's batch gets its offsets here."""
        self.epoch += newer
        batch: dict[str, Any] = {"records": self.records(shape), **shape.options()}
        self.timestamps.add(self.now)
        self.do("append_as_leader", [batch], self.epoch)

    @rule(
        shapes=st.lists(strategies.shapes(gaps=True), min_size=1, max_size=4),
        newer=strategies.newer_epochs(),
        compacted=st.sampled_from((0, 0, 0, 4)),
    )
    def append_as_follower(self, shapes: list[strategies.Shape], newer: int, compacted: int) -> None:
        """Several batches arrive from a leader, perhaps behind offsets that compaction has removed there."""
        self.epoch += newer
        base, batches = self.state.end_offset + compacted, []
        for shape in shapes:
            records = self.records(shape)
            batches.append({"base": base, "epoch": self.epoch, "records": records, **shape.options()})
            base += records[-1][0] + 1
        self.do("append_as_follower", batches, self.epoch)

    @rule(producer=st.sampled_from((1, 2)), ends=st.sampled_from((None, None, "abort", "commit")))
    def append_transaction(self, producer: int, ends: str | None) -> None:
        """A follower gets a batch of a transaction, or its end."""
        self.meet_producer()
        self.append_one(in_transaction(producer) if ends is None else marker(producer, ends))

    @rule(start=st.sampled_from((-1, -3)), repeated=st.booleans(), newer=st.sampled_from((0, 1)))
    def append_what_is_refused(self, start: int, repeated: bool, newer: int) -> None:
        """A follower gets batches that begin before the end, do not follow one another, or are of a newer epoch."""
        end = self.state.end_offset
        first = {"base": max(0, end + (0 if repeated else start)), "epoch": self.epoch + newer, "records": [[0, 50]]}
        self.do("append_as_follower", [first, dict(first)] if repeated else [first], self.epoch)

    @rule()
    def roll(self) -> None:
        """Starts a new segment."""
        self.do("roll_log")

    # -- cutting -----------------------------------------------------------------------------------------------

    @rule(anchor=strategies.cut_anchors(), delta=strategies.near())
    def truncate_to(self, anchor: str, delta: int) -> None:
        """A follower finds that its end is not the leader's."""
        self.cut("truncate_log", self.offset(anchor, delta))

    @rule(producer=st.sampled_from((1, 2)), ends=st.sampled_from(("commit", "abort")), replicated=st.integers(1, 4))
    def cut_behind_a_transaction(self, producer: int, ends: str, replicated: int) -> None:
        """A follower that has got a transaction, perhaps as all replicas have, loses what came behind it (LG-31)."""
        end = self.meet_producer()
        # One batch a call, as a refused call may leave some of its batches in the log (LG-27).
        for part in (in_transaction(producer), marker(producer, ends), {}, {}):
            self.append_one(part)
        self.do("update_high_watermark", end + replicated)
        self.cut("truncate_log", end + 3)
        self.append_one({})

    @rule(delta=st.sampled_from((0, 5, -3)))
    def truncate_fully(self, delta: int) -> None:
        """A follower is too far behind, or too far ahead."""
        self.cut("truncate_fully", self.offset("end", delta))

    @rule(anchor=strategies.cut_anchors(), delta=strategies.near(), replicated=st.booleans(), cleaned=st.booleans())
    def delete_records(self, anchor: str, delta: int, replicated: bool, cleaned: bool) -> None:
        """Somebody deletes records, up to the high watermark at most; files go in the cleaner's next round."""
        if replicated:
            self.do("update_high_watermark", self.offset("end"))
        self.do("delete_records", self.offset(anchor, delta))
        if cleaned:
            self.do("apply_retention")

    @rule()
    def apply_retention(self) -> None:
        """The cleaner's round."""
        self.do("apply_retention")

    # -- moving ------------------------------------------------------------------------------------------------

    @rule(anchor=st.sampled_from(("end", "end", "half", "start", "active")), delta=strategies.near())
    def update_high_watermark(self, anchor: str, delta: int) -> None:
        """The replicas have got so far."""
        self.do("update_high_watermark", self.offset(anchor, delta))

    @rule(newer=st.sampled_from((1, 0, 2)))
    def become_leader(self, newer: int) -> None:
        """A new leader's epoch begins at the end."""
        self.epoch += newer
        self.do("assign_epoch", self.epoch, self.state.end_offset)

    @rule(milliseconds=st.sampled_from((10, 1000, 0, 100_000, -500)))
    def pass_time(self, milliseconds: int) -> None:
        """The clock moves, also backwards."""
        self.now = max(0, self.now + milliseconds)
        self.do("set_clock", self.now)

    # -- asking ------------------------------------------------------------------------------------------------

    @rule()
    def list_offsets(self) -> None:
        """Asks for every special target, and around every timestamp that was ever appended."""
        latest = sorted(self.timestamps)[-12:]
        around = {timestamp + delta for timestamp in latest for delta in (-1, 0, 1)}
        self.do("list_offsets", [*_SPECIAL, *sorted(around - set(_SPECIAL)), (1 << 63) - 1])

    @invariant()
    def every_target_is_answered_as_the_reference_does(self) -> None:
        """After every step, in examples that ask at all."""
        if self.asks and self.is_open:
            self.list_offsets()

    @invariant()
    def offsets_are_in_order(self) -> None:
        """Start ≤ last stable offset ≤ high watermark ≤ end, and segments do not overlap."""
        state = self.state
        assert state.last_stable_offset <= state.high_watermark <= state.end_offset, state
        assert [base for base, _ in state.segments] == sorted({base for base, _ in state.segments}), state
