"""The operations of the broker machine: what is done to one topic of a running broker, as plain data.

Records are ``[timestamp, key, value]``: milliseconds (-1 for none), and how many bytes key and value have (null for
none). The bytes themselves follow from that, so that a trace stays short and a replay sends the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from conformance.operations.effects import Effect
from kidx.records import SimpleRecord

BROKER_SIGNATURES: Final[dict[str, tuple[str, ...]]] = {
    # Makes the topic, with one partition; `settings` are topic configurations by their names.
    "create_topic": ("settings",),
    # kafka-python produces as an application would: all records, then a flush. It decides on the batches.
    "send_records": ("records", "codec"),
    # One batch as it is given, through the Produce API; `producer` is null or one of PRODUCERS, and the batch then
    # part of that producer's transaction, which begins with it if none is open.
    "append_batch": ("records", "codec", "producer"),
    # One batch with a wrong checksum.
    "append_corrupt": ("records",),
    "end_transaction": ("producer", "commit"),
    # -1 is the high watermark.
    "delete_before": ("offset",),
    # SIGTERM and start; kill -9 and start. Both concern every topic of the broker.
    "restart_broker": (),
    "kill_broker": (),
}
"""Every operation and the names of its arguments, in order."""

BROKER_EFFECTS: Final[dict[str, Effect]] = {
    "create_topic": Effect.OPENS,
}
"""As :data:`conformance.operations.EFFECTS`."""

PRODUCERS: Final = ("a", "b", "c")
"""Names of transactional producers within a topic."""

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
SENT_CODECS: Final = ("none", "gzip")
"""What kafka-python compresses with, without further packages."""
_PATTERN: Final = bytes(range(256)) * 4


def records_of(rows: Iterable[list[Any]]) -> list[SimpleRecord]:
    """The records that the rows of an operation stand for."""
    return [
        SimpleRecord(timestamp, _bytes(key, number), _bytes(value, number + 7))
        for number, (timestamp, key, value) in enumerate(rows)
    ]


def _bytes(size: int | None, start: int) -> bytes | None:
    if size is None:
        return None
    return (_PATTERN[start % 256 :] * (size // 768 + 1))[:size]
