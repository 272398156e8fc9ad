"""Rules of the log machine, by subject: producers, leaders, boundaries, the directory, fetches, and external logs.

The rules for logs that are driven by the line protocol are sequences that the other rules draw seldom. An example ends
at its first divergence. If a log diverges at every close or gap, few of its examples reach, step by step, a lost index
of one of several segments. So one rule executes all of these steps. Machines of Kafka's own logs do not have these
rules.
"""

from __future__ import annotations

from typing import Any, Final

from conformance.machines.log_base import LogBase
from conformance.machines.seeded_rules import rule
from conformance.operations.log import EXPIRATION, ISOLATIONS, OF_KAFKA
from conformance.strategies import draws as st
from conformance.strategies import log as strategies
from conformance.strategies.leader import Sent, recompressible, recompressible_topic, sent
from conformance.strategies.log import Damage, cut_anchors, metadata_damages, near
from conformance.strategies.producers import Write, id_ranges, markers, writes
from kidx.java_values import INT_MAX

_SHORT: int = 1 << 15  # above the largest producer epoch
_CALL: int = 4
"""Batches per call, so that a call fits into most segments."""


def in_transaction(producer: int) -> dict[str, Any]:
    """Return the fields of a producer's batch in a transaction."""
    return {"transactional": True, "producer": [producer, 0, 0]}


def marker(producer: int, ends: str) -> dict[str, Any]:
    """Return the fields of the end of a transaction."""
    return {"marker": ends, "producer": [producer, 0, -1]}


