"""Rows about logs: each clause (LG, LO, and SEG for whole logs) with the operations that exercise it, and a condition.

A row names a clause, the operations and results (``ok`` or an error kind) that exercise it, and what a violation would
have changed, perhaps with a condition: :class:`~conformance.attribution.rules.Row` explains the columns.

A condition receives a :class:`~conformance.attribution.log_step.LogStep`: ``was`` and ``now`` are the states before and
after the step, and ``before`` has what no state reports, such as the topic's settings. The conditions use the arguments
of an operation by number. In ``open_log``, they are the topic's settings, the log start offset, the recovery point,
whether the last shutdown was clean, and the time. In an append, they are the batches and the leader epoch.

A batch of an append is a JSON object (:mod:`conformance.operations.batches`). A record of a batch is its offset delta
and timestamp, and then perhaps the numbers of bytes of its value and its key. ``producer`` of a batch is the producer
id, the epoch and the first sequence number.

``LEADER_ROWS`` (clauses LG-50 and later) are about the batches that a leader rejects or rewrites, ``PRODUCER_ROWS``
about the producer state: snapshots, sequence numbers and epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from conformance.attribution import cleaned
from conformance.attribution.log_step import Files, LogStep, TrackedLog
from conformance.attribution.rules import ANY, Conditions, Row, Rules
from conformance.operations.batches import encode
from conformance.operations.log import FLUSH, LOG_ERROR_KINDS, PRODUCER_ERRORS, VERIFICATION
from conformance.operations.malformed_batches import is_corrupt_stream
from conformance.oracle import ConsumerBatch, ConsumerRecord, batches_of, records_of
from kidx.dialect import DIALECTS
from kidx.discovery import INDEX_SUFFIXES, LOG, PARTITION_METADATA
from kidx.errors import KidxError
from kidx.java_values import LONG_MAX
from kidx.layout import ATTRIBUTE_LOG_APPEND_TIME
from kidx.log.epochs import FILE_NAME as EPOCHS
from kidx.log.lookup import MAX_TIMESTAMP
from kidx.producers import SNAPSHOT_SUFFIX, snapshot_name
from kidx.producers.snapshot import HEAD, problem_of
from kidx.records import iter_batches
from kidx.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.operations import Operation
    from conformance.operations.log import LogObservation, LogState
    from kidx.dialect import Dialect


def snapshots_in(files: Iterable[str]) -> set[str]:
    """Return the names of the snapshots among these files."""
    return {name for name in files if name.endswith(SNAPSHOT_SUFFIX)}


def new_snapshots(step: LogStep) -> set[str]:
    """Return the names of the snapshots that the step created."""
    if step.files is step.files_before:
        return set()
    return snapshots_in(step.files.keys() - step.files_before.keys())


def deleted_snapshots(step: LogStep) -> set[str]:
    """Return the names of the snapshots that the step deleted."""
    return snapshots_in(step.files_before.keys() - step.files.keys())


def writes_snapshot(step: LogStep) -> bool:
    """Return True if the step created a snapshot."""
    return bool(new_snapshots(step))


def producer_counts(step: LogStep) -> list[int]:
    """Return the number of producers in each new snapshot."""
    return [HEAD.unpack_from(step.files[name])[2] for name in new_snapshots(step) if len(step.files[name]) >= HEAD.size]


def deletes_snapshot(step: LogStep) -> bool:
    """Return True if the step deleted a snapshot."""
    return bool(deleted_snapshots(step))


def outlives(step: LogStep) -> bool:
    """Return True if a snapshot still exists although the step removed its segment."""
    if step.was is None or step.now is None:
        return False
    removed = {base for base, _ in step.was.segments} - {base for base, _ in step.now.segments}
    return any(snapshot_name(base) in step.files for base in removed)


def known_producer(state: LogState | None, batch: dict[str, Any]) -> tuple[Any, ...] | None:
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
    entry = known_producer(step.was, batch)
    is_open = entry is not None and entry[4] >= 0
    return bool(step.before.settings.get(VERIFICATION)) and "transactional" in batch and not is_open


def is_old_producer(step: LogStep) -> bool:
    """Return True if the epoch of the batch is older than the last epoch of its producer."""
    entry = known_producer(step.was, step.args[0][0])
    return entry is not None and step.args[0][0]["producer"][1] < entry[1]


def is_unknown(step: LogStep) -> bool:
    """Return True if the first batch of a producer does not begin with sequence number 0."""
    batch = step.args[0][0]
    return is_client(step) and known_producer(step.was, batch) is None and batch["producer"][2] > 0


def is_repeated(step: LogStep) -> bool:
    """Return True if the leader accepts a producer's batch without appending it."""
    was, now = step.was, step.now
    return is_client(step) and was is not None and now is not None and was.end_offset == now.end_offset


def reads_snapshot(step: LogStep) -> bool:
    """Return True if a snapshot existed when the log was opened."""
    return bool(snapshots_in(step.files_before))


