"""The operations of the broker machine: what is done to one topic of a running broker, as plain data.

Records are ``[timestamp, key, value]``: milliseconds (-1 for none), and how many bytes key and value have (null for
none). The bytes themselves follow from that, so that a trace stays short and a replay sends the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from conformance.operations.effects import Effect
from conformance.operations.op import BOOLEAN, LIST, LONG, SETTINGS, Op, by_name, one_of
from kidx.records import SimpleRecord

PRODUCERS: Final = ("a", "b", "c")
"""Names of transactional producers within a topic."""

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
SENT_CODECS: Final = ("none", "gzip")
"""What kafka-python compresses with, without further packages."""
_ROWS: Final = {"records": LIST}
_PRODUCER: Final = one_of(*PRODUCERS)

BROKER_OPS: Final = by_name(
    (
        # Makes the topic, with one partition.
        Op("create_topic", {"settings": SETTINGS}, effect=Effect.OPENS),
        # kafka-python produces as an application would: all records, then a flush. It decides on the batches.
        Op("send_records", {**_ROWS, "codec": one_of(*SENT_CODECS)}),
        # One batch as it is given, through the Produce API; with a producer the batch is part of that producer's
        # transaction, which begins with it if none is open.
        Op("append_batch", {**_ROWS, "codec": one_of(*CODECS), "producer": _PRODUCER | None}),
        # One batch with a wrong checksum.
        Op("append_corrupt", _ROWS),
        Op("end_transaction", {"producer": _PRODUCER, "commit": BOOLEAN}),
        # -1 is the high watermark.
        Op("delete_before", {"offset": LONG}),
        # SIGTERM and start; kill -9 and start. Both concern every topic of the broker.
        Op("restart_broker", {}),
        Op("kill_broker", {}),
    )
)
"""Every operation on a broker's topic."""

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