class ProducerRules(LogBase):
    """Appends of producers and coordinators."""

    def written(self, write: Write, *, base: int | None = None) -> dict[str, Any]:
        """Return the batch of a write; a leader, which assigns the offsets, has no ``base``."""
        _, epoch, coordinator, _, _, batches = next(
            (entry for entry in self.state.producers if entry[0] == write.producer), (0, 0, 0, 0, 0, ())
        )
        epoch = min(max(0, epoch) + write.epoch, _SHORT - 1) if epoch + write.epoch >= 0 else 0
        stamps = [[number, self.timestamp(5)] for number in range(write.records)]
        batch: dict[str, Any] = {"records": stamps} if base is None else {"base": base, "epoch": self.epoch}
        if write.ends is not None:
            end = {"marker": write.ends, "producer": [write.producer, epoch, -1], "records": stamps[:1]}
            known = max(0, coordinator + write.coordinator)
            return batch | end | ({"coordinator_epoch": known} if known else {})
        batch["records"] = self.keyed(stamps) if base is None else stamps
        batch |= {"producer": [write.producer, epoch, self.sequence(write, batches)]}
        if write.transactional:
            batch["transactional"] = True
        if write.empty:
            batch["empty"] = True
        return batch

    @staticmethod
    def sequence(write: Write, batches: tuple[tuple[int, ...], ...]) -> int:
        """Return the first sequence number of a write, given the remembered batches of its producer."""
        last = batches[-1][0] if batches else -1
        following = 0 if last in (-1, INT_MAX) else last + 1
        if write.sequence == "repeated" and batches:
            repeated = batches[-2 if len(batches) > 1 and write.records > 1 else -1]
            return (repeated[0] - repeated[2]) % (1 << 31)
        places = {"gap": following + 2, "zero": 0, "unknown": -1, "last": INT_MAX - 1}
        return min(places.get(write.sequence, following), INT_MAX)

    @rule(written=st.lists(writes(), min_size=1, max_size=4), compacted=st.sampled_from((0, 0, 0, 3)))
    def replicate_writes(self, written: list[Write], compacted: int) -> None:
        """Append, as a follower, batches of producers and coordinators that a leader has accepted."""
        base, batches = self.state.end_offset + compacted, []
        for write in written:
            batches.append(self.written(write, base=base))
            base += len(batches[-1]["records"])
        self.do("append_as_follower", batches, self.epoch)

    @rule(write=writes(client=True))
    def produce(self, write: Write) -> None:
        """Append a producer's batch as a leader: perhaps a duplicate, out of order, or of an old epoch."""
        self.do("append_as_leader", [self.written(write)], self.epoch)

    @rule(write=markers())
    def end_transaction(self, write: Write) -> None:
        """Append a coordinator's marker as a leader: perhaps of an old epoch, or twice."""
        self.do("append_as_leader", [self.written(write)], self.epoch)

    @rule(
        write=writes(client=True),
        asked=st.sampled_from((None, 0, 0, 0, 1, -1)),
        raises_epochs=st.booleans(),
        version=st.sampled_from((0, 2)),
    )
    def verify_and_produce(self, write: Write, asked: int | None, raises_epochs: bool, version: int) -> None:
        """Begin a transaction with a verification guard: new, for another sequence number, or used before.

        Args:
            write: The first batch of the transaction.
            asked: The verified sequence number minus the sequence number of the batch; None to verify nothing.
            raises_epochs: True if the producer raises its epoch with each transaction.
            version: The transaction version.
        """
        batch = self.written(write._replace(transactional=True))
        producer, epoch, sequence = batch["producer"]
        if asked is not None:
            self.do("verify_transaction", producer, min(sequence + asked, INT_MAX), epoch, raises_epochs)
        self.do("append_verified", [batch], self.epoch, version)

    @rule(
        write=writes(client=True),
        asked=st.sampled_from((None, None, 0)),
        raises_epochs=st.booleans(),
        version=st.sampled_from((0, 2)),
    )
    def produce_after_being_fenced(self, write: Write, asked: int | None, raises_epochs: bool, version: int) -> None:
        """Replicates a batch of a producer's next epoch, and then begins a transaction in the epoch before it."""
        fences = write._replace(epoch=1, sequence="zero", transactional=False)
        self.replicate_writes([fences], 0)
        self.verify_and_produce(write._replace(epoch=-1), asked, raises_epochs, version)

    @rule(write=writes(client=True), raises_epochs=st.booleans())
    def verify_transaction(self, write: Write, raises_epochs: bool) -> None:
        """Begin to verify a transaction, without a following append."""
        producer, epoch, sequence = self.written(write)["producer"]
        self.do("verify_transaction", producer, sequence, epoch, raises_epochs)

    @rule(write=markers(), version=st.sampled_from((0, 1, 2, 2, 2)))
    def end_transaction_of_version(self, write: Write, version: int) -> None:
        """Append a coordinator's marker of a version, whose epoch may equal the epoch of its transaction."""
        self.do("append_verified", [self.written(write)], self.epoch, version)

    @rule(producers=id_ranges(), transactional=st.booleans())
    def meet_many(self, producers: range, transactional: bool) -> None:
        """Write one batch for each of many producers, so that a snapshot shows the order of the hash table."""
        end, kind = self.state.end_offset, {"transactional": True} if transactional else {}
        batches = [
            {"base": base, "epoch": self.epoch, "records": [[0, self.timestamp(1)]], "producer": [producer, 0, 0]}
            | kind
            for base, producer in enumerate(producers, start=end)
        ]
        for first in range(0, len(batches), _CALL):
            self.do("append_as_follower", batches[first : first + _CALL], self.epoch)

    @rule(producer=st.sampled_from((1, 2)), ends=st.sampled_from((None, None, "abort", "commit")))
    def append_transaction(self, producer: int, ends: str | None) -> None:
        """Append a batch of a transaction, or its end, as a follower."""
        self.append_one(in_transaction(producer) if ends is None else marker(producer, ends))
        self.ask_for_late_transactions()

    @rule(producer=st.sampled_from((1, 2)), ends=st.sampled_from(("commit", "abort")), replicated=st.integers(1, 4))
    def cut_behind_a_transaction(self, producer: int, ends: str, replicated: int) -> None:
        """Append a transaction as a follower, raise the high watermark, and truncate after it (LG-31)."""
        end = self.state.end_offset
        # One batch per call: a rejected call may leave some of its batches in the log (LG-27).
        for part in (in_transaction(producer), marker(producer, ends), {}, {}):
            self.append_one(part)
        self.do("update_high_watermark", end + replicated)
        self.truncate("truncate_log", end + 3)
        self.append_one({})

    @rule(
        parts=st.lists(
            st.tuples(st.sampled_from((1, 2)), st.sampled_from((None, None, "abort"))), min_size=3, max_size=8
        ),
        back=st.integers(1, 6),
        max_bytes=st.sampled_from((1, 1, 1000)),
    )
    def read_aborted_transactions(self, parts: list[tuple[int, str | None]], back: int, max_bytes: int) -> None:
        """Append transactions as a follower, abort them, perhaps in later segments, and fetch some of their records."""
        for producer, ends in (*parts, (1, "abort"), (2, "abort")):
            self.append_transaction(producer, ends)
        self.do("update_high_watermark", self.offset("end"))
        for offset in (self.offset("start"), self.offset("end", -back)):
            self.do("fetch", offset, max_bytes, "txn_committed", True)

    @rule()
    def expire_producers(self) -> None:
        """Expire producers that have been idle for too long."""
        self.do("expire_producers")


