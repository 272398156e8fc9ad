"""Capabilities that a log may lack, and the operations that require them.

A third-party log declares its capabilities in its reply to ``start``. Operations that require a missing capability are
not generated; in a recorded trace, they are unsupported. :mod:`conformance.lockstep.scopes.tolerances` lists the
differences that are tolerated if a capability is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Final

from conformance.operations.index_capabilities import INDEX_CLAUSES
from conformance.operations.log import EXPIRATION, LOG_OPS
from conformance.operations.malformed_batches import KEYS
from kidx.log.epochs import FILE_NAME
from kidx.log.lookup import MAX_TIMESTAMP, supports_target
from kidx.producers import EXPIRATION_MS, SNAPSHOT_SUFFIX

if TYPE_CHECKING:
    from conformance.operations.operation import Operation
    from kidx.dialect import Dialect

TIME_LOOKUPS: Final = "time_lookups"
NOT_IN_STATE: Final = "the state does not include "
"""The reason before the name of a field that is not compared, because a log does not report it."""

CAPABILITIES: Final = {
    "segments": "its records are in segments and files of Kafka's format, rolled by segment.bytes and sizes of indexes",
    "whole_calls": "the batches of one append roll, or are rejected, together",
    "start_checkpoint": "the log start offset is the one in open_log, even if it was larger before",
    "compression": "it reads records that are compressed",
    "validation": "as a leader it rejects and changes a producer's batches by the topic's settings, like LogValidator",
    "clock": "its clock has the time that open_log and set_clock set, and does not advance between them",
    "clean_flag": "only clean of open_log decides whether segments are recovered, and prepared of close has an effect",
    "recovery_point": "a recovery begins with the segment of recovery_point",
    "epochs": "it keeps leader epochs in leader-epoch-checkpoint and answers with them",
    "producers": "it keeps producers, checks their epochs and sequence numbers, and writes snapshots",
    "transactions": "it keeps a last stable offset and writes .txnindex",
    "preallocation": "an index that is written to has segment.index.bytes, and appears when it is needed",
    "deferred_deletion": "segments before the log start remain until retention runs",
    "append_results": "append returns its result, not null",
    "epoch_ends": "end_offset_for_epoch returns where a leader epoch ends",
    TIME_LOOKUPS: "list_offsets finds records by their timestamps, and the largest timestamp (-3)",
}
"""The capabilities, each with the behaviour of a log that has it."""

NEUTRAL: Final[dict[str, dict[str, Any]]] = {
    "clock": {
        "retention.ms": -1,
        "segment.ms": 1 << 40,
        "message.timestamp.type": "CreateTime",
        EXPIRATION: EXPIRATION_MS,
    },
    "segments": {"segment.index.bytes": 1200},
}
"""The settings that a log without the capability receives instead of the generated ones; they have no effect."""


VALIDATED: Final = frozenset(
    {
        "compression.type",
        "cleanup.policy",
        "max.message.bytes",
        "max.decompressed.message.bytes",
        "message.timestamp.difference.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
    }
)
"""The topic configurations by which a leader rejects or rewrites batches; generated only for logs that support them."""


def settings_for(settings: dict[str, Any], capabilities: frozenset[str]) -> dict[str, Any]:
    """Return the topic settings that a log with these capabilities receives."""
    if "validation" not in capabilities:
        settings = {name: value for name, value in settings.items() if name not in VALIDATED}
    for capability, neutral in NEUTRAL.items():
        if capability not in capabilities:
            settings = settings | neutral
    return settings


_OF_FILE: Final = {".txnindex": "transactions", SNAPSHOT_SUFFIX: "producers", FILE_NAME: "epochs"}
"""The capability of a log that has a file, by the end of the file's name."""

