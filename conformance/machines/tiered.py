"""Tiered machine: a log with a local and a remote tier, and the tasks of ``RemoteLogManager`` (clauses TL and LO)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from hypothesis.stateful import invariant

from conformance.implementations.kidx.tiered import ReferenceTiered
from conformance.lockstep.lockstep import Lockstep
from conformance.lockstep.scopes.directory import DirectoryScope, Files, LogParticipant
from conformance.machines.files import FilesMachine
from conformance.machines.seeded_rules import initialize, rule
from conformance.operations import OK, Operation
from conformance.operations.tiered import TIERED_OPS, TieredObservation
from conformance.strategies import draws as st
from conformance.strategies import log as strategies
from conformance.strategies import tiered as draws

if TYPE_CHECKING:
    from conformance.operations.log import LogState
    from conformance.operations.tiered import TieredState

_SPECIAL: Final = (-1, -2, -3, -4, -5, -6)
"""Special targets of ListOffsets."""
_MOST_TIMES: Final = 40
"""The maximum number of timestamps for which one step lists offsets."""


class TieredScope(DirectoryScope[TieredObservation]):
    """Scope of a tiered log: all local files, and the state of the remote segments. Messages are not compared."""

    machine = "tiered"
    participant = LogParticipant
    reference = ReferenceTiered
    operations = TIERED_OPS
    empty_observation = TieredObservation(OK, None)
    close_operation = Operation("close_log", (True,))
    aspects = ("outcome", "state", "bytes")
    sections = ("index", "segment", "log", "producers", "leader", "remote")  # of kidx.dialect.table


class TieredLockstep(Lockstep[TieredObservation, Files]):
    """Lockstep of tiered logs, with the arguments of the base class."""

    scope = TieredScope()


class TieredMachine(FilesMachine):
    """Machine of one tiered log. After every step it lists offsets for timestamps at every boundary of both tiers.

    Attributes:
        settings: The topic's settings.
        times: The timestamp of each record, by its offset.
        now: The time of the log's clock, in milliseconds.
        newest: The timestamp near which the next records have theirs.
        epoch: The current leader epoch.
        is_open: True if the log is open; otherwise rules do nothing.
    """

    kind: ClassVar[str] = "tiered"
    lockstep_type = TieredLockstep
    lockstep: ClassVar[TieredLockstep]

    def __init__(self) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {}
        self.times: dict[int, int] = {}
        self.now = 10_000
        self.newest = 1000
        self.epoch = 0
        self.is_open = False

    def do(self, name: str, *arguments: Any) -> None:
        """Execute an operation with every participant, if the log is open."""
        if self.is_open:
            self.lockstep.perform(Operation(name, arguments))

    @property
    def tiers(self) -> TieredState | None:
        """State of both tiers in the reference of the newest tested release."""
        return self.lockstep.primary.observation.state

    @property
    def log(self) -> LogState:
        """State of the log in the reference of the newest tested release."""
        state = self.tiers
        assert state is not None
        return state.log

    def offset(self, anchor: str, delta: int = 0) -> int:
        """Return the offset that an anchor names; never negative."""
        state = self.tiers
        assert state is not None
        bases = [base for base, _ in state.log.segments]
        ends = [segment.end_offset + 1 for segment in state.remote] or [0]
        anchors = {
            "start": state.log.start_offset,
            "end": state.log.end_offset,
            "half": (state.log.start_offset + state.log.end_offset) // 2,
            "active": bases[-1],
            "local": state.local_start_offset,
            "second": bases[min(1, len(bases) - 1)],
            "copied": state.highest_remote_offset + 1,
            "remote": ends[0],
            "later remote": ends[len(ends) // 2],
            "zero": 0,
        }
        return max(0, anchors[anchor] + delta)

    # -- opening and closing -----------------------------------------------------------------------------------

    @initialize(settings=draws.settings())
    def begin(self, settings: dict[str, Any]) -> None:
        """Create the log."""
        self.settings = settings
        self.open(clean=True, recovery_point=0, start=0)

    def open(self, *, clean: bool, recovery_point: int, start: int) -> None:
        """Open the log with the checkpoints' offsets; end the example if a release fails."""
        arguments = (self.settings, start, recovery_point, clean, self.now)
        self.lockstep.perform(Operation("open_tiers", arguments))
        self.is_open = all(group.observation.state is not None for group in self.lockstep.groups)

    @rule(how=draws.closings(), start=draws.start_anchors(), copies=st.booleans(), recovery=draws.recovery_anchors())
    def reopen(self, how: str, start: str, copies: bool, recovery: str) -> None:
        """Close or kill the broker and start it again, perhaps with older checkpoints."""
        if not self.is_open:
            return
        point, first = self.offset(recovery), self.offset(start)
        self.do("crash_log") if how == "crash" else self.do("close_log", True)
        self.is_open = False
        self.open(clean=how != "crash", recovery_point=point, start=first)
        if copies:
            self.do("copy_segments")

    # -- writing -----------------------------------------------------------------------------------------------

    @rule(shapes=draws.shapes(), newer=strategies.newer_epochs(), replicated=draws.mostly(), rolls=st.booleans())
    def append(self, shapes: list[strategies.Shape], newer: int, replicated: bool, rolls: bool) -> None:
        """Append batches as a leader, perhaps of a new epoch, and roll."""
        if not self.is_open:
            return
        self.epoch += newer
        for shape in shapes:
            base, records = self.log.end_offset, []
            for number, (gap, _) in enumerate(shape.records):
                time = -1 if gap is None else max(0, self.newest + gap)
                self.newest = max(self.newest, time)
                self.times[base + number] = time
                records.append([number, time])
            self.do("append_as_leader", [{"records": records, **shape.options()}], self.epoch)
        if replicated:
            self.do("update_high_watermark", self.offset("end"))
        if rolls:
            self.do("roll_log")

    @rule(
        writes=draws.transactional_writes(),
        aborts=draws.mostly(),
        rolls=st.sampled_from((False, False, True)),
        copies=draws.mostly(),
        most=draws.fetch_sizes(),
    )
    def transact(self, writes: list[tuple[int, str]], aborts: bool, rolls: bool, copies: bool, most: int) -> None:
        """Append batches of transactions, perhaps abort the open ones, roll after each batch, copy and fetch."""
        if not self.is_open:
            return
        for producer, ends in writes:
            self.write(producer, ends, rolls=rolls)
        for producer in (1, 2) if aborts else ():
            if (self.producer(producer) or (-1,) * 5)[4] >= 0:
                self.write(producer, "abort", rolls=rolls)
        if copies:
            self.do("update_high_watermark", self.offset("end"))
            self.copy(True)
            self.fetch("remote", 0, most, True, True)

    def producer(self, number: int) -> Any:
        """Return the state of a producer, or None."""
        return next((each for each in self.log.producers if each[0] == number), None)

    def write(self, producer: int, ends: str, *, rolls: bool) -> None:
        """Append a batch of a transaction, or its end."""
        entry = self.producer(producer)
        epoch, last = (0, ()) if entry is None else (max(0, entry[1]), entry[-1])
        self.newest += 1
        self.times[self.log.end_offset] = self.newest
        if ends:
            kind: dict[str, Any] = {"marker": ends, "producer": [producer, epoch, -1]}
        else:
            kind = {"transactional": True, "producer": [producer, epoch, last[-1][0] + 1 if last else 0]}
        self.do("append_as_leader", [{"records": [[0, self.newest]], **kind}], self.epoch)
        if rolls:
            self.do("roll_log")

    @rule()
    def roll(self) -> None:
        """Start a new segment."""
        self.do("roll_log")

    @rule(anchor=st.sampled_from(("end", "end", "half", "active")))
    def update_high_watermark(self, anchor: str) -> None:
        """Raise the high watermark: only segments below it are copied."""
        if self.is_open:
            self.do("update_high_watermark", self.offset(anchor))

    # -- tasks -------------------------------------------------------------------------------------------------

    @rule(deletes=st.booleans())
    def copy(self, deletes: bool) -> None:
        """Run the copy task, and perhaps local retention."""
        self.do("copy_segments")
        if deletes:
            self.do("apply_retention")

    @rule()
    def delete_locally(self) -> None:
        """Run local retention."""
        self.do("apply_retention")

    @rule(milliseconds=st.sampled_from((0, 0, 10, 1000, 5000, -500)))
    def expire(self, milliseconds: int) -> None:
        """Let time pass, and run the expiration task."""
        if milliseconds:
            self.now = max(0, self.now + milliseconds)
            self.do("set_clock", self.now)
        self.do("expire_remote")

    @rule(number=st.integers(0, 5), delta=strategies.near())
    def expire_by_age(self, number: int, delta: int) -> None:
        """Run the expiration task when a remote segment is exactly as old as it may be, or next to that time."""
        state, limit = self.tiers, self.settings["retention.ms"]
        if not self.is_open or state is None or not state.remote or limit < 0:
            return
        self.now = max(0, state.remote[number % len(state.remote)].max_timestamp + limit + delta)
        self.do("set_clock", self.now)
        self.do("expire_remote")

    @rule()
    def follow(self) -> None:
        """Run the follower's task."""
        self.do("follow_remote")

    @rule(newer=st.sampled_from((1, 0, 2)), copies=st.booleans())
    def become_leader(self, newer: int, copies: bool) -> None:
        """Begin a new leader epoch at the end, with new tasks."""
        if not self.is_open:
            return
        self.epoch += newer
        self.do("assign_epoch", self.epoch, self.offset("end"))
        self.do("renew_tasks")
        if copies:
            self.do("copy_segments")

    @rule(
        what=st.sampled_from(("copy", "copy", "fetch", "delete", "delete", "copy and delete")),
        offset=draws.anchors(),
        again=st.booleans(),
    )
    def storage_fails(self, what: str, offset: str, again: bool) -> None:
        """Run a task, or ask, while storage fails; perhaps run the task again when it no longer fails."""
        if not self.is_open:
            return
        self.do("fail_storage", what)
        if what == "fetch":
            self.fetch(offset, 0, 1, True, False)
            self.every_target_is_answered_as_the_reference_does()
        elif what == "delete":
            self.delete_records(offset, 0, True)
        else:
            self.write(1, "commit", rolls=True)
            self.do("update_high_watermark", self.offset("end"))
            self.copy(True)
        self.do("fail_storage", "nothing")
        if again:
            self.do("expire_remote" if what == "delete" else "copy_segments")

    # -- moving ------------------------------------------------------------------------------------------------

    @rule(anchor=draws.anchors(), delta=strategies.near(), expires=st.booleans())
    def delete_records(self, anchor: str, delta: int, expires: bool) -> None:
        """Delete records of either tier, and perhaps run the expiration task."""
        if not self.is_open:
            return
        self.do("delete_records", self.offset(anchor, delta))
        if expires:
            self.do("expire_remote")

    @rule(anchor=draws.anchors(), delta=strategies.near(), fully=draws.seldom(), newer=st.sampled_from((1, 1, 0)))
    def truncate(self, anchor: str, delta: int, fully: bool, newer: int) -> None:
        """Truncate as a follower, which may be below what was copied, and become the leader."""
        if not self.is_open:
            return
        offset = self.offset(anchor, delta)
        self.do("truncate_fully" if fully else "truncate_log", offset)
        self.become_leader(newer, True)

    @rule(
        anchor=st.sampled_from(("copied", "copied", "active", "second", "half")),
        delta=st.sampled_from((-1, -2, 0)),
        newer=st.sampled_from((1, 1, 0)),
        shapes=draws.shapes(),
    )
    def diverge(self, anchor: str, delta: int, newer: int, shapes: list[strategies.Shape]) -> None:
        """Truncate below what was copied, become the leader, and copy other records with the same offsets."""
        if not self.is_open:
            return
        self.do("truncate_log", self.offset(anchor, delta))
        self.become_leader(newer, False)
        self.append(shapes, 0, True, True)
        self.do("copy_segments")

    # -- querying ----------------------------------------------------------------------------------------------

    @rule(
        anchor=draws.anchors(),
        delta=strategies.near(),
        most=draws.fetch_sizes(),
        at_least_one=draws.mostly(),
        committed=draws.mostly(),
    )
    def fetch(self, anchor: str, delta: int, most: int, at_least_one: bool, committed: bool) -> None:
        """Fetch from the remote tier at an offset, and next to the first offset of every remote segment."""
        if not self.is_open or self.tiers is None:
            return
        starts = [segment.start_offset for segment in self.tiers.remote]
        offsets = [self.offset(anchor), *starts, self.log.end_offset]
        for offset in dict.fromkeys(max(0, offset + delta) for offset in offsets):
            self.do("fetch_remote", offset, most, at_least_one, committed)

    def boundaries(self) -> list[int]:
        """Return the timestamps of the first and last record of every segment of both tiers, and their neighbours."""
        state = self.tiers
        assert state is not None
        bases = [base for base, _ in state.log.segments]
        offsets = {offset for base in (*bases, state.log.end_offset) for offset in (base - 1, base)}
        offsets |= {each for segment in state.remote for each in (segment.start_offset, segment.end_offset)}
        offsets |= {state.log.start_offset, state.log.start_offset - 1, state.local_start_offset}
        times = {self.times[offset] for offset in offsets if offset in self.times}
        times |= {segment.max_timestamp for segment in state.remote} | {self.newest}
        around = {time + delta for time in times for delta in (-1, 0, 1)}
        return sorted(time for time in around if time >= 0)[-_MOST_TIMES:]

    @invariant()
    def every_target_is_answered_as_the_reference_does(self) -> None:
        """List offsets for every special target, and for the timestamps at every boundary of both tiers."""
        if self.is_open:
            self.do("list_offsets", [*_SPECIAL, *self.boundaries(), 1 << 41])
