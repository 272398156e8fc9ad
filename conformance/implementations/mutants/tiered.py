"""Defects of a log with a remote tier: its starts, its tasks, and lookups across both tiers."""

from conformance.implementations.kidx.tiered import LogWithTasks
from conformance.implementations.mutants.registry import START, Row, plant

# fmt: off
plant(
    LogWithTasks,
    Row("TL-1", "starts-locally", "The log start is never below the first local segment.",
        "_loaded_start", START, "return max(log_start_offset, self.segments.first.base_offset)"),
    Row("TL-2", "keeps-the-local-start", "Deleting records does not move the local start.",
        "delete_records", "max(offset, self.local_start_offset)", "self.local_start_offset"),
    Row("TL-4", "forgets-the-end", "The highest remote offset may be past the end of its epoch.",
        "highest_copied_offset", "min(highest, end - 1)", "highest"),
    Row("TL-4", "learns-from-the-oldest", "The highest remote offset is of the oldest epoch.",
        "highest_copied_offset", "reversed(self.epochs.entries)", "self.epochs.entries"),
    Row("TL-5", "deletes-before-copying", "Local retention deletes segments that were not copied.",
        "is_removable", START, "return True"),
    Row("TL-5", "moves-the-log-start", "Local retention moves the log start.",
        "remove_oldest", "self._detach(segments)",
        "self._detach(segments); self.start_offset = self.local_start_offset"),
    Row("TL-7", "copies-past-the-lso", "Segments above the last stable offset are copied.",
        "remote_tasks.candidates", "other.base_offset <= stable", "True"),
    Row("TL-7", "copies-again", "A copy begins at the last copied segment.",
        "remote_tasks.copy", "self._copied + 1", "self._copied"),
    Row("TL-9", "keeps-the-log-start", "The first copy does not move the log start.",
        "remote_tasks.copy", "log.delete_records(self.remote_start())", "pass"),
    Row("TL-10", "deletes-the-start", "The segment with the log start is deleted.",
        "remote_tasks.expiration.is_below_start", "segment.end_offset < log_start", "segment.start_offset < log_start"),
    Row("TL-11b", "expires-too-early", "A segment is deleted a millisecond too early.",
        "remote_tasks.expiration.is_too_old", "segment.max_timestamp == until", "False"),
    Row("TL-12", "deletes-too-much", "A segment is deleted that is larger than the surplus.",
        "remote_tasks.expiration.is_surplus", "self._surplus < segment.size", "False"),
    Row("TL-14", "forgets-the-first-epoch", "The epoch in which a segment begins is not in its metadata.",
        "remote_tasks.epochs_between", "{before[-1].epoch: start} if before else {}",
        "{before[-1].epoch: start} if before and before[-1].start_offset == start else {}"),
    Row("LO-4", "counts-from-one", "Target -5 is answered with the offset after the highest remote one.",
        "fetch_offset_by_timestamp", "highest = self.highest_remote_offset",
        "highest = self.highest_remote_offset + 1"),
    Row("LO-5", "pends-before-the-start", "Target -6 may be below the log start.",
        "_earliest_pending_upload", "max(self.highest_remote_offset + 1, self.start_offset)",
        "self.highest_remote_offset + 1"),
    Row("LO-19", "searches-the-next-segment", "A remote segment without the record does not end the search.",
        "remote_lookup.find", "return self.find_in(segment, timestamp, starting_offset)",
        "found = self.find_in(segment, timestamp, starting_offset)\nif found: return found\ncontinue"),
    Row("LO-19", "ignores-the-lineage", "Remote segments that do not belong to the log are searched.",
        "remote_lookup.is_valid", START, "return True"),
)
# fmt: on