def forgets(step: LogStep) -> bool:
    """Return True if a log with records that was shut down cleanly is opened without a snapshot that can be read."""
    snapshots = (step.files_before[name] for name in snapshots_in(step.files_before))
    return bool(step.args[3]) and all(map(problem_of, snapshots)) and any(step.files_before.values())


def passes_by(step: LogStep) -> bool:
    """Return True if a snapshot was deleted although a new, empty segment with the same base offset exists."""
    bases = {name.partition(".")[0] for name in deleted_snapshots(step)}
    return any(f"{base}.log" in step.files for base in bases)


_PRODUCER: Final = " ".join(PRODUCER_ERRORS)
_APPEND: Final = "append_as_follower append_as_leader append_verified"

# fmt: off
PRODUCER_ROWS = (
    Row("LG-30", "open_log", "ok", "the producers, or a snapshot", forgets),
    Row("LG-32", ANY, "ok", "the bytes of a snapshot", lambda s: any(producer_counts(s))),
    Row("LG-33", ANY, ANY, "the names of the snapshots", writes_snapshot),
    Row("LG-34a", "delete_records apply_retention", "ok", "the names of the snapshots", deletes_snapshot),
    Row("LG-34b", "apply_retention truncate_log open_log", "ok", "the names of the snapshots", deletes_snapshot),
    Row("LG-77", "truncate_log", " ".join(LOG_ERROR_KINDS), "the names of the snapshots", outlives,
        "few truncations reach a corrupt batch"),
    Row("LG-35", "append_as_leader append_verified", f"ok {_PRODUCER}", "another outcome, or another state", is_client),
    Row("LG-36a", "append_as_leader", "unknown_producer out_of_order_sequence", "another outcome", is_unknown),
    Row("LG-36b", "append_as_leader", "ok", "another outcome", is_unknown),
    Row("LG-37", "append_as_leader", "ok", "the bytes of the log", is_repeated),
    Row("LG-38", "append_as_leader", "producer_fenced coordinator_fenced", "another outcome", is_old_producer,
        "few batches are older than those that a producer's state holds"),
    Row("LG-39", "open_log truncate_log", "ok", "the producers", reads_snapshot),
    Row("LG-40", "expire_producers", "ok", "the producers"),
    Row("LG-41", f"roll_log {_APPEND}", "ok", "the names of the snapshots", passes_by),
    Row("LG-44", "open_log", "ok", "the bytes of snapshots and of transaction indexes",
        lambda s: not s.args[3] and s.now is not None and len(s.now.segments) > 2 and bool(s.now.producers)),
    Row("LG-45a", "verify_transaction", "ok", "the answer"),
    Row("LG-45a", "append_verified append_as_leader", f"ok {_PRODUCER}", "another outcome", begins_where_verified),
    Row("LG-45b", "append_verified", "ok out_of_order_sequence", "another outcome", is_client),
    Row("LG-45b", "append_as_leader", "ok out_of_order_sequence", "another outcome",
        lambda s: is_client(s) and s.args[0][0]["producer"][0] in s.before.verified),
    Row("LG-45c", "verify_transaction", "producer_fenced", "there would be a guard",
        rare="few epochs are older than the producer's epoch"),
    Row("LG-45c", "append_verified", "out_of_order_sequence", "another outcome",
        lambda s: is_client(s) and s.args[0][0]["producer"][2] > 0),
    Row("LG-45d", "append_verified", f"ok {_PRODUCER}", "another outcome",
        lambda s: not is_client(s) and s.args[2] > 1),
    Row("LG-45e", "append_verified append_as_leader", "producer_fenced invalid_txn_state", "another outcome",
        lambda s: begins_where_verified(s) and is_old_producer(s),
        "few batches are older than those that a producer's state holds"),
    Row("LG-43", ANY, "ok", "the last stable offset",
        lambda s: s.now is not None and s.now.last_stable_offset < s.now.high_watermark),
    Row("LG-42", ANY, ANY, "the bytes of a snapshot", lambda s: any(count > 1 for count in producer_counts(s))),
)
# fmt: on


_DAMAGES: Final = frozenset({"plain", "payload", "crc"})
"""The keys of a batch that change the bytes of its records or its checksum."""
_TIME_TYPE: Final = "message.timestamp.type"


def codec_of(batch: Mapping[str, Any]) -> str:
    """Return the codec that the batch declares."""
    return str(batch.get("codec", "none"))


def is_old(batch: Mapping[str, Any]) -> bool:
    """Return True if the batch has magic 0 or 1."""
    return bool(batch.get("magic", 2) < 2)


def has_log_append_time(batch: Mapping[str, Any]) -> bool:
    """Return True if the batch claims LogAppendTime."""
    attributes = batch.get("header", {}).get("attributes", 0)
    return "log_append_time" in batch or bool(attributes & ATTRIBUTE_LOG_APPEND_TIME)


def is_miscounted(batch: Mapping[str, Any]) -> bool:
    """Return True if the offsets of the records do not count up from 0."""
    return [record[0] for record in batch["records"]] != list(range(len(batch["records"])))


def is_compressed(batch: Mapping[str, Any]) -> bool:
    """Return True if the batch declares a codec."""
    return codec_of(batch) != "none"


