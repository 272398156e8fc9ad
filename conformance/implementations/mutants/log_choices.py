"""Choices of segments and logs, see :mod:`conformance.implementations.mutants.choices`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from conformance.implementations.kidx.log import ReferenceLog
from conformance.implementations.kidx.segment import ReferenceSegment
from conformance.implementations.mutants import leader, log, producers
from conformance.implementations.mutants.choices import choose, choose_class, choose_defect
from conformance.implementations.mutants.registry import REFERENCES
from conformance.implementations.mutants.segment_choices import RecoversAnything, RemovesEntries, SkipsEntriesWhenFull
from conformance.operations import Operation, Outcome
from conformance.operations.batches import encode
from conformance.operations.log import LOG_OPS
from conformance.operations.malformed_batches import is_corrupt_stream
from conformance.oracle import records_of
from kidx.dialect import dialect_of, with_overrides
from kidx.errors import KidxError
from kidx.log import UnifiedLog
from kidx.log.epochs import FILE_NAME, LeaderEpochCache
from kidx.log.lookup import MAX_TIMESTAMP
from kidx.producers import Origin, ProducerStateManager
from kidx.records.codecs import Codec, compress
from kidx.segment import TimestampAndOffset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from conformance.operations.log import LogObservation
    from conformance.operations.segment import SegmentObservation
    from conformance.oracle import ConsumerRecord
    from kidx.log.fetch import OffsetMetadata
    from kidx.log.results import AppendResult
    from kidx.segment import AppendInfo, LogSegment


def _elsewhere(machine: str, behaviours: Mapping[str, object]) -> type:
    """Return a reference that behaves as in other releases in some rows of the table of behaviours."""

    class Elsewhere(REFERENCES[machine][0]):  # type: ignore[misc]
        def __init__(self, release: str) -> None:
            super().__init__(release)
            self.dialect = with_overrides(dialect_of(release), **behaviours)

    return Elsewhere


_ELSEWHERE: Final[dict[tuple[str, str], dict[str, object]]] = {
    ("segment", "LZ-3a SEG-24a SEG-28a"): {"close_loads_indexes": False},
    ("segment", "LZ-3b SEG-24f SEG-28b"): {"close_loads_indexes": True},
    ("segment", "SEG-32a"): {"empty_transactions_complete": False},
    ("segment", "SEG-24c SEG-29"): {"close_finishes_segment": True},
    ("segment", "SEG-24d"): {"close_reports_errors": True},
    ("segment", "SEG-39"): {"recover_fences_markers": False},
    ("segment", "SEG-43"): {"markers_parsed_by_generated_code": False},
    ("segment", "SEG-44"): {"max_timestamp_may_look_unread": False},
    ("segment", "SEG-45"): {"truncation_reloads_in_two_steps": False},
    ("segment", "SEG-46"): {"truncated_records_are_null": False},
    ("segment", "SEG-48"): {"leaks_illegal_argument_for_size": False},
    ("segment", "SEG-49"): {"truncated_streams_are_invalid": False},
    ("log", "LG-8a"): {"idle_truncation_truncates_epochs": True},
    ("log", "LG-8b"): {"idle_truncation_truncates_epochs": False},
    ("log", "LG-10"): {"full_truncation_keeps_high_watermark": False},
    ("log", "LG-13a"): {"retention_starts_with_start_offset": True},
    ("log", "LG-13b"): {"retention_starts_with_start_offset": False},
    ("log", "LG-18a"): {"deleting_all_forgets_epochs": True},
    ("log", "LG-18b"): {"deleting_all_forgets_epochs": False},
    ("log", "LG-21"): {"search_start_survives_truncation": False},
    ("segment", "SEG-47"): {"truncated_headers_are_out_of_bounds": False},
    ("segment", "SEG-2d"): {"segment_text": "plain"},
    ("segment", "SEG-2e"): {"segment_text": "option"},
    ("segment", "SEG-51"): {"searches_by_base_offset": False},
    ("log", "LG-31c"): {"truncation_applies_any_watermark": True},
    ("log", "SEG-31a"): {"recover_ignores_epoch_zero": False},
    ("log", "SEG-27 LG-26"): {"close_finishes_segment": True, "close_trims": True},
    ("log", "SEG-8a"): {"leader_timestamp": "request"},
    ("log", "SEG-8b"): {"leader_timestamp": "record"},
    ("log", "SEG-8c"): {"leader_timestamp": "record"},
    ("log", "LO-9"): {"max_lookup": "read"},
    ("log", "LO-20"): {"max_lookup": "read", "lowest_target": -3},
    ("log", "LO-3b"): {"lowest_target": -4},
    ("log", "LG-11 LG-31a LG-72"): {"truncation_updates_transactions": False},
    ("log", "LG-41"): {"rolling_keeps_snapshot": True},
    ("log", "LG-44"): {"recovery_reuses_producers": True},
    ("log", "LG-45c"): {"verification_fences": False},
    ("log", "LG-65a"): {"follower_checks_message_size": False},
    ("log", "LG-68"): {"segment_text": "plain"},
    ("log", "LG-79"): {"watermark_metadata_resolved_last": False},
    ("log", "LG-91a"): {"newer_partition_metadata_is_read": True},
    ("log", "LG-95"): {"close_loads_indexes": False},
}
"""Clauses about what Kafka does differently in other releases, and the behaviours of those."""

for (_machine, _clauses), _behaviours in _ELSEWHERE.items():
    for _clause in _clauses.split():
        _words = " and ".join(name.replace("_", " ") for name in _behaviours)
        _title = f"As in other releases: {_words}."
        _name = f"{_machine}-{_clause.lower()}-as-elsewhere"
        choose(_clause, _name, _title, _machine, partial(_elsewhere, _machine, _behaviours))


# -- lookups by time ---------------------------------------------------------------------------------------------------


class _Looking(UnifiedLog):
    """Base of a log that sometimes scans the visible records for the largest timestamp."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        found = super().fetch_offset_by_timestamp(target)
        if target != MAX_TIMESTAMP or self.dialect.max_lookup == "unknown" or not self.is_wrong(found):
            return found
        records = [record for record in self.visible() if record.timestamp >= 0]
        if not records:
            return None
        largest = max(records, key=lambda record: record.timestamp)
        return TimestampAndOffset(largest.timestamp, largest.offset, self.epochs.epoch_of(largest.offset))

    def visible(self) -> list[ConsumerRecord]:
        """Return the records that a consumer can read."""
        records = [record for each in self.segments for record in records_of(each.log.path.read_bytes())]
        return [record for record in records if self.start_offset <= record.offset < self.end_offset]

    def is_wrong(self, found: TimestampAndOffset | None) -> bool:
        """Return True if the result is to be replaced."""
        raise NotImplementedError


