"""Rows about the producer state of a log: snapshots, sequence numbers and epochs.

A row names a clause, the operations and results (``ok`` or an error kind) that exercise it, and what a violation would
have changed, perhaps with a condition: :class:`~conformance.attribution.rules.Row` explains the columns.

A condition receives a :class:`~conformance.attribution.log_step.LogStep`: ``was`` and ``now`` are the states before and
after the step, and ``before`` has what no state reports, such as the topic's settings. The first argument of an append
is its batches, as JSON objects. ``producer`` of a batch is the producer id, the epoch and the first sequence number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.rules import ANY, Row
from conformance.operations.log import LOG_ERROR_KINDS, PRODUCER_ERRORS, VERIFICATION
from kidx.producers import SNAPSHOT_SUFFIX, snapshot_name
from kidx.producers.snapshot import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.attribution.log_step import LogStep
    from conformance.operations.log import LogState


def names(files: Iterable[str]) -> set[str]:
    """Return the names of the snapshots among these files."""
    return {name for name in files if name.endswith(SNAPSHOT_SUFFIX)}


def new(step: LogStep) -> set[str]:
    """Return the names of the snapshots that the step created."""
    if step.files is step.files_before:
        return set()
    return names(step.files.keys() - step.files_before.keys())


def gone(step: LogStep) -> set[str]:
    """Return the names of the snapshots that the step deleted."""
    return names(step.files_before.keys() - step.files.keys())


def writes(step: LogStep) -> bool:
    """Return True if the step created a snapshot."""
    return bool(new(step))


def counts(step: LogStep) -> list[int]:
    """Return the number of producers in each new snapshot."""
    return [HEAD.unpack_from(step.files[name])[2] for name in new(step) if len(step.files[name]) >= HEAD.size]


def deletes(step: LogStep) -> bool:
    """Return True if the step deleted a snapshot."""
    return bool(gone(step))


def outlives(step: LogStep) -> bool:
    """Return True if a snapshot still exists although the step removed its segment."""
    if step.was is None or step.now is None:
        return False
    removed = {base for base, _ in step.was.segments} - {base for base, _ in step.now.segments}
    return any(snapshot_name(base) in step.files for base in removed)


def known(state: LogState | None, batch: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the state's entry for the producer of a batch, or None if the state has none.

    An entry is producer id, epoch, coordinator epoch, timestamp, first offset of the open transaction (or -1), ….
    """
    producer = batch.get("producer", (None,))[0]
    return next((entry for entry in state.producers if entry[0] == producer), None) if state is not None else None


def is_client(step: LogStep) -> bool:
    """Return True if the batch was sent by a producer to the leader."""
    return "producer" in step.args[0][0] and "marker" not in step.args[0][0]


def begins_where_verified(step: LogStep) -> bool:
    """Return True if the batch would begin a transaction, and the log requires that transactions are verified."""
    batch = step.args[0][0]
    entry = known(step.was, batch)
    is_open = entry is not None and entry[4] >= 0
    return bool(step.before.settings.get(VERIFICATION)) and "transactional" in batch and not is_open


def is_old(step: LogStep) -> bool:
    """Return True if the epoch of the batch is older than the last epoch of its producer."""
    entry = known(step.was, step.args[0][0])
    return entry is not None and step.args[0][0]["producer"][1] < entry[1]


def is_unknown(step: LogStep) -> bool:
    """Return True if the first batch of a producer does not begin with sequence number 0."""
    batch = step.args[0][0]
    return is_client(step) and known(step.was, batch) is None and batch["producer"][2] > 0


def is_repeated(step: LogStep) -> bool:
    """Return True if the leader accepts a producer's batch without appending it."""
    was, now = step.was, step.now
    return is_client(step) and was is not None and now is not None and was.end_offset == now.end_offset


def reads_snapshot(step: LogStep) -> bool:
    """Return True if a snapshot existed when the log was opened."""
    return bool(names(step.files_before))


def forgets(step: LogStep) -> bool:
    """Return True if a log with records that was shut down cleanly is opened without a snapshot."""
    return bool(step.args[3]) and not names(step.files_before) and any(step.files_before.values())


def passes_by(step: LogStep) -> bool:
    """Return True if a snapshot was deleted although a new, empty segment with the same base offset exists."""
    bases = {name.partition(".")[0] for name in gone(step)}
    return any(f"{base}.log" in step.files for base in bases)


_PRODUCER: Final = " ".join(PRODUCER_ERRORS)

# fmt: off
PRODUCER_ROWS = (
    Row("LG-30", "open_log", "ok", "the producers, or a snapshot", forgets),
    Row("LG-32", ANY, "ok", "the bytes of a snapshot", lambda s: any(counts(s))),
    Row("LG-33", "roll_log append_as_follower append_as_leader close_log open_log truncate_log", "ok",
        "the names of the snapshots", writes),
    Row("LG-34a", "delete_records apply_retention", "ok", "the names of the snapshots", deletes),
    Row("LG-34b", "apply_retention truncate_log open_log", "ok", "the names of the snapshots", deletes),
    Row("LG-77", "truncate_log", " ".join(LOG_ERROR_KINDS), "the names of the snapshots", outlives,
        "few truncations reach a corrupt batch"),
    Row("LG-35", "append_as_leader append_verified", f"ok {_PRODUCER}", "another outcome, or another state", is_client),
    Row("LG-36a", "append_as_leader", "unknown_producer out_of_order_sequence", "another outcome", is_unknown),
    Row("LG-36b", "append_as_leader", "ok", "another outcome", is_unknown),
    Row("LG-37", "append_as_leader", "ok", "the bytes of the log", is_repeated),
    Row("LG-38", "append_as_leader", "producer_fenced coordinator_fenced", "another outcome", is_old,
        "few batches are older than those that a producer's state holds"),
    Row("LG-39", "open_log truncate_log", "ok", "the producers", reads_snapshot),
    Row("LG-40", "expire_producers", "ok", "the producers"),
    Row("LG-41", "roll_log append_as_follower append_as_leader", "ok", "the names of the snapshots", passes_by),
    Row("LG-44", "open_log", "ok", "the bytes of snapshots and of transaction indexes",
        lambda s: not s.args[3] and s.now is not None and len(s.now.segments) > 2 and bool(s.now.producers)),
    Row("LG-45a", "verify_transaction", "ok", "the answer"),
    Row("LG-45a", "append_verified append_as_leader", f"ok {_PRODUCER}", "another outcome", begins_where_verified),
    Row("LG-45b", "append_verified", "ok out_of_order_sequence", "another outcome", is_client),
    Row("LG-45c", "verify_transaction", "producer_fenced", "there would be a guard",
        rare="few epochs are older than the producer's epoch"),
    Row("LG-45c", "append_verified", "out_of_order_sequence", "another outcome",
        lambda s: is_client(s) and s.args[0][0]["producer"][2] > 0),
    Row("LG-45d", "append_verified", f"ok {_PRODUCER}", "another outcome",
        lambda s: not is_client(s) and s.args[2] > 1),
    Row("LG-45e", "append_verified append_as_leader", "producer_fenced invalid_txn_state", "another outcome",
        lambda s: begins_where_verified(s) and is_old(s),
        "few batches are older than those that a producer's state holds"),
    Row("LG-43", ANY, "ok", "the last stable offset",
        lambda s: s.now is not None and s.now.last_stable_offset < s.now.high_watermark),
    Row("LG-42", ANY, "ok", "the bytes of a snapshot", lambda s: any(count > 1 for count in counts(s))),
)
# fmt: on