def has_empty_key(batch: Mapping[str, Any]) -> bool:
    """Return True if a record has an empty key."""
    return any(record[3:] == [0] for record in batch["records"])


def any_batch(*conditions: Callable[[Mapping[str, Any]], bool]) -> Callable[[LogStep], bool]:
    """Return a condition that is true if one batch of the operation has all of these properties."""
    return lambda step: any(all(holds(batch) for holds in conditions) for batch in step.args[0])


def has_limits(step: LogStep) -> bool:
    """Return True if the topic limits timestamps, and no batch claims LogAppendTime."""
    limited = any(name.startswith("message.timestamp.") and name != _TIME_TYPE for name in step.before.settings)
    return limited and not any(has_log_append_time(batch) for batch in step.args[0])


def is_recompressed(step: LogStep) -> bool:
    """Return True if a batch has another codec than the topic's ``compression.type``."""
    wanted = str(step.before.settings.get("compression.type", "producer")).replace("uncompressed", "none")
    return wanted != "producer" and any(codec_of(batch) != wanted for batch in step.args[0])


def is_compressed_by_leader(step: LogStep) -> bool:
    """Return True if the leader compresses: it changes the codec, or rebuilds compressed messages of an old format."""
    wanted = str(step.before.settings.get("compression.type", "producer"))
    if wanted != "producer":
        return wanted != "uncompressed" and is_recompressed(step)
    return any(is_old(batch) and codec_of(batch) != "none" for batch in step.args[0])


def is_unreadable(step: LogStep) -> bool:
    """Return True if the last batch of the log, which was just appended, cannot be read."""
    content = max((item for item in step.files.items() if item[0].endswith(".log")), default=("", b""))[1]
    try:
        for batch in list(iter_batches(content))[-1:]:
            for _ in batch:
                pass
    except KidxError:
        return True
    return False


def topic_says(name: str, part: str = "") -> Callable[[LogStep], bool]:
    """Return a condition that is true if the topic has this configuration, and its value contains ``part``."""
    return lambda step: name in step.before.settings and part in str(step.before.settings[name])


def both(first: Callable[[LogStep], bool], second: Callable[[LogStep], bool]) -> Callable[[LogStep], bool]:
    """Return a condition that is true if both conditions are true."""
    return lambda step: first(step) and second(step)


_SMALLEST_DEFAULT: Final = min(dialect.default_message_bytes for dialect in DIALECTS.values())


def either(first: Callable[[LogStep], bool], second: Callable[[LogStep], bool]) -> Callable[[LogStep], bool]:
    """Return a condition that is true if one of the conditions is true."""
    return lambda step: first(step) or second(step)


def exceeds_limit(step: LogStep) -> bool:
    """Return True if a batch is larger than ``max.message.bytes`` of the topic, or than the smallest default."""
    limit = step.before.settings.get("max.message.bytes", _SMALLEST_DEFAULT)
    return any(len(encode([batch])) > limit for batch in step.args[0])


_LOG_APPEND_TIME: Final = any_batch(has_log_append_time)
_DAMAGED_LZ4: Final = any_batch(is_corrupt_stream, lambda batch: codec_of(batch) == "lz4")
_COMPACTED: Final = topic_says("cleanup.policy", "compact")
_CREATE_TIME: Final[Callable[[LogStep], bool]] = lambda step: not topic_says(_TIME_TYPE, "LogAppendTime")(step)  # noqa: E731
_LEADER: Final = "append_as_leader"

# fmt: off
_FEW_COMPACTED: Final = "few topics of this machine are compacted"
_FEW_DAMAGED: Final = "few batches are wrong in this way"

