"""Rows about leaders (clauses LG-50 and later): the batches that a leader rejects or rewrites.

A row names a clause, the operations and results (``ok`` or an error kind) that exercise it, and what a violation would
have changed, perhaps with a condition: :class:`~conformance.attribution.rules.Row` explains the columns.

A condition receives a :class:`~conformance.attribution.log_step.LogStep`: ``was`` and ``now`` are the states before and
after the step, and ``before`` has what no state reports, such as the topic's settings. The first argument of an append
is its batches, as JSON objects (:mod:`conformance.operations.batches`). A record of a batch is its offset delta and
timestamp, and then perhaps the numbers of bytes of its value and its key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.rules import Row
from conformance.operations.batches import encode
from conformance.operations.malformed_batches import is_corrupt_stream
from kidx.errors import KidxError
from kidx.layout import ATTRIBUTE_LOG_APPEND_TIME
from kidx.records import iter_batches

if TYPE_CHECKING:
    from conformance.attribution.log_step import LogStep

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


def exceeds_limit(step: LogStep) -> bool:
    """Return True if a batch is larger than ``max.message.bytes`` of the topic."""
    limit = step.before.settings.get("max.message.bytes")
    return limit is not None and any(len(encode([batch])) > limit for batch in step.args[0])


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
    Row("LG-74", _LEADER, "ok invalid_record kafka buffer_underflow", "another error, or other bytes", _DAMAGED_LZ4),
    Row("LG-76", _LEADER, "ok invalid_record kafka buffer_underflow", "another error, or other bytes", _DAMAGED_LZ4),
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
    Row("LG-59", _LEADER, "too_large", "the batch would be appended", topic_says("max.message.bytes")),
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