class LeaderRules(LogBase):
    """Appends as a leader, which validates the batches (:mod:`kidx.log.validation`)."""

    @rule(batches=st.lists(sent(), min_size=1, max_size=2), alone=st.sampled_from((True, True, True, False)))
    def append_what_a_leader_refuses_or_changes(self, batches: list[Sent], alone: bool) -> None:
        """Append a producer's batch, or two: old format, corrupt, misnumbered, wrong time, no key, or too large."""
        plans = batches[:1] if alone else batches
        sent = [self.as_producer_batch(plan.batch(self.now, self.settings)) for plan in plans]
        for batch in sent:
            self.timestamps.update(record[1] for record in batch["records"])
        self.do("append_as_leader", sent, self.epoch)


class BoundaryRules(LogBase):
    """Waits and sizes that are equal to a setting, or differ from it by one."""

    @rule(back=st.integers(0, 5), delta=near())
    def reach_the_retention_time(self, back: int, delta: int) -> None:
        """Let records become exactly as old as retention allows, all of them replicated, and run retention."""
        if self.settings["retention.ms"] >= 0 and self.timestamps:
            timestamp = sorted(self.timestamps)[-1 - back % len(self.timestamps)]
            self.wait_until(timestamp + self.settings["retention.ms"] + delta)
            self.do("update_high_watermark", self.offset("end"))
            self.do("apply_retention")

    @rule(delta=near())
    def reach_the_retention_size(self, delta: int) -> None:
        """Reopen the log with a size limit of exactly the bytes after its first segment, and run retention."""
        sizes = [size for _, size in self.state.segments]
        if self.is_open and len(sizes) > 1 and "segments" in self.lockstep.capabilities:
            self.settings = self.settings | {"retention.bytes": max(0, sum(sizes[1:]) + delta)}
            end, start = self.offset("end"), self.offset("start")
            self.do("close_log", True)
            self.is_open = False
            self.open(clean=True, recovery_point=end, start=start)
            self.do("update_high_watermark", end)
            self.do("apply_retention")

    @rule(which=st.integers(0, 3), delta=near())
    def reach_the_expiration(self, which: int, delta: int) -> None:
        """Let a producer be idle for exactly the expiration time."""
        if heard := [producer[3] for producer in self.state.producers]:
            self.wait_until(heard[which % len(heard)] + self.settings[EXPIRATION] + delta)
            self.do("expire_producers")

    def wait_until(self, now: int) -> None:
        """Move the clock to a time."""
        self.now = max(0, now)
        self.do("set_clock", self.now)


_CALLS: Final = (
    ("append_as_follower", ""),
    ("roll_log", ""),
    ("truncate_log", "half"),
    ("truncate_log", "end"),
    ("truncate_fully", "end"),
    ("delete_records", "start"),
    ("delete_records", "high_watermark"),
    ("update_high_watermark", "end"),
    ("update_high_watermark", "half"),
    ("offset_snapshot", ""),
    ("apply_retention", ""),
)
"""Operations that look whether the log is usable, each with the name of an offset."""