LEADER_ROWS = (
    Row("LG-50", _LEADER, "invalid_timestamp", "the batch would be appended", has_limits),
    Row("LG-50", _LEADER, "ok", "the batch would be rejected", has_limits),
    Row("LG-51a", _LEADER, "invalid_timestamp", "the batch would be appended", _LOG_APPEND_TIME,
        "few producers stamp batches as a broker does"),
    Row("LG-51b", _LEADER, "ok", "the batch would be rejected",
        both(_CREATE_TIME, any_batch(has_log_append_time, lambda batch: not is_old(batch)))),
    Row("LG-52", _LEADER, "refused_records invalid_timestamp", "a different error",
        any_batch(lambda batch: len(batch["records"]) > 1)),
    Row("LG-53", _LEADER, "refused_records", "the batch would be appended", _COMPACTED, _FEW_COMPACTED),
    Row("LG-53", _LEADER, "ok", "the batch would be rejected", both(_COMPACTED, any_batch(has_empty_key)),
        _FEW_COMPACTED),
    Row("LG-54a", _LEADER, "invalid_record kafka corrupt_record invalid_argument closed out_of_bounds",
        "the batch would be appended", any_batch(lambda batch: bool(_DAMAGES & batch.keys()))),
    Row("LG-54b", _LEADER, "ok", "the batch would be rejected",
        both(any_batch(is_compressed, lambda batch: "plain" in batch), is_unreadable), _FEW_DAMAGED),
    Row("LG-64", _LEADER, "ok invalid_record kafka", "an error or a different one, or the batch would be appended",
        any_batch(is_corrupt_stream)),
    Row("LG-74 LG-76", _LEADER, "ok invalid_record kafka buffer_underflow", "another error, or other bytes",
        _DAMAGED_LZ4),
    Row("LG-75", _LEADER, "buffer_underflow", "a different error", any_batch(is_compressed), _FEW_DAMAGED),
    Row("LG-55a", _LEADER, "refused_records", "the batch would be appended", any_batch(is_compressed, is_miscounted)),
    Row("LG-55b", _LEADER, "ok", "an error, or other bytes", any_batch(is_compressed, is_miscounted), _FEW_DAMAGED),
    Row("LG-55c", _LEADER, "unsupported_operation", "a different error, or the batch would be appended",
        rare=_FEW_DAMAGED),
    Row("LG-55d", _LEADER, "ok", "an error, or other bytes",
        any_batch(is_miscounted, lambda batch: not is_old(batch) and not is_compressed(batch)), _FEW_DAMAGED),
    Row("LG-56", _LEADER, "ok invalid_record corrupt_record", "an error, or other bytes", any_batch(is_old)),
    Row("LG-57", _LEADER, "ok", "the bytes", is_recompressed),
    Row("LG-58", _LEADER, "ok", "the bytes", is_compressed_by_leader),
    Row("LG-59", _LEADER, "too_large", "the batch would be appended",
        either(topic_says("max.message.bytes"), exceeds_limit)),
    Row("LG-60", _LEADER, "invalid_record", "the batch would be appended",
        any_batch(lambda batch: "header" in batch and not is_old(batch))),
    Row("LG-60", _LEADER, "invalid_record", "the batches would be appended", lambda s: len(s.args[0]) > 1),
    Row("LG-66", "apply_retention", "ok", "the number of segments",
        lambda s: s.before.settings.get("cleanup.policy") == "compact"
        and s.was is not None and len(s.was.segments) > 1),
    Row("LG-65a", "append_as_follower", "too_large", "the batch would be appended", exceeds_limit),
    Row("LG-65b", "append_as_follower", "ok", "the batch would be rejected", exceeds_limit),
    Row("LG-62", _LEADER, "invalid_record", "the batch would be appended",
        both(topic_says("max.decompressed.message.bytes"), any_batch(is_compressed)),
        "few topics limit what is decompressed"),
)
# fmt: on


Condition = Callable[[LogStep], bool]

_SMALL: Final = 1 << 14
"""Maximum size in bytes of a log whose largest timestamp is cached for the next step."""


def rolled(step: LogStep) -> bool:
    """Return True if the step rolled the log, so that the log has a new active segment."""
    return step.was is not None and step.now is not None and step.was.segments[-1][0] != step.now.segments[-1][0]


def truncates(step: LogStep) -> bool:
    """Return True if the offset of the truncation is inside the log."""
    return bool(step.value)


def depends_on_order(step: LogStep) -> bool:
    """Return True if retention deleted segments, and one without timestamps or with later ones precedes another."""
    names = sorted(name for name in step.files_before if name.endswith(".log"))
    ages = [_largest_in(step.files_before[name]) for name in names]
    return bool(step.value) and (-1 in ages[:-1] or ages != sorted(ages))


def requests(target: int) -> Condition:
    """Return a condition that is true if this target is requested."""
    return lambda step: target in step.answers


def requests_time(step: LogStep) -> bool:
    """Return True if one of the targets is an ordinary timestamp."""
    return any(target >= 0 for target in step.answers)


def reopens(step: LogStep) -> bool:
    """Return True if the log has records to load."""
    return step.now is not None and any(size for _, size in step.now.segments)


def reads_a_batch(step: LogStep) -> bool:
    """Return True if a batch exists at or after the offset."""
    return step.value is not None


def recovers_epochs(step: LogStep) -> bool:
    """Return True if a recovery must determine leader epochs that are no longer in the checkpoint file."""
    return not step.args[3] and EPOCHS in step.before.corrupted and reopens(step)


def is_last_stable_before_start(step: LogStep) -> bool:
    """Return True if the last stable offset is before the log start offset."""
    return step.now is not None and step.now.last_stable_offset < step.now.start_offset


def repeats(step: LogStep) -> bool:
    """Return True if an append has a batch of the log as its result, because a producer has repeated it."""
    return step.value is not None and step.was is not None and 0 <= step.value[1] < step.was.end_offset


def is_several(step: LogStep) -> bool:
    """Return True if the operation has more than one batch."""
    return len(step.args[0]) > 1


def changes(suffix: str) -> Condition:
    """Return a condition that is true if the content of a file with this suffix has changed."""

    def holds(step: LogStep) -> bool:
        names = {*step.files_before, *step.files}
        return any(step.files_before.get(n) != step.files.get(n) for n in names if n.endswith(suffix))

    return holds


def finds(step: LogStep) -> bool:
    """Return True if a result for an ordinary timestamp is a record."""
    return any(target >= 0 and answer for target, answer in step.answers.items())


