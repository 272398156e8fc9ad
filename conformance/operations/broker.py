"""Operations of the broker machine on one topic of a running broker, as plain data.

Records are ``[timestamp, key, value]``: milliseconds (-1 for none), and the sizes of key and value in bytes (null for
none). The bytes are derived from these numbers, so that a trace is short and a replay sends the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from conformance.operations.op import BOOLEAN, LIST, LONG, SETTINGS, Effect, Op, by_name, one_of
from kidx.records import SimpleRecord

PRODUCERS: Final = ("a", "b", "c")
"""The names of transactional producers within a topic."""

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
SENT_CODECS: Final = ("none", "gzip")
"""The codecs that kafka-python supports without further packages."""
_ROWS: Final = {"records": LIST}
_PRODUCER: Final = one_of(*PRODUCERS)

BROKER_OPS: Final = by_name(
    (
        # Creates the topic with one partition.
        Op("create_topic", {"settings": SETTINGS}, effect=Effect.OPENS),
        # The client of kafka-python sends all records and then flushes; it divides them into batches itself.
        Op("send_records", {**_ROWS, "codec": one_of(*SENT_CODECS)}),
        # One batch, sent unchanged in a Produce request. With a producer, the batch is part of its transaction,
        # which begins with the batch if no transaction is open.
        Op("append_batch", {**_ROWS, "codec": one_of(*CODECS), "producer": _PRODUCER | None}),
        # One batch with a wrong checksum.
        Op("append_corrupt", _ROWS),
        Op("end_transaction", {"producer": _PRODUCER, "commit": BOOLEAN}),
        # Deletes the records before an offset; -1 is the high watermark.
        Op("delete_before", {"offset": LONG}),
        # `restart_broker` stops the broker with SIGTERM, `kill_broker` with kill -9; both start it again. They affect
        # all topics of the broker.
        Op("restart_broker", {}),
        Op("kill_broker", {}),
    )
)
"""All operations on a broker's topic."""

_PATTERN: Final = bytes(range(256)) * 4


def records_of(rows: Iterable[list[Any]]) -> list[SimpleRecord]:
    """Return the records that the rows of an operation describe."""
    return [
        SimpleRecord(timestamp, _bytes(key, number), _bytes(value, number + 7))
        for number, (timestamp, key, value) in enumerate(rows)
    ]


def _bytes(size: int | None, start: int) -> bytes | None:
    if size is None:
        return None
    return (_PATTERN[start % 256 :] * (size // 768 + 1))[:size]