class DirectoryRules(LogBase):
    """Operations of a broker on a whole directory, which no client requests."""

    @rule(first=st.sampled_from((1, 1, 2)), then=st.sampled_from((1, 2)), damage=metadata_damages())
    def have_a_topic_id(self, first: int, then: int, damage: Damage | None) -> None:
        """Assign a topic id, reopen the log, perhaps with a corrupt file of the id, and assign another id."""
        if not self.is_open or "assign_topic_id" in self.lockstep.lacking:
            return
        end, start = self.offset("end"), self.offset("start")
        self.do("assign_topic_id", first)
        self.do("close_log", True)
        if damage is not None:
            self.do("damage_log_file", damage.suffix, damage.how, list(damage.arguments))
        self.is_open = False
        self.open(clean=True, recovery_point=end, start=start)
        self.do("topic_id")
        self.do("assign_topic_id", then)
        self.do("topic_id")

    @rule(
        segment=st.integers(0, 3),
        stray=st.sampled_from(("", "", ".index", ".timeindex", ".txnindex")),
        clean=st.booleans(),
    )
    def find_orphaned_indexes(self, segment: int, stray: str, clean: bool) -> None:
        """Close the log, delete the log file of a segment, or create an index file without one, and open the log."""
        if not self.is_open or "clean_flag" not in self.lockstep.capabilities:
            return
        bases = [base for base, _ in self.state.segments]
        end, start = self.offset("end"), self.offset("start")
        self.do("close_log", True)
        if stray:
            self.do("damage_log_file", f"{end + segment:020d}{stray}", "write_file", ["00" * 12])
        else:
            self.do("damage_log_file", f"{bases[segment % len(bases)]:020d}.log", "remove_file", [])
        self.is_open = False
        self.open(clean=clean, recovery_point=end, start=start)

    @rule(calls=st.lists(st.sampled_from(_CALLS), min_size=1, max_size=3))
    def move_from_another_disk(self, calls: list[tuple[str, str]]) -> None:
        """Rename the directory to the name of a copy that another disk makes, change the log, and rename it back."""
        if "rename_log" in self.lockstep.lacking:
            return
        self.do("rename_log", "future")
        self.call(calls)
        self.do("list_offsets", [-1, *sorted(self.timestamps)[-2:]])
        self.do("end_offset_for_epoch", self.epoch)
        self.do("rename_log", "topic")

    @rule(renamed=st.booleans())
    def delete_the_log(self, renamed: bool) -> None:
        """Delete the log, after its directory was perhaps renamed, and create it again."""
        if not self.is_open or "delete_log" in self.lockstep.lacking:
            return
        if renamed:
            self.do("rename_log", "deleted")
            self.do("end_offset_for_epoch", self.epoch)
            self.do("topic_id")
            self.do("read_log", self.offset("start"))
        self.do("delete_log")
        self.is_open = False
        self.open(clean=True, recovery_point=0, start=0)

    @rule(calls=st.lists(st.sampled_from(_CALLS), min_size=1, max_size=3), delete=st.booleans())
    def lose_the_disk(self, calls: list[tuple[str, str]], delete: bool) -> None:
        """Let the disk of the log fail, try to use it, delete or close it, kill the process, and open it again."""
        if not self.is_open or "fail_log" in self.lockstep.lacking:
            return
        end, start = self.offset("end"), self.offset("start")
        self.do("fail_log")
        self.call(calls)
        if delete:
            self.do("delete_log")
            if all(group.observation.outcome.error is None for group in self.lockstep.groups):  # as from 4.4 (LG-97)
                self.is_open = False
                self.open(clean=True, recovery_point=0, start=0)
                return
        else:
            self.do("close_log", False)
        self.do("crash_log")
        self.is_open = False
        self.open(clean=False, recovery_point=end, start=start)

    def call(self, calls: list[tuple[str, str]]) -> None:
        """Execute operations at places of the log, each an operation and the name of an offset."""
        for name, place in calls:
            if name == "append_as_follower":
                self.append_one({})
            else:
                self.do(name, *([self.offset(place)] if place else []))