def hides_largest(step: LogStep) -> bool:
    """Return True if the largest timestamp is requested, and the result is not the record that has the timestamp."""
    if MAX_TIMESTAMP not in step.answers:
        return False
    right, answer = promised(MAX_TIMESTAMP, visible(step)), step.answers[MAX_TIMESTAMP]
    return right is not None and right[0] >= 0 and right != (answer and tuple(answer[:2]))


def finds_largest(step: LogStep) -> bool:
    """Return True if the request for the largest timestamp has a result."""
    return bool(step.answers.get(MAX_TIMESTAMP))


def finds_deleted(step: LogStep) -> bool:
    """Return True if the result for the largest timestamp is before the log start offset."""
    answer: Any = step.answers.get(MAX_TIMESTAMP)
    return answer is not None and step.now is not None and answer[1] < step.now.start_offset


def finds_no_time(step: LogStep) -> bool:
    """Return True if the result for the largest timestamp is a record without a timestamp."""
    answer: Any = step.answers.get(MAX_TIMESTAMP)
    return answer is not None and answer[0] < 0


def misses(step: LogStep) -> bool:
    """Return True if a timestamp has no result although a visible record has that timestamp or a larger one."""
    first = min((target for target, answer in step.answers.items() if target >= 0 and not answer), default=None)
    if first is None or all(_largest_in(content) < first for content in logs(step)):
        return False
    return any(record.timestamp >= first for record in visible(step))


def misses_because_of_untimed(step: LogStep) -> bool:
    """Return True if a timestamp has no result, as in :func:`misses`, and a visible record has no timestamp."""
    return misses(step) and any(record.timestamp < 0 for record in visible(step))


def misses_because_of_deleted(step: LogStep) -> bool:
    """Return True if a timestamp has no result, as in :func:`misses`, and the log starts inside a segment."""
    return step.now is not None and step.now.segments[0][0] < step.now.start_offset and misses(step)


def promised(target: int, records: list[ConsumerRecord]) -> tuple[int, int] | None:
    """Return timestamp and offset of the record that KIP-79 (KIP-734 for the largest timestamp) requires, or None."""
    if target == MAX_TIMESTAMP:
        target = max(0, max((record.timestamp for record in records), default=0))
    return next(((record.timestamp, record.offset) for record in records if record.timestamp >= target), None)


def finds_despite_lost_indexes(step: LogStep) -> bool:
    """Return True if the record that the KIPs require is found although an index was corrupted or removed."""
    if not step.before.has_lost_indexes:
        return False
    records = visible(step)
    return any(
        (target >= 0 or target == MAX_TIMESTAMP) and tuple(answer[:2]) == promised(target, records)
        for target, answer in step.answers.items()
        if answer
    )


def truncates_start_batch(step: LogStep) -> bool:
    """Return True if the truncation offset and an earlier log start offset are inside the same batch."""
    if step.was is None or not truncates(step) or not 0 < step.was.start_offset <= step.args[0]:
        return False
    contents = (content for name, content in step.files_before.items() if name.endswith(".log"))
    batches = (batch for content in contents for batch in batches_of(content))
    return any(b.first_offset < step.was.start_offset <= step.args[0] <= b.last_offset for b in batches)


def is_undecided_again(step: LogStep) -> bool:
    """Return True if the last stable offset has moved back to a transaction that ended below the high watermark."""
    was, now = step.was, step.now
    if was is None or now is None or now.last_stable_offset >= min(was.last_stable_offset, now.high_watermark):
        return False
    return any(end < now.high_watermark for end in ends_of_transaction(now.last_stable_offset, logs(step)))


def is_undecided_still(step: LogStep) -> bool:
    """Return True if a truncation leaves the LSO at a transaction whose marker is in a sealed segment, or decides less.

    It decides less if it leaves transactions undecided that ended below the high watermark.
    """
    now = step.now
    if step.was is None or now is None or not truncates(step):
        return False
    limits = now.last_stable_offset < now.high_watermark
    if limits and any(True for _ in ends_of_transaction(now.last_stable_offset, logs(step)[:-1])):
        return True
    ends = (end for first in now.unreplicated for end in ends_of_transaction(first, logs(step)))
    return any(end < now.high_watermark for end in ends)


def ends_of_transaction(first_offset: int, contents: list[bytes]) -> Iterator[int]:
    """Yield the offsets of the markers, from ``first_offset`` on, of the producer whose transaction begins there."""
    batches = [batch for content in contents for batch in batches_of(content)]
    producers = {batch.producer for batch in batches if batch.first_offset == first_offset}
    for batch in batches:
        if batch.is_marker and batch.producer in producers and batch.last_offset >= first_offset:
            yield batch.last_offset


def settles(step: LogStep) -> bool:
    """Return True if a truncation keeps a transaction that ended in the last segment, below the high watermark."""
    if step.now is None or not truncates(step):
        return False
    begun: set[int] = set()
    ended: list[ConsumerBatch] = []
    for content in logs(step):
        ended = []
        for batch in batches_of(content):
            if batch.is_marker and batch.producer in begun:
                begun.remove(batch.producer)
                ended.append(batch)
            elif batch.is_transactional:
                begun.add(batch.producer)
    return any(batch.last_offset < step.now.high_watermark for batch in ended)


