"""Rules of the log machine for producers: transactions, sequence numbers and epochs, accepted or rejected."""

from __future__ import annotations

from typing import Any

from conformance.machines.log_base import LogBase
from conformance.machines.seeded_rules import rule
from conformance.strategies import draws as st
from conformance.strategies.producers import Write, many, markers, writes
from kidx.java_numbers import INT_MAX

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

    @rule(producers=many(), transactional=st.booleans())
    def meet_many(self, producers: range, transactional: bool) -> None:
        """Write one batch for each of many producers, so that a snapshot has the order of a grown hash table."""
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

    @rule()
    def expire_producers(self) -> None:
        """Expire producers that have been idle for too long."""
        self.do("expire_producers")