class FetchRules(LogBase):
    """Fetches of followers and consumers."""

    @rule(anchor=cut_anchors(), delta=near(), max_bytes=st.sampled_from((1, 0, 75, 150, 1 << 20)), whole=st.booleans())
    def fetch(self, anchor: str, delta: int, max_bytes: int, whole: bool) -> None:
        """Fetch from an offset up to each limit, and ask how many bytes the log has after it."""
        offset = self.offset(anchor, delta)
        for isolation in ISOLATIONS:
            self.do("fetch", offset, max_bytes, isolation, whole)
            self.do("bytes_after", offset, isolation)

    @rule(
        anchor=st.sampled_from(("end", "end", "half", "active", "high_watermark", "start")),
        delta=near(),
        meanwhile=st.sampled_from(
            ((), ("roll",), ("append",), ("append", "roll"), ("roll", "append"), ("roll", "roll"))
        ),
        isolation=st.sampled_from(ISOLATIONS),
    )
    def follow(self, anchor: str, delta: int, meanwhile: tuple[str, ...], isolation: str) -> None:
        """Fetch as a follower, perhaps change the log, and raise the high watermark to where the follower is."""
        offset = self.offset(anchor, delta)
        self.do("fetch", offset, 1, "log_end", True)
        for what in meanwhile:
            if what == "append":
                self.append_one({})
            else:
                self.do("roll_log")
        self.do("raise_high_watermark", offset)
        self.do("fetch", self.offset("end"), 1, "log_end", True)
        self.do("raise_high_watermark", self.offset("end"))
        self.do("bytes_after", self.offset("half"), isolation)
        self.do("fetch", self.offset("half"), 1 << 20, isolation, True)


class ExternalLogRules(LogBase):
    """Losses and truncations that need earlier steps, together with these steps."""

    def topic(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return a topic's settings; see the base class."""
        known = {name: value for name, value in super().topic(settings).items() if name not in OF_KAFKA}
        return recompressible_topic(known)

    def as_producer_batch(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return a producer's batch; see the base class."""
        return recompressible(batch, self.settings)

    @rule(
        gaps=st.lists(st.sampled_from((10, -5, -15, 0)), min_size=3, max_size=9),
        how=st.sampled_from(("crash", "crash", "close")),
        recovery=st.sampled_from(("zero", "zero", "active", "end")),
        lost=strategies.lost_indexes(),
    )
    def lose_an_index(self, gaps: list[int], how: str, recovery: str, lost: strategies.Damage) -> None:
        """Fill some segments, kill or close the log, delete an index of a full segment, and open the log."""
        for gap in gaps:
            self.do("append_as_leader", [{"records": self.keyed([[0, self.timestamp(gap)]])}], self.epoch)
        full = [base for base, _ in self.state.segments][:-1]
        if not (self.is_open and full):
            return
        recovery_point, start = self.offset(recovery), self.offset("start")
        self.do("crash_log") if how == "crash" else self.do("close_log", True)
        name = f"{full[lost.segment % len(full)]:020d}{lost.suffix}"
        self.do("damage_log_file", name, lost.how, list(lost.arguments))
        self.is_open = False
        self.open(clean=how != "crash", recovery_point=recovery_point, start=start)

    @rule(records=st.integers(2, 4), deleted=st.integers(1, 3), delta=strategies.near())
    def cut_where_the_log_begins(self, records: int, deleted: int, delta: int) -> None:
        """Delete records up to the middle of a batch, and truncate at the new log start."""
        first = self.state.end_offset
        for count in (records, 1):
            stamps = [[number, self.timestamp(1)] for number in range(count)]
            self.do("append_as_leader", [{"records": self.keyed(stamps)}], self.epoch)
        self.do("update_high_watermark", first + records)
        self.do("delete_records", first + min(deleted, records))
        self.truncate("truncate_log", self.offset("start", delta))