def has_orphans(step: LogStep) -> bool:
    """Return True if there was an index file without a ``.log`` file of the same base offset."""
    paths = map(PurePath, step.files_before)
    return any(path.suffix in INDEX_SUFFIXES and f"{path.stem}{LOG}" not in step.files_before for path in paths)


def logs(step: LogStep) -> list[bytes]:
    """Return the contents of the segments' ``.log`` files, in order."""
    return [step.files[name] for name in sorted(name for name in step.files if name.endswith(".log"))]


def visible(step: LogStep) -> list[ConsumerRecord]:
    """Return the records that a consumer can read."""
    now = step.now
    if now is None:
        return []
    records = (record for number, content in enumerate(logs(step)) for record in records_of(content, number))
    return [record for record in records if now.start_offset <= record.offset < now.end_offset]


def _largest_in(content: bytes) -> int:
    """Return the largest timestamp of the records of a log in milliseconds, or -1 if it has no records."""
    return (_kept_largest_in if len(content) <= _SMALL else _kept_largest_in.__wrapped__)(content)


@lru_cache(maxsize=256)
def _kept_largest_in(content: bytes) -> int:
    """Return the largest timestamp from a cache, because most logs do not change from one step to the next."""
    return max((record.timestamp for record in records_of(content)), default=NO_TIMESTAMP)


_FETCHES: Final = "offset_snapshot fetch bytes_after raise_high_watermark"
_FINISHES: Final = "roll_log close_log apply_retention"
_USES: Final = (
    "append_as_follower roll_log truncate_log truncate_fully delete_records update_high_watermark offset_snapshot"
    " apply_retention"
)