class NoDeletedMaximum(_Looking):
    """The largest timestamp belongs to a record that is not deleted."""

    def is_wrong(self, found: TimestampAndOffset | None) -> bool:
        return found is not None and found.offset < self.start_offset


class NoMissingMaximum(_Looking):
    """The largest timestamp belongs to a record, although a batch without records has a larger one."""

    def is_wrong(self, found: TimestampAndOffset | None) -> bool:
        return found is None


class NoTimeIsNoResult(UnifiedLog):
    """If no record has a timestamp, there is no largest one."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        found = super().fetch_offset_by_timestamp(target)
        return None if target == MAX_TIMESTAMP and found is not None and found.timestamp < 0 else found


class _Passing(UnifiedLog):
    """Base of a log in which a search by timestamp passes by some segments."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        found = super().fetch_offset_by_timestamp(target)
        if found is not None or target < 0:
            return found
        for segment in self.segments:
            if segment.largest_timestamp >= target:
                found = segment.find_offset_by_timestamp(target, self.start_offset)
                if found is not None and found.offset >= self.end_offset:
                    return None  # a record of a rejected append
                if found is not None or not self.passes(segment):
                    return found
        return None

    def passes(self, segment: Any) -> bool:
        """Return True if the search continues after a segment without a result."""
        raise NotImplementedError


