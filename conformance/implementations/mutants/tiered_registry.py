"""Registry of the defects of a log with a remote tier, and the planted ones.

They are separate from the other mutants, as `conformance run` does not drive the machine that finds them.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from conformance.implementations.kidx.tiered import ReferenceTiered
from conformance.implementations.mutants.registry import NEWEST, START, Row
from kidx.tiers import RemoteMetadata, RemoteTasks, TieredLog
from kidx.tiers.expiration import Expiration
from kidx.tiers.lookup import RemoteLookup


class TieredDefect(NamedTuple):
    """Reference with one planted defect.

    Attributes:
        row: The row that plants it.
        original: The class in which it is planted.
    """

    row: Row
    original: type[Any]

    def implementation(self) -> ReferenceTiered:
        """Return the reference with the defective class instead of the original."""
        spoilt = self.row.planted_in(self.original)()
        members: dict[str, Any] = {
            TieredLog: lambda: {"tiered_log": spoilt},
            RemoteMetadata: lambda: {"remote_metadata": spoilt},
            RemoteTasks: lambda: {"remote_tasks": spoilt},
            RemoteLookup: lambda: {"tiered_log": type("Log", (TieredLog,), {"remote_lookup": spoilt})},
            Expiration: lambda: {"remote_tasks": type("Tasks", (RemoteTasks,), {"expiration": spoilt})},
        }[self.original]()
        made: ReferenceTiered = type(self.row.name, (ReferenceTiered,), members)(self.row.release or NEWEST)
        made.name = f"mutant:{self.row.name} {made.release}"
        return made


# fmt: off
DEFECTS: Final = (
    TieredDefect(Row("TL-1", "StartsLocally", "The log start is never below the first local segment.",
        "_loaded_start", START, "return max(log_start_offset, self.segments.first.base_offset)"), TieredLog),
    TieredDefect(Row("TL-2", "KeepsTheLocalStart", "Deleting records does not move the local start.",
        "delete_records", "max(offset, self.local_start_offset)", "self.local_start_offset"), TieredLog),
    TieredDefect(Row("TL-4", "ForgetsTheEnd", "The highest remote offset may be past the end of its epoch.",
        "highest_copied_offset", "min(highest, end - 1)", "highest"), TieredLog),
    TieredDefect(Row("TL-4", "LearnsFromTheOldest", "The highest remote offset is of the oldest epoch.",
        "highest_copied_offset", "reversed(self.epochs.entries)", "self.epochs.entries"), TieredLog),
    TieredDefect(Row("TL-5", "DeletesBeforeCopying", "Local retention deletes segments that were not copied.",
        "is_removable", START, "return True"), TieredLog),
    TieredDefect(Row("TL-5", "MovesTheLogStart", "Local retention moves the log start.",
        "remove_oldest", "self._detach(segments)",
        "self._detach(segments); self.start_offset = self.local_start_offset"), TieredLog),
    TieredDefect(Row("TL-7", "CopiesPastTheLso", "Segments above the last stable offset are copied.",
        "candidates", "other.base_offset <= stable", "True"), RemoteTasks),
    TieredDefect(Row("TL-7", "CopiesAgain", "A copy begins at the last copied segment.",
        "copy", "self._copied + 1", "self._copied"), RemoteTasks),
    TieredDefect(Row("TL-9", "KeepsTheLogStart", "The first copy does not move the log start.",
        "copy", "log.delete_records(self.remote_start())", "pass"), RemoteTasks),
    TieredDefect(Row("TL-10", "DeletesTheStart", "The segment with the log start is deleted.",
        "is_below_start", "segment.end_offset < log_start", "segment.start_offset < log_start"), Expiration),
    TieredDefect(Row("TL-11", "ExpiresTooEarly", "A segment is deleted a millisecond too early.",
        "is_too_old", "segment.max_timestamp == until", "False"), Expiration),
    TieredDefect(Row("TL-12", "DeletesTooMuch", "A segment is deleted that is larger than the surplus.",
        "is_surplus", "self._surplus < segment.size", "False"), Expiration),
    TieredDefect(Row("TL-14", "ForgetsTheFirstEpoch", "The epoch in which a segment begins is not in its metadata.",
        "epochs_between", "{before[-1].epoch: start} if before else {}",
        "{before[-1].epoch: start} if before and before[-1].start_offset == start else {}"), RemoteTasks),
    TieredDefect(Row("LO-4", "CountsFromOne", "Target -5 is answered with the offset after the highest remote one.",
        "fetch_offset_by_timestamp", "highest = self.highest_remote_offset",
        "highest = self.highest_remote_offset + 1"), TieredLog),
    TieredDefect(Row("LO-5", "PendsBeforeTheStart", "Target -6 may be below the log start.",
        "_earliest_pending_upload", "max(self.highest_remote_offset + 1, self.start_offset)",
        "self.highest_remote_offset + 1"), TieredLog),
    TieredDefect(Row("LO-19", "SearchesTheNextSegment", "A remote segment without the record does not end the search.",
        "find", "return self.find_in(segment, timestamp, starting_offset)",
        "found = self.find_in(segment, timestamp, starting_offset)\nif found: return found\ncontinue"), RemoteLookup),
    TieredDefect(Row("LO-19", "IgnoresTheLineage", "Remote segments that do not belong to the log are searched.",
        "is_valid", START, "return True"), RemoteLookup),
)
"""Defects that the machine has to find."""
# fmt: on