# fmt: off
ROWS = (
    Row("LO-1", "list_offsets", "ok", "the answer", requests(-2)),
    Row("LO-2a", "list_offsets", "ok", "the answer", requests(-1)),
    Row("LO-3", "list_offsets", "ok", "the answer", requests(-4)),
    Row("LO-4", "list_offsets", "ok", "the answer", requests(-5)),
    Row("LO-5", "list_offsets", "ok", "the answer", requests(-6)),
    Row("LO-6", "list_offsets", "ok", "the answer", requests_time),
    Row("LO-23", "list_offsets", "ok", "the answer", misses),
    Row("LO-9 LO-10", "list_offsets", "ok", "the answer", requests(-3)),
    Row("LO-15a", "list_offsets", "ok", "the answer", requests(-7)),
    Row("LO-20", "list_offsets", "ok", "the answer", requests(-3)),
    Row("FR-1", "list_offsets", "ok", "the answer", finds),
    Row("FR-2", "list_offsets", "ok", "the answer", finds_largest),
    Row("LG-21", "list_offsets", "ok", "the answer",
        lambda s: s.now is not None and s.now.start_offset < s.before.furthest_start
        and (requests_time(s) or requests(-7)(s))),
    Row("LG-22", "list_offsets", "ok", "the answer", misses_because_of_untimed),
    Row("LG-23", "list_offsets", "ok", "the answer", misses_because_of_deleted),
    Row("LG-24", "list_offsets", "ok", "the answer", finds_deleted),
    Row("LG-84", "list_offsets", "ok", "the answer", hides_largest),
    Row("LG-25", "list_offsets", "ok", "the answer", finds_no_time),
    Row("LG-70", "list_offsets", "ok", "the answer", finds_despite_lost_indexes),
    Row("LG-29", "list_offsets", "kafka invalid_record invalid_argument", "an answer, or a different error",
        rare="few corrupt batches are looked up"),
    Row("SEG-8a SEG-8b SEG-8c", "append_as_leader append_verified", "ok", "the entry of the time index",
        changes(".timeindex")),
    Row("SEG-8d", "append_as_follower", "ok", "the entry of the time index", changes(".timeindex")),
    Row("SEG-5", _APPEND, "ok", "the entry of the offset index", changes(".index")),
    Row("SEG-20", _APPEND, "ok", "another number of segments"),
    Row("SEG-23", "roll_log", "ok", "the files, or an error",
        lambda s: s.was is not None and s.was.segments[-1][1] == 0 and not rolled(s)),
    Row("SEG-25", "roll_log", "ok", "the lengths of the index files"),
    Row("SEG-25", "open_log", "ok", "the lengths of the index files", reopens),
    Row("SEG-27", "open_log", "ok", "the state, or when the next roll comes",
        lambda s: bool(s.args[3]) and s.before.is_clean is False and reopens(s)),
    Row("SEG-31", "open_log", "ok", "the epoch file", recovers_epochs),
    Row("SEG-34", "open_log", "ok", "the lengths of the index files",
        lambda s: not s.args[3] and reopens(s) and s.now is not None and len(s.now.segments) > 1),
    Row("SEG-36", "open_log", "ok", "the bytes of the time index",
        lambda s: bool(s.args[3]) and ".timeindex" in s.before.corrupted and reopens(s),
        "few corruptions are of a time index, and few openings after them follow a clean shutdown"),
    Row("TX-15", "append_as_follower", "ok", "the bytes of the transaction index", changes(".txnindex")),
    Row("LG-1", "append_as_leader append_verified", "ok", "the bytes of the log and of the indexes"),
    Row("LG-1", "read_log", "ok", "the fields of the batch", reads_a_batch),
    Row("LG-80", "read_log", "ok", "another batch", reads_a_batch),
    Row("LG-81", "open_log", "ok", "the end of the log, and its records",
        lambda s: bool(s.args[3]) and s.before.is_clean is True and not s.before.corrupted and reopens(s)),
    Row("LG-82", _APPEND, "ok", "the bytes of the log"),
    Row("LG-82", "read_log", "ok", "the epoch of the batch", reads_a_batch),
    Row("LG-2", "append_as_follower", "ok out_of_order unexpected_offset", "the bytes, or a different error"),
    Row("LG-3", "append_as_follower", "ok", "the bytes",
        lambda s: any(batch.get("epoch", -1) > s.args[1] for batch in s.args[0])),
    Row("LG-4", _APPEND, "ok", "the bytes of the epoch file"),
    Row("LG-4b", _APPEND, " ".join(LOG_ERROR_KINDS), "the bytes of the epoch file"),
    Row("LG-5", _APPEND, "ok", "the names and lengths of the files", rolled),
    Row("LG-6", "roll_log", "ok", "the files, or an error",
        lambda s: s.was is not None and s.was.segments[-1][1] == 0 and not rolled(s)),
    Row("LG-68", "roll_log", "kafka", "whether a time index exists", changes(".timeindex")),
    Row("SEG-22", f"roll_log {_APPEND}", "ok", "the bytes of the old indexes", rolled),
    Row("SEG-3", _APPEND, "ok", "the bytes of the indexes"),
    Row("SEG-3", _FINISHES, "ok", "the offset of the largest timestamp", changes(".timeindex")),
    Row("SEG-4", _FINISHES, "ok", "the offset of the largest timestamp", changes(".timeindex")),
    Row("SEG-4", _APPEND, "ok", "the bytes of the indexes"),
    Row("SEG-38", "truncate_log", "ok", "the remaining entries", truncates),
    Row("LG-7", "truncate_log", "ok invalid_argument", "the files", truncates),
    Row("LG-83", "truncate_log", "ok", "the remaining entries", truncates),
    Row("LG-69", "truncate_log", "ok", "the log start", truncates_start_batch,
        "few log starts lie inside a batch, and few truncations reach them"),
    Row("LG-8", "truncate_log", "ok", "the epoch file", lambda s: not truncates(s)),
    Row("LG-9", "truncate_fully", "ok", "the files"),
    Row("LG-10", "truncate_fully open_log", "ok", "the state"),
    Row("LG-10", "truncate_log", "ok", "the high watermark",
        lambda s: s.now is not None and s.now.high_watermark < s.now.start_offset),
    Row("LG-11", "truncate_fully truncate_log", "out_of_range", "another outcome"),
    Row("LG-73", "truncate_log", " ".join(LOG_ERROR_KINDS), "the high watermark, or a different error",
        lambda s: s.now is not None and s.now.high_watermark > s.now.end_offset,
        "few truncations reach a corrupt batch"),
    Row("LG-78", "open_log", "ok io invalid_argument", "another outcome, or other epochs",
        lambda s: EPOCHS in s.before.corrupted and bool(s.files_before.get(EPOCHS))),
    Row("LG-12", "delete_records", "ok out_of_range", "the state and the epoch file"),
    Row("LG-13", "apply_retention", "ok", "the number of segments, the state", depends_on_order,
        "few rounds delete a segment that is younger than the next one"),
    Row("LG-14", "apply_retention", "ok", "the number of segments, the state"),
    Row("LG-15", "open_log", "ok", "the files and the state", lambda s: bool(s.args[3]) and reopens(s)),
    Row("LG-16", "open_log", "ok", "the files and the state", lambda s: not s.args[3] and reopens(s)),
    Row("LG-17", "open_log", "ok", "the files and the state",
        lambda s: s.args[1] > 0 and s.now is not None and s.now.segments == ((s.args[1], 0),)),
    Row("LG-105", "open_log", "ok", "which index files exist", has_orphans),
    Row("LG-18", "open_log", "ok", "the epoch file",
        lambda s: s.args[1] > 0 and s.now is not None and s.now.segments == ((s.args[1], 0),)),
    Row("LG-19", "open_log", "invalid_argument", "the log would open"),
    Row("LG-20", ANY, "ok", "the state", is_last_stable_before_start),
    Row("LG-72", "update_high_watermark", "ok", "which index files exist",
        lambda s: len(s.files) > len(s.files_before)),
    Row("LG-86", "append_as_leader append_verified", "ok", "the result", lambda s: not repeats(s)),
    Row("LG-87", "append_as_leader append_verified", "ok", "the result", repeats),
    Row("LG-98", "append_as_leader append_verified", "ok", "the rest of the result", lambda s: not repeats(s)),
    Row("LG-100", "append_as_leader append_verified", "ok", "the rest of the result", repeats),
    Row("LG-99", "append_as_follower", "ok", "the result"),
    Row("LG-85", "end_offset_for_epoch", "ok", "the epoch and the offset"),
    Row("LG-90", "assign_topic_id", "ok kafka", "the file partition.metadata, or an error"),
    Row("LG-90", "topic_id", "ok", "the topic id"),
    Row("LG-91", "open_log topic_id", "ok io closed invalid_argument", "another outcome, or another topic id",
        lambda s: PARTITION_METADATA in s.before.corrupted),
    Row("LG-92", "rename_log", "ok", "the files, or the state"),
    Row("LG-92", _USES, "ok", "the files, the state or the result", lambda s: s.before.directory == "future"),
    Row("LG-93", "end_offset_for_epoch", "ok", "an epoch and an offset", lambda s: s.before.directory == "deleted"),
    Row("LG-94", f"{_USES} close_log", "io", "another outcome, or another state", lambda s: s.before.failed),
    Row("LG-97a", "delete_log", "io", "the log would be deleted", lambda s: s.before.failed),
    Row("LG-97b", "delete_log", "ok", "an error", lambda s: s.before.failed),
    Row("LG-95", "fail_log", "ok", "which index files exist", lambda s: len(s.files) > len(s.files_before)),
    Row("LG-96", "delete_log", "ok", "the files"),
    Row("LG-101", "fetch", "ok out_of_range", "the place and the size, or a different error"),
    Row("LG-102", "fetch", "ok", "the aborted transactions", lambda s: bool(s.value) and s.value[5] > 0),
    Row("LG-103", "bytes_after", "ok", "the limit, its place or the bytes"),
    Row("LG-104", "raise_high_watermark", "ok invalid_argument", "the high watermark, or the result"),
    Row("LG-107", _APPEND, "ok", "the recovery point",
        lambda s: s.was is not None and s.now is not None and s.before.settings.get(FLUSH, LONG_MAX) < LONG_MAX
        and s.now.recovery_point > s.was.recovery_point),
    Row("LG-106", "late_transactions", "ok", "when the oldest transaction is late"),
    Row("LG-67", _FETCHES, "ok", "the high watermark",
        lambda s: s.was is not None and s.now is not None and s.now.high_watermark < s.was.high_watermark),
    Row("LG-79", "offset_snapshot fetch bytes_after", "ok", "the last stable offset",
        lambda s: s.was is not None and s.now is not None and s.was.high_watermark < s.now.high_watermark),
    Row("LG-31a", "truncate_log", "ok", "the last stable offset", is_undecided_again),
    Row("LG-31b", "truncate_log", "ok", "the last stable offset", settles),
    Row("LG-31c", "truncate_log", "ok", "the last stable offset, or what counts as replicated", is_undecided_still),
    Row("LG-31c", _APPEND, "ok", "the last stable offset", is_undecided_again),
    Row("LG-27", "append_as_follower", "invalid_argument", "another outcome, or other bytes", is_several),
    Row("LG-26", "close_log", "ok", "the length of the index files", lambda s: not s.args[0]),
    Row("SEG-24a", "close_log", "ok", "the bytes of the indexes"),
    Row("SEG-24b SEG-24f", "close_log", "ok", "which index files exist"),
    Row("SEG-35", "open_log", "ok", "the bytes of the indexes", reopens),
    *PRODUCER_ROWS,
    *LEADER_ROWS,
)
# fmt: on