class PassesByUntimed(_Passing):
    """A search by timestamp continues after a segment without timestamps."""

    def passes(self, segment: Any) -> bool:
        return bool(segment.max_timestamp_so_far.timestamp < 0)


class PassesByDeleted(_Passing):
    """A search by timestamp continues after a segment in which the log start lies."""

    def passes(self, segment: Any) -> bool:
        return bool(segment.base_offset < self.start_offset)


class PassesByAll(_Passing):
    """A search by timestamp continues after a segment without a result."""

    def passes(self, segment: Any) -> bool:
        return True


class FindsNothingInCorruption(UnifiedLog):
    """A search by timestamp that reaches a batch which cannot be read has no result."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        try:
            return super().fetch_offset_by_timestamp(target)
        except KidxError:
            return None


# -- offsets -----------------------------------------------------------------------------------------------------------


class IsStableFromTheStart(UnifiedLog):
    """The last stable offset is never before the log start offset."""

    def _update_first_unstable_offset(self) -> None:
        super()._update_first_unstable_offset()
        if self.first_unstable_offset is not None:
            self.first_unstable_offset = max(self.first_unstable_offset, self.start_offset)


class KeepsTheHighWatermark(UnifiedLog):
    """A fetch does not move the high watermark back."""

    def _offset_metadata(self, offset: int) -> OffsetMetadata:
        found = super()._offset_metadata(offset)
        return found._replace(offset=max(offset, found.offset)) if offset == self.high_watermark else found


class FailsWithALowerHighWatermark(UnifiedLog):
    """A truncation that fails lowers the high watermark to the log end offset."""

    def truncate_to(self, offset: int) -> bool:
        try:
            return super().truncate_to(offset)
        except (KidxError, OSError):
            if self.high_watermark > self.end_offset:
                self.high_watermark, self.watermark_place = self.end_offset, None
            raise


class ForgetsRejectedEpochs(UnifiedLog):
    """A rejected append leaves no leader epochs."""

    def _append(self, *arguments: Any, **named: Any) -> AppendResult:
        before = list(self.epochs.entries)
        try:
            return super()._append(*arguments, **named)
        except (KidxError, OSError):
            self.epochs.clear()
            for entry in before:
                self.epochs.assign(*entry)
            raise


class BeginsWithoutEpochs(UnifiedLog):
    """A checkpoint of leader epochs that cannot be read counts as empty."""

    def _stored_epochs(self) -> LeaderEpochCache:
        try:
            return super()._stored_epochs()
        except (KidxError, OSError):
            (self.directory / FILE_NAME).write_text("")
            return super()._stored_epochs()


class NeverForgetsProducers(UnifiedLog):
    """A log without a snapshot that is opened as after a clean shutdown reads its producers from its records."""

    def _rebuild_producers(self, *, clean: bool = False) -> None:
        has_snapshot = self.producers.latest_snapshot is not None
        super()._rebuild_producers(clean=clean and has_snapshot)


class _KeepsSnapshots(ProducerStateManager):
    def delete_snapshots_before(self, offset: int) -> None:
        pass


class KeepsSnapshotsBeforeTheStart(UnifiedLog):
    """Moving the log start offset deletes no snapshots."""

    producer_state = _KeepsSnapshots


class FollowersIndexTheLastOffset(UnifiedLog):
    """A follower adds the largest timestamp to the time index with the last offset of the append."""

    def _append(self, records: bytes, batches: Any, info: AppendInfo, result: Any, origin: Origin, *others: Any) -> Any:
        if origin is Origin.REPLICATION:
            info = info._replace(shallow_offset=info.largest_offset)
        return super()._append(records, batches, info, result, origin, *others)


# -- files -------------------------------------------------------------------------------------------------------------


class KeepsAnEmptySegment(UnifiedLog):
    """A roll at the base offset of an empty segment keeps the segment if its indexes have space, and zeros only."""

    def _roll(self, expected_offset: int) -> LogSegment:
        self._check_usable()
        active = self.segments.active
        if active.size or active.base_offset != max(expected_offset, self.end_offset):
            return super()._roll(expected_offset)
        indexes = active.offset_index, active.time_index
        if any(index.entries or index.is_full or any(index.path.read_bytes()) for index in indexes):
            return super()._roll(expected_offset)
        self.producers.map_end_offset = active.base_offset
        self.producers.take_snapshot()
        self.recovery_point = max(self.recovery_point, active.base_offset)
        return active


class HighWatermarkCreatesMore(UnifiedLog):
    """If setting the high watermark creates an offset index, it also creates a time index."""

    def update_high_watermark(self, offset: int) -> int:
        unopened = [segment for segment in self.segments if not segment.lazy_offset_index.is_loaded]
        found = super().update_high_watermark(offset)
        for segment in unopened:
            if segment.lazy_offset_index.is_loaded:
                segment.lazy_time_index.get()
        return found


class TruncationRemovesEntries(UnifiedLog):
    """A truncation leaves no index entries in the last segment."""

    segment_type = RemovesEntries


class RecoversAnySegment(UnifiedLog):
    """A recovery has space for as many index entries as it needs."""

    segment_type = RecoversAnything


class AppendsWithoutEntries(UnifiedLog):
    """Batches for whose entries an index has no space are appended without them."""

    segment_type = SkipsEntriesWhenFull


def _with_outcome(change: Callable[[Operation, Outcome], Outcome], reference: type) -> type:
    """Return a reference with other outcomes."""

    class WithOutcome(reference):  # type: ignore[misc]
        def perform(self, operation: Operation) -> LogObservation | SegmentObservation:
            observation = super().perform(operation)
            return observation._replace(outcome=change(operation, observation.outcome))  # type: ignore[no-any-return]

    return WithOutcome


def _renames(before: str, after: str) -> Callable[[Operation, Outcome], Outcome]:
    """Return a change of one error into another."""
    return lambda _, outcome: Outcome(after) if outcome.error == before else outcome


def _has_no_first_offset(operation: Operation, outcome: Outcome) -> Outcome:
    if operation.name != "append_as_follower" or not outcome.value:
        return outcome
    at = LOG_OPS[operation.name].fields.index("first_offset")
    values: Any = outcome.value
    return Outcome(None, (*values[:at], -1, *values[at + 1 :]))


def _rejecting(codecs: tuple[str, ...]) -> type:
    """Return a log whose leader rejects each corrupt stream of some codecs."""

    class Rejecting(ReferenceLog):
        limit: int | None = None

        def perform(self, operation: Operation) -> LogObservation:
            if operation.name == "open_log":
                self.limit = operation.args[0].get("max.message.bytes")
            if operation.name != "append_as_leader" or not self.rejects(operation.args[0]):
                return super().perform(operation)
            look = Operation("set_clock", (self._now,))
            return super().perform(look)._replace(outcome=Outcome("invalid_record"))

        def rejects(self, batches: list[Any]) -> bool:
            corrupt = any(is_corrupt_stream(batch) and batch["codec"] in codecs for batch in batches)
            is_small = self.limit is None or all(len(encode([batch])) <= self.limit for batch in batches)
            return corrupt and is_small and self.log is not None and not self.log.is_failed

    return Rejecting


def _compressing() -> type:
    """Return a log that compresses with other bytes: an uncompressed batch would be too large a difference."""

    class Compressing(ReferenceLog):
        def __init__(self, release: str) -> None:
            super().__init__(release)
            self.dialect = dialect_of(release).with_libraries(_with_a_comment, None)

    return Compressing


def _with_a_comment(codec: Any, data: bytes, magic: int) -> bytes:
    """Compress as kidx does; a gzip stream names another operating system."""
    done = compress(codec, data, magic=magic)
    return done[:9] + b"\x07" + done[10:] if codec is Codec.GZIP else done


choose_class("LO-23", "log", PassesByAll)
choose_class("LG-22", "log", PassesByUntimed)
choose_class("LG-23", "log", PassesByDeleted)
choose_class("LG-24", "log", NoDeletedMaximum)
choose_class("LG-25", "log", NoTimeIsNoResult)
choose_class("LG-29", "log", FindsNothingInCorruption)
choose_class("LG-84", "log", NoMissingMaximum)
choose_class("LG-20", "log", IsStableFromTheStart)
choose_class("LG-67", "log", KeepsTheHighWatermark)
choose_class("LG-73", "log", FailsWithALowerHighWatermark)
choose_class("LG-4b", "log", ForgetsRejectedEpochs)
choose_class("LG-78", "log", BeginsWithoutEpochs)
choose_class("LG-30", "log", NeverForgetsProducers)
choose_class("LG-34a", "log", KeepsSnapshotsBeforeTheStart)
choose_class("SEG-8d", "log", FollowersIndexTheLastOffset)
choose_class("LG-6", "log", KeepsAnEmptySegment)
choose_class("LG-72", "log", HighWatermarkCreatesMore)
choose_class("LG-83", "log", TruncationRemovesEntries)
choose_class("LG-19", "log", RecoversAnySegment)
choose_class("LG-27", "log", AppendsWithoutEntries)

# fmt: off
_OTHER_OUTCOMES: Final = (
    ("LG-55c", "log", "rejects-what-it-cannot-rebuild", "A batch that cannot be rebuilt is rejected as invalid.",
        partial(_with_outcome, _renames("unsupported_operation", "invalid_record"), ReferenceLog)),
    ("LG-75", "log", "names-missing-checksums", "A frame without the checksum that it claims is an invalid record.",
        partial(_with_outcome, _renames("buffer_underflow", "invalid_record"), ReferenceLog)),
    ("LG-99", "log", "followers-have-no-first-offset", "A follower's append returns no first offset.",
        partial(_with_outcome, _has_no_first_offset, ReferenceLog)),
    ("SEG-54", "segment", "names-truncated-blocks", "A truncated block is an invalid record.",
        partial(_with_outcome, _renames("io", "invalid_record"), ReferenceSegment)),
    ("LG-64", "log", "rejects-corrupt-streams", "A leader rejects every corrupt stream.",
        partial(_rejecting, ("zstd", "snappy", "lz4"))),
    ("LG-74", "log", "rejects-corrupt-blocks", "A leader rejects every corrupt lz4 stream.",
        partial(_rejecting, ("lz4",))),
    ("LG-76", "log", "rejects-empty-blocks", "A leader rejects every corrupt lz4 stream.",
        partial(_rejecting, ("lz4",))),
    ("LG-58", "log", "compresses-with-other-bytes", "A gzip stream of a leader names another operating system.",
        _compressing),
)
# fmt: on
for _clause, _machine, _name, _title, _build in _OTHER_OUTCOMES:
    choose(_clause, f"{_machine}-{_name}", _title, _machine, _build)

_REGISTERED: Final = (leader, log, producers)
"""The modules whose defects are choices, too."""

for _clause, _name in (
    ("LG-98", "result-ends-one-offset-later"),
    ("LG-100", "duplicate-has-no-timestamp"),
    ("LO-15a", "knows-nothing-of-unknown-targets"),
    ("LG-33", "takes-no-snapshots"),
    ("LG-34b", "keeps-stray-snapshots"),
    ("LG-42", "sorts-producers-by-id"),
    ("LG-45b", "sequences-are-not-verified"),
    ("LG-51b", "refuses-stamped-batches"),
    ("LG-54b", "reads-all-of-compressed-records"),
    ("LG-55d", "counts-uncompressed-records-too"),
    ("LG-91b", "newer-metadata-is-rejected"),
    ("LG-93", "deletion-keeps-epochs"),
    ("LG-97a", "deletes-on-a-failed-disk"),
    ("LG-97b", "deletes-nothing-on-a-failed-disk"),
):
    choose_defect(_clause, "log", _name)
