"""Operations on a log with a local and a remote tier, and their outcomes as plain data (:mod:`conformance.operations`).

They are operations of a log (:mod:`conformance.operations.log`), and the tasks of ``RemoteLogManager``. Remote storage
is next to the log's directory. The metadata of remote segments outlives the log, as the topic
``__remote_log_metadata`` does. A task is finished before an operation ends.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.operations.log import LOG_ERROR_KINDS, LOG_OPS, LogState
from conformance.operations.op import BOOLEAN, INT, LONG, SETTINGS, Effect, Files, Op, Shape, by_name, one_of

if TYPE_CHECKING:
    from conformance.operations.outcomes import Json, Outcome

FAILURES: Final = ("nothing", "copy", "fetch", "delete", "copy and delete")
"""The operations of storage that fail; their positions here are their numbers in FailingStorage.java."""
TIERED_ERROR_KINDS: Final = (*LOG_ERROR_KINDS, "remote")
"""The error kinds of a tiered log; ``remote`` is an error of remote storage."""

_op = partial(Op, files=Files.REPLACES)

_OWN_OPS: Final = by_name(
    (
        # Opens or creates the log, with tasks of a new leader; it takes the arguments of open_log.
        _op(
            "open_tiers",
            {"settings": SETTINGS, "log_start_offset": LONG, "recovery_point": LONG, "clean": BOOLEAN, "now": LONG},
            effect=Effect.OPENS,
        ),
        # One run of the leader's copy task.
        _op("copy_segments", {}),
        # One run of the leader's expiration task.
        _op("expire_remote", {}),
        # One run of the follower's task.
        _op("follow_remote", {}),
        # Fetches from remote segments, as `RemoteLogManager.read` does. With `committed`, the result ends with the
        # number of aborted transactions, and producer id and first offset of each; without it, with -1.
        _op(
            "fetch_remote",
            {"offset": LONG, "max_bytes": INT, "at_least_one": BOOLEAN, "committed": BOOLEAN},
            gives=Shape.NUMBERS,
            fields=("base_offset", "segment_base", "position", "size", "crc32_of_all", "aborted", "producer", "first"),
        ),
        # Makes operations of the storage fail from now on: a copy after its files were written, the others before.
        Op("fail_storage", {"what": one_of(*FAILURES)}, files=Files.LEAVES),
        # Replaces the tasks, as a broker does that becomes the leader again.
        Op("renew_tasks", {}, files=Files.LEAVES),
    )
)
"""Operations that only this machine has."""

_OF_LOGS: Final = (
    "append_as_leader",
    "append_as_follower",
    "roll_log",
    "truncate_log",
    "truncate_fully",
    "delete_records",
    "apply_retention",
    "update_high_watermark",
    "assign_epoch",
    "set_clock",
    "list_offsets",
    "close_log",
    "crash_log",
    "damage_log_file",
)
TIERED_OPS: Final = _OWN_OPS | {name: LOG_OPS[name] for name in _OF_LOGS}
"""All operations on a tiered log."""

BY_FILE_TIME: Final = 1 << 40
"""A larger timestamp of a remote segment is the time at which its file was written; the state has -1 for it."""

Epochs = tuple[tuple[int, int], ...]


class RemoteSegmentState(NamedTuple):
    """Remote segment, as the metadata manager reports it.

    Attributes:
        number: The number of the segment in the order of copying.
        start_offset, end_offset: The first and the last offset.
        state: The state: 0 copy started, 1 copied, 2 deletion started.
        max_timestamp: The largest timestamp, or -1 if it is the time at which the file was written.
        size: The size of the log in bytes.
        has_no_transactions: True if the transaction index is empty.
        epochs: The start offset of each leader epoch within the segment.
        content: A checksum of all files in storage; 0 without any.
    """

    number: int
    start_offset: int
    end_offset: int
    state: int
    max_timestamp: int
    size: int
    has_no_transactions: bool
    epochs: Epochs
    content: int


class TieredState(NamedTuple):
    """State of a tiered log after an operation.

    Attributes:
        log: The state of the log.
        local_start_offset: The first local offset.
        highest_remote_offset: The highest offset in remote storage that the log knows of; -1 for none.
        remote: The remote segments in the order of copying.
    """

    log: LogState
    local_start_offset: int
    highest_remote_offset: int
    remote: tuple[RemoteSegmentState, ...]

    def to_json(self) -> Json:
        """Return the state as in a trace or a report."""
        remote: list[dict[str, Any]] = [dict(segment._asdict()) for segment in self.remote]
        own = {"local_start_offset": self.local_start_offset, "highest_remote_offset": self.highest_remote_offset}
        return {**self.log.to_json(), **own, "remote": remote}


class TieredObservation(NamedTuple):
    """Outcome of an operation, and the state after it or None if no log is open."""

    outcome: Outcome
    state: TieredState | None