@cache
def rules_of_log(release: str) -> Rules:
    """Return the rows that apply in a release."""
    return Rules((*ROWS, *cleaned.ROWS), release)


def clauses_of_log_step(
    operation: Operation,
    dialect: Dialect,
    before: LogState | None,
    observation: LogObservation,
    tracked: TrackedLog | None = None,
    files_before: Files | None = None,
    files: Files | None = None,
    known: dict[Any, Conditions] | None = None,
) -> tuple[str, ...]:
    """Return the clauses that a step on a log exercises, in the order of :meth:`.Rules.exercised`.

    Args:
        dialect: The dialect of the release whose catalogue applies.
        before: The state before the step; None if no log was open.
        observation: The reference's observation.
        tracked: The tracked state before the step; an empty one by default.
        files_before: The files before the step; none by default.
        files: The files after the step; none by default.
        known: The conditions of this step that were already evaluated, which releases with identical objects share.
    """
    name, args = operation
    outcome, now = observation
    of_before = tracked or TrackedLog()
    conditions = None
    if known is not None:
        key = (*map(id, (before, outcome, now, files_before, files)), *of_before.key)  # all outlive the step
        conditions = known.get(key)
    if conditions is None:
        answers = dict(zip(args[0], outcome.value, strict=True)) if name == "list_offsets" and outcome.value else {}
        step = LogStep(args, of_before, before, outcome.value, now, files_before or {}, files or {}, answers)
        conditions = Conditions(step)
        if known is not None:
            known[key] = conditions
    return rules_of_log(dialect.release).exercised_in(name, outcome.error, conditions)
