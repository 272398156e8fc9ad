"""Log machine: a partition's log (clauses LG and LO).

Segments have a few batches, so that every example has several segments::

    lockstep = LogLockstep([JvmLog("3.9.2")], scratch)
    TestLog = LogMachine.bind(lockstep).TestCase
"""

from __future__ import annotations

from typing import Any, Self

from hypothesis.stateful import invariant

from conformance.lockstep.lockstep import Lockstep
from conformance.machines.log_rules import (
    BoundaryRules,
    DirectoryRules,
    ExternalLogRules,
    FetchRules,
    LeaderRules,
    ProducerRules,
)
from conformance.machines.seeded_rules import initialize, rule
from conformance.operations import Operation
from conformance.strategies import draws as st
from conformance.strategies import log as strategies
from conformance.strategies.leader import topics
from kidx.producers import SNAPSHOT_SUFFIX

_SPECIAL = (-1, -2, -3, -4, -5, -6, -7)
"""Special targets of ListOffsets: all that some release knows, and -7, which none knows."""


class LogMachine(ProducerRules, LeaderRules, BoundaryRules, DirectoryRules, FetchRules):
    """Machine of one log."""

    @classmethod
    def bind(cls, lockstep: Lockstep[Any, Any], **members: Any) -> type[Self]:
        """Return this machine bound to a lockstep, with :class:`ExternalLogRules` if a program takes part."""
        bound: type[Self] = super().bind(lockstep, **members)
        if all(subject.capabilities is None for subject in lockstep.subjects):
            return bound
        return type(cls.__name__, (ExternalLogRules, bound), {"__module__": cls.__module__})

    # -- opening and closing -----------------------------------------------------------------------------------

    @initialize(settings=strategies.settings(), strict=topics(), asks=st.sampled_from((True, True, False)))
    def begin(self, settings: dict[str, Any], strict: dict[str, Any], asks: bool) -> None:
        """Create the log. Two of three examples list offsets after every step (``asks``); this opens time indexes."""
        self.settings, self.lists_offsets = self.topic(settings | strict), asks
        self.open(clean=True, recovery_point=0, start=0)

    def open(self, *, clean: bool, recovery_point: int, start: int) -> None:
        """Open the log with the offsets of the checkpoints, as a broker does.

        If a release cannot open the log, the other rules of the example do nothing.
        """
        arguments = (self.settings, start, recovery_point, clean, self.now)
        self.lockstep.perform(Operation("open_log", arguments))
        self.is_open = all(group.observation.state is not None for group in self.lockstep.groups)
        self.stopped_halfway = False
        self.ask_for_late_transactions()

    @rule(how=strategies.closings(), opening=strategies.openings(), damages=strategies.damages())
    def reopen(self, how: str, opening: tuple[bool, str, str], damages: list[strategies.Damage]) -> None:
        """Close or crash the log, corrupt files, and reopen it."""
        if not self.is_open:
            return
        clean, recovery_anchor, start_anchor = opening
        recovery_point, start = self.offset(recovery_anchor), self.offset(start_anchor)
        if "clean_flag" not in self.lockstep.capabilities:
            clean = how != "crash"
        if "start_checkpoint" not in self.lockstep.capabilities:
            start = self.offset("start")
        bases = [base for base, _ in self.state.segments]
        if how == "crash":
            self.do("crash_log")
        else:
            self.do("close_log", how == "shutdown" or "clean_flag" not in self.lockstep.capabilities)
        for damage in damages:
            name = self.damaged_file(damage, bases)
            if name is not None:
                self.do("damage_log_file", name, damage.how, list(damage.arguments))
        self.is_open = False
        self.open(clean=clean, recovery_point=recovery_point, start=start)

    def damaged_file(self, damage: strategies.Damage, bases: list[int]) -> str | None:
        """Return the name of the file that a corruption changes, or None if the log has no snapshot to change."""
        if not damage.suffix.startswith("."):
            return damage.suffix
        if damage.suffix != SNAPSHOT_SUFFIX:
            return f"{bases[damage.segment % len(bases)]:020d}{damage.suffix}"
        snapshots = sorted(name for name in self.lockstep.primary.files if name.endswith(SNAPSHOT_SUFFIX))
        return snapshots[damage.segment % len(snapshots)] if snapshots else None

    # -- writing -----------------------------------------------------------------------------------------------

    @rule(shape=strategies.shapes(gaps=False), newer=strategies.newer_epochs())
    def append_as_leader(self, shape: strategies.Shape, newer: int) -> None:
        """Append a producer's batch as a leader, which assigns its offsets."""
        self.epoch += newer
        batch: dict[str, Any] = {"records": self.keyed(self.records(shape)), **shape.options()}
        self.timestamps.add(self.now)
        self.do("append_as_leader", [batch], self.epoch)

    @rule(
        shapes=st.lists(strategies.shapes(gaps=True), min_size=1, max_size=4),
        newer=strategies.newer_epochs(),
        compacted=st.sampled_from((0, 0, 0, 4)),
    )
    def append_as_follower(self, shapes: list[strategies.Shape], newer: int, compacted: int) -> None:
        """Append several batches as a follower, perhaps after a gap of offsets that compaction has removed."""
        self.epoch += newer
        base, batches = self.state.end_offset + compacted, []
        for shape in shapes:
            records = self.records(shape)
            batches.append({"base": base, "epoch": self.epoch, "records": records, **shape.options()})
            base += records[-1][0] + 1
        self.do("append_as_follower", batches, self.epoch)

    @rule(start=st.sampled_from((-1, -3)), repeated=st.booleans(), newer=st.sampled_from((0, 1)))
    def append_what_is_refused(self, start: int, repeated: bool, newer: int) -> None:
        """Append, as a follower, batches that begin too early, are out of order, or have a new leader epoch."""
        end = self.state.end_offset
        first = {"base": max(0, end + (0 if repeated else start)), "epoch": self.epoch + newer, "records": [[0, 50]]}
        self.do("append_as_follower", [first, dict(first)] if repeated else [first], self.epoch)

    @rule()
    def roll(self) -> None:
        """Start a new segment."""
        self.do("roll_log")

    # -- truncating --------------------------------------------------------------------------------------------

    @rule(anchor=strategies.cut_anchors(), delta=strategies.near())
    def truncate_to(self, anchor: str, delta: int) -> None:
        """Truncate the log, as a follower does whose log has diverged from the leader."""
        self.truncate("truncate_log", self.offset(anchor, delta))

    @rule(delta=st.sampled_from((0, 5, -3)))
    def truncate_fully(self, delta: int) -> None:
        """Delete all records, as a follower does whose log ends before its leader's log starts."""
        self.truncate("truncate_fully", self.offset("end", delta))

    @rule(anchor=strategies.cut_anchors(), delta=strategies.near(), replicated=st.booleans(), cleaned=st.booleans())
    def delete_records(self, anchor: str, delta: int, replicated: bool, cleaned: bool) -> None:
        """Delete the records before an offset; the next retention round deletes the files."""
        if replicated:
            self.do("update_high_watermark", self.offset("end"))
        self.do("delete_records", self.offset(anchor, delta))
        if cleaned:
            self.do("apply_retention")

    @rule()
    def apply_retention(self) -> None:
        """Run one retention round."""
        self.do("apply_retention")

    # -- moving ------------------------------------------------------------------------------------------------

    @rule(anchor=st.sampled_from(("end", "end", "half", "start", "active")), delta=strategies.near())
    def update_high_watermark(self, anchor: str, delta: int) -> None:
        """Raise the high watermark."""
        self.do("update_high_watermark", self.offset(anchor, delta))

    @rule(newer=st.sampled_from((1, 0, 2)))
    def become_leader(self, newer: int) -> None:
        """Begin a new leader epoch at the log end offset."""
        self.epoch += newer
        self.do("assign_epoch", self.epoch, self.state.end_offset)

    @rule(milliseconds=st.sampled_from((10, 1000, 0, 100_000, -500)))
    def pass_time(self, milliseconds: int) -> None:
        """Move the clock forwards or backwards."""
        self.now = max(0, self.now + milliseconds)
        self.do("set_clock", self.now)

    # -- querying ----------------------------------------------------------------------------------------------

    @rule()
    def list_offsets(self) -> None:
        """List offsets for every special target, and around every appended timestamp."""
        self.query(special_first=True)

    def query(self, *, special_first: bool) -> None:
        """List offsets, read at some of them, and request the end of a leader epoch.

        Args:
            special_first: True for special targets before timestamps: they may open other indexes.
        """
        latest = sorted(self.timestamps)[-12:]
        around = {timestamp + delta for timestamp in latest for delta in (-1, 0, 1)}
        targets = [*_SPECIAL, *sorted(around - set(_SPECIAL)), (1 << 63) - 1]
        self.do("list_offsets", targets if special_first else targets[::-1])
        for offset in dict.fromkeys(map(self.offset, ("start", "half", "end"))):
            self.do("read_log", offset)
        self.do("end_offset_for_epoch", self.epoch - 1 if special_first else self.epoch // 2)

    @rule(anchor=st.sampled_from(("end", "start", "half")))
    def snapshot_offsets(self, anchor: str) -> None:
        """Request the offsets of a fetch while only a part of the log is replicated, which may limit the LSO."""
        self.do("update_high_watermark", self.offset(anchor))
        self.do("offset_snapshot")

    @invariant()
    def every_target_is_answered_as_the_reference_does(self) -> None:
        """List offsets after every step of some examples; special targets come last, when all indexes are open."""
        if self.lists_offsets and self.is_open:
            self.query(special_first=False)

    @invariant()
    def offsets_are_in_order(self) -> None:
        """Check that LSO ≤ high watermark ≤ end, and that segments do not overlap.

        The first condition may fail after a truncation that stopped halfway, until the log is reopened.
        """
        state = self.state
        if not self.stopped_halfway:
            assert state.last_stable_offset <= state.high_watermark <= state.end_offset, state
        assert [base for base, _ in state.segments] == sorted({base for base, _ in state.segments}), state