_CLAUSES: Final = {
    "segments": "SEG-* LO-23 FR-2 TX-15 LG-5 LG-6 LG-13 LG-14 LG-19 LG-22 LG-23 LG-24 LG-25 LG-26 LG-27 LG-29 LG-70",
    "clean_flag": "SEG-27 SEG-35 SEG-36 LG-15 LG-16 LG-26 LG-30",
    "recovery_point": "SEG-35 LG-16",
    "epochs": "SEG-31 LG-3 LG-4 LG-8 LG-18",
    "producers": "LG-32 LG-33 LG-34 LG-35 LG-36 LG-37 LG-38 LG-39 LG-40 LG-41 LG-42",
    "transactions": "TX-15 LG-20 LG-30 LG-31 LG-43 LG-45",
    "preallocation": "SEG-25 SEG-34",
    "append_results": "LG-86 LG-87 LG-98 LG-99 LG-100",
    "epoch_ends": "LG-85",
    "clock": "LG-40",
    TIME_LOOKUPS: "LO-6 LO-9 LO-10 LO-15 LO-20 LO-23 FR-1 FR-2 LG-21 LG-22 LG-23 LG-24 LG-25 LG-29 LG-70",
    "validation": "LG-50 LG-51 LG-52 LG-53 LG-54 LG-55 LG-56 LG-57 LG-58 LG-59 LG-60 LG-61 LG-62 LG-63 LG-64 LG-71",
}
"""The clauses that do not apply without a capability.

``SEG-*`` means all clauses that begin with ``SEG-``. A clause without a letter, such as LG-34, includes LG-34a and
LG-34b.
"""


def needs_missing_capability(clause: str, capabilities: frozenset[str]) -> bool:
    """Return True if a clause is about a capability that a log or an index with these capabilities lacks.

    No step counts as evidence for such a clause. Logs and indexes have different capabilities. No clause is about
    capabilities of both, except ``preallocation``, which has the same meaning for both.
    """
    names = {clause.partition("-")[0] + "-*", clause.rstrip(ascii_lowercase), clause}
    tables = (*_CLAUSES.items(), *INDEX_CLAUSES.items())
    return any(names & set(clauses.split()) for capability, clauses in tables if capability not in capabilities)


NOT_REQUESTED: Final = "not asked"
"""The placeholder for the result of a target that is not requested, because the log has no lookups by time."""


def is_by_time(target: int, dialect: Dialect) -> bool:
    """Return True if the result for a target of ``list_offsets`` is determined by the timestamps of records.

    Args:
        target: A timestamp, or a special target; a special target that the release does not have is a timestamp
            (LO-15).
    """
    return target == MAX_TIMESTAMP or not supports_target(dialect, target)


def missing(operation: Operation, capabilities: frozenset[str]) -> str:
    """Return the first capability that an operation requires and a log lacks; empty if it lacks none."""
    return next((needed for needed in _needs(operation) if needed not in capabilities), "")


def _needs(operation: Operation) -> Iterator[str]:
    name, arguments = operation
    yield from LOG_OPS[name].needs if name in LOG_OPS else ()
    if name == "open_log":
        yield from _of_settings(arguments[0])
    elif name == "close_log" and not arguments[0]:
        yield "clean_flag"
    elif name == "damage_log_file":
        yield from (needed for end, needed in _OF_FILE.items() if arguments[0].endswith(end))
    elif name in ("append_as_leader", "append_as_follower"):
        batches, epoch = arguments
        if len(batches) > 1:
            yield "whole_calls"
        for batch in batches:
            yield from _of_batch(batch, as_leader=name == "append_as_leader")
            if batch.get("epoch", epoch) > epoch:
                yield "epochs"


def _of_settings(settings: Mapping[str, Any]) -> Iterator[str]:
    for capability, neutral in NEUTRAL.items():
        if any(settings.get(key, value) != value for key, value in neutral.items()):
            yield capability
    if VALIDATED & settings.keys():
        yield "validation"


def _of_batch(batch: Mapping[str, Any], *, as_leader: bool) -> Iterator[str]:
    """Yield the capabilities that a batch requires.

    A follower does not repeat the leader's checks, so it needs no producer state for the batches of a transaction.
    """
    if batch.get("codec", "none") != "none":
        yield "compression"
    gaps = as_leader and any(record[0] != number for number, record in enumerate(batch["records"]))
    if gaps or KEYS & batch.keys() or batch.get("magic", 2) < 2:
        yield "validation"
    if "producer" in batch:
        in_transaction = batch.get("transactional") or "marker" in batch
        if in_transaction:
            yield "transactions"
        if as_leader or not in_transaction:
            yield "producers"
