# ruff: noqa: ARG001, RET503 -- a defect has one signature, and leaves alone what it is not about
"""Proxy of a real broker that plants defects in the responses to ListOffsets and Fetch."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module

from conformance.kafka.broker.ports import HOST
from conformance.kafka.client import Address, Client, kafka_python
from kidx.records import iter_memory_batches
from kidx.records.builder import write_checksum

kafka_python()
_consumer = import_module("kafka.protocol.consumer")
LIST_OFFSETS, FETCH = _consumer.ListOffsetsRequest.API_KEY, _consumer.FetchRequest.API_KEY
_CLASSES = {
    LIST_OFFSETS: (_consumer.ListOffsetsRequest, _consumer.ListOffsetsResponse),
    FETCH: (_consumer.FetchRequest, _consumer.FetchResponse),
}
NOTHING = (0, -1, -1, -1)


@dataclass
class Asked:
    """Request to which a defect may respond differently, and the broker's state of its topic."""

    version: int
    isolation: int
    replica: int
    topic: str
    partition: int
    target: int
    epoch: int
    broker: Client
    seen: dict = field(default_factory=dict)
    cache: dict = field(default_factory=dict)

    @property
    def batches(self):
        """Return all batches that a fetch returns, or that an earlier fetch returned before they were deleted."""
        return self._once("batches", self._fetched)

    def _fetched(self):
        known = self.seen.setdefault(self.topic, {})
        offset = self.start
        while offset < self.end:
            found = list(iter_memory_batches(self.broker.fetch(self.topic, offset, max_bytes=1 << 22).records))
            known.update({batch.base_offset: batch for batch in found})
            offset = found[-1].last_offset + 1
        return [known[base] for base in sorted(known)]

    def _once(self, what, ask):
        """Return a result from the broker, which is cached until the broker's state changes."""
        key = self.topic, what
        if key not in self.cache:
            self.cache[key] = ask()
        return self.cache[key]

    def _offset(self, *asked):
        return self._once(asked, lambda: self.broker.list_offset(self.topic, *asked).offset)

    @property
    def records(self):
        """Return all records that remain."""
        start = self.start
        return self._once("records", lambda: [r for batch in self.batches for r in batch if r.offset >= start])

    def batch_of(self, offset):
        return next(b for b in self.batches if b.base_offset <= offset <= b.last_offset)

    @property
    def start(self):
        return self._offset(-2)

    @property
    def end(self):
        return self._offset(-1)

    @property
    def stable(self):
        return self._offset(-1, "read_committed")

    @property
    def is_time(self):
        return self.target >= 0


class Proxy:
    """Proxy that accepts connections, forwards requests, and applies one defect at a time to the responses."""

    def __init__(self, upstream):
        self.upstream = upstream
        self.defect = None
        self.spoils_fetch = None
        self.failure = None
        self.is_dead = False
        self.spoilt = 0
        self.seen = {}
        self.cache = {}
        self._listening = socket.create_server((HOST, 0))
        self.address = Address(*self._listening.getsockname()[:2])
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @contextmanager
    def spoiling(self, *, answers=None, fetches=None):
        """Apply a defect in the block to responses to ListOffsets or to Fetch, whose numbers count from 0."""
        self.defect, self.spoils_fetch, self.spoilt = answers, fetches, 0
        try:
            yield self
        finally:
            self.defect = self.spoils_fetch = None

    @contextmanager
    def failing(self, key, failure, *, once=False):
        """Replace the responses to an API in the block; the number of replaced ones is counted.

        Args:
            key: The API key.
            failure: Function of the proxy and the response; it returns what is sent, or None to close the connection.
            once: True to replace the first response only.
        """
        self.spoilt, self.failure = 0, (key, failure, once)
        try:
            yield self
        finally:
            self.failure = None

    def _failed(self, key, reply):
        wanted, failure, once = self.failure or (None, None, False)
        if key != wanted or (once and self.spoilt):
            return reply
        self.spoilt += 1
        return failure(self, reply)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                if self.is_dead:
                    connection.close()
                    continue
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection):
        with (
            connection,
            socket.create_connection(self.upstream) as behind,
            Client(self.upstream) as broker,
            contextlib.suppress(OSError),
        ):
            while request := _frame(connection):
                behind.sendall(struct.pack(">i", len(request)) + request)
                reply = _frame(behind)
                key, version = struct.unpack_from(">hh", request)
                if key == LIST_OFFSETS and self.defect is not None:
                    reply = self._spoilt_offsets(request, reply, version, broker)
                elif key not in _CLASSES:
                    self.cache.clear()
                elif key == FETCH and self.spoils_fetch is not None:
                    reply = self._spoilt_fetch(request, reply, version)
                reply = self._failed(key, reply)
                if reply is None:
                    return
                if reply:
                    connection.sendall(struct.pack(">i", len(reply)) + reply)

    def _spoilt_offsets(self, request, reply, version, broker):
        asks, answers = _decoded(LIST_OFFSETS, request, reply, version)
        questions = {(t.name, p.partition_index): p for t in asks.topics for p in t.partitions}
        for topic in answers.topics:
            for part in topic.partitions:
                question = questions[topic.name, part.partition_index]
                isolation = asks.isolation_level if version >= 2 else 0
                asked = Asked(
                    version,
                    isolation,
                    asks.replica_id,
                    topic.name,
                    part.partition_index,
                    question.timestamp,
                    question.current_leader_epoch if version >= 4 else -1,
                    broker,
                    self.seen,
                    self.cache,
                )
                was = (part.error_code, part.offset, part.timestamp, part.leader_epoch)
                now = self.defect(asked, was)
                if now is not None and now != was:
                    self.spoilt += 1
                    part.error_code, part.offset, part.timestamp, part.leader_epoch = now
        return _encoded(answers, reply, version)

    def _spoilt_fetch(self, request, reply, version):
        _, answers = _decoded(FETCH, request, reply, version)
        for topic in answers.responses:
            for part in topic.partitions:
                self.spoilt += bool(self.spoils_fetch(part))
        return _encoded(answers, reply, version)

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@contextmanager
def proxy_of(upstream):
    """Start a proxy in front of a broker."""
    proxy = Proxy(upstream)
    try:
        yield proxy
    finally:
        proxy.close()


def _frame(connection):
    head = connection.recv(4, socket.MSG_WAITALL)
    return connection.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL) if len(head) == 4 else b""


def _decoded(key, request, reply, version):
    asks, answers = _CLASSES[key]
    body = reply[_header(answers, version) :]
    return asks.decode(request, version=version, header=True), answers.decode(body, version=version)


def _header(form, version):
    """Return the header of a response: the correlation id, and no tagged fields."""
    return 5 if form.flexible_version_q(version) else 4


def _encoded(answers, reply, version):
    answers._header = None  # decoding removes the header, and encoding needs one
    return reply[: _header(answers, version)] + bytes(answers.encode(version=version))


# -- defects -----------------------------------------------------------------------------------------------------------


def record(found, was):
    """Return a result with this record, with the leader epoch of the correct result."""
    return NOTHING if found is None else (0, found.offset, found.timestamp, was[3])


def visible(asked):
    limit = asked.stable if asked.isolation and asked.replica == -1 else asked.end
    return [r for r in asked.records if r.offset < limit]


def last_not_after(asked, was):
    """Return the last record at or before the target, not the first at or after it."""
    if asked.is_time:
        return record(
            max((r for r in visible(asked) if r.timestamp <= asked.target), key=lambda r: r.offset, default=None), was
        )


def only_after(asked, was):
    """Skip a record at the target itself."""
    if asked.is_time and was[2] == asked.target:
        return record(next((r for r in visible(asked) if r.timestamp > asked.target), None), was)


def last_of_equals(asked, was):
    """Return the last record of those with the same timestamp."""
    if asked.is_time and was[1] >= 0:
        return record([r for r in visible(asked) if r.timestamp == was[2]][-1], was)


def base_of_batch(asked, was):
    """Return the offset of a record's batch."""
    if asked.is_time and was[1] >= 0:
        return (0, asked.batch_of(was[1]).base_offset, *was[2:])


def next_offset_between(asked, was):
    """Return an offset that is one too large if the target is between two timestamps."""
    if asked.is_time and was[1] >= 0 and was[2] != asked.target:
        return (0, was[1] + 1, *was[2:])


def nothing_before_first(asked, was):
    """Return no record for a target before the first timestamp."""
    if asked.is_time and asked.target < min(r.timestamp for r in asked.records):
        return NOTHING


def thirty_two_bits(asked, was):
    """Truncate targets to 32 bits."""
    if asked.is_time and asked.target >= 1 << 31:
        target = (asked.target & 0xFFFFFFFF) - (1 << 32) * bool(asked.target & 0x80000000)
        return record(next((r for r in visible(asked) if r.timestamp >= target), None), was)


def target_for_timestamp(asked, was):
    """Return the target as the record's timestamp."""
    if asked.is_time and was[1] >= 0:
        return (0, was[1], asked.target, was[3])


def deleted_records(asked, was):
    """Let a search by timestamp find records before the log start."""
    if asked.is_time:
        return record(next((r for b in asked.batches for r in b if r.timestamp >= asked.target), None), was)


def earliest_is_zero(asked, was):
    """Never advance the earliest offset."""
    if asked.target == -2 and was[0] == 0:
        return (0, 0, *was[2:])


def earliest_is_next(asked, was):
    """Return an earliest offset that is one too large."""
    if asked.target == -2 and was[0] == 0:
        return (0, was[1] + 1, *was[2:])


def latest_is_last(asked, was):
    """Return the last record's offset as the latest offset."""
    if asked.target == -1 and was[0] == 0 and was[1] > 0:
        return (0, was[1] - 1, *was[2:])


def latest_ignores_isolation(asked, was):
    """Return the high watermark to clients with read_committed."""
    if asked.target == -1 and was[0] == 0:
        return (0, asked.end, *was[2:])


def time_ignores_isolation(asked, was):
    """Return undecided records to clients with read_committed."""
    if asked.is_time and asked.isolation and was[1] < 0:
        return record(next((r for r in asked.records if r.timestamp >= asked.target), None), was)


def debugger_is_consumer(asked, was):
    """Return to replica -2 with read_committed only what a consumer gets."""
    if asked.target == -1 and asked.replica == -2 and asked.isolation and was[0] == 0:
        return (0, asked.stable, *was[2:])


def largest_is_last_of_batch(asked, was):
    """Return the last offset of the batch with the largest timestamp."""
    if asked.target == -3 and was[1] >= 0:
        return (0, asked.batch_of(was[1]).last_offset, *was[2:])


def largest_is_newest(asked, was):
    """Return the last record's timestamp as the largest one."""
    if asked.target == -3 and was[1] >= 0:
        return record(visible(asked)[-1], was)


def largest_is_producers(asked, was):
    """Return the producer's largest timestamp although the topic has LogAppendTime."""
    if asked.target == -3 and was[1] >= 0:
        batch = asked.batch_of(was[1])
        if batch.timestamp_type.name == "LOG_APPEND_TIME":
            return (0, was[1], batch.base_timestamp, was[3])


def time_is_producers(asked, was):
    """Search by the producer's timestamps although the topic has LogAppendTime."""
    if asked.is_time and was[1] >= 0:
        batch = asked.batch_of(was[1])
        if batch.timestamp_type.name == "LOG_APPEND_TIME":
            return (0, was[1], batch.base_timestamp, was[3])


def nothing_has_target(asked, was):
    """Return the target as the timestamp of a missing record."""
    if asked.is_time and was == NOTHING:
        return (0, -1, asked.target, -1)


def nothing_is_end(asked, was):
    """Return the log end offset if no record is found."""
    if asked.is_time and was == NOTHING:
        return (0, asked.end, -1, -1)


def nothing_is_error(asked, was):
    """Return an error if no record is found."""
    if asked.is_time and was == NOTHING:
        return (1, -1, -1, -1)


def nothing_has_epoch(asked, was):
    """Return a leader epoch if no record is found."""
    if asked.is_time and was == NOTHING and asked.version >= 4:
        return (0, -1, -1, 0)


def another_epoch(asked, was):
    """Return records with a leader epoch that never existed."""
    if asked.is_time and was[1] >= 0 and asked.version >= 4:
        return (*was[:3], 7)


def doubles_are_answered(asked, was):
    """Return a result for a partition that a request names twice."""
    if was[0] == 42:
        return (0, 0, -1, -1)


def unknown_is_nothing(asked, was):
    """Return no record for an unknown partition."""
    if was[0] == 3:
        return NOTHING


def unknown_has_epoch(asked, was):
    """Return a leader epoch together with the error for an unknown partition."""
    if was[0] == 3 and asked.version >= 4:
        return (*was[:3], 0)


def newer_epoch_is_taken(asked, was):
    """Return a result to a client that knows a newer leader."""
    if was[0] == 75 or was[0] == 76:
        return (0, asked.end, -1, 0)


def doubles_are_out_of_range(asked, was):
    """Return another error for a partition that a request names twice."""
    if was[0] == 42:
        return (1, *was[1:])


def unknown_is_out_of_range(asked, was):
    """Return another error for an unknown partition."""
    if was[0] == 3:
        return (1, *was[1:])


def newer_epoch_is_fenced(asked, was):
    """Return the error for an older leader epoch to a client that knows a newer one."""
    if was[0] == 75:
        return (74, *was[1:])


def goes_on_to_later_segments(asked, was):
    """Return a record of a later segment if Kafka finds none. KIP-79 documents this, but Kafka does not do it."""
    if asked.is_time and was == NOTHING and asked.start:
        return record(next((r for r in visible(asked) if r.timestamp >= asked.target), None), (0, 0, 0, 0))


def unknown_is_latest(asked, was):
    """Return no record for a special target of later versions."""
    if was[0] == 35:
        return (0, 0, -1, -1)


def no_aborted_transactions(part):
    """Omit the aborted transactions of a fetch."""
    found, part.aborted_transactions = part.aborted_transactions, []
    return found


def stable_is_high_watermark(part):
    """Return the high watermark as the last stable offset of a fetch."""
    was, part.last_stable_offset = part.last_stable_offset, part.high_watermark
    return was != part.high_watermark


LIMIT = 1.0
"""Time limit in seconds of a client that a failure makes wait."""


def is_silent(proxy, reply):
    """Send no response, and keep the connection."""
    return b""


def is_late(proxy, reply):
    """Send the response after the time limit of the client."""
    time.sleep(1.3 * LIMIT)
    return reply


def closes(proxy, reply):
    """Close the connection instead of responding."""


def is_for_another_request(proxy, reply):
    """Send the response with the correlation id of another request."""
    return struct.pack(">i", struct.unpack(">i", reply[:4])[0] + 1) + reply[4:]


def is_garbage(proxy, reply):
    """Send a response whose body is not one."""
    return reply[:4] + b"\xff" * (len(reply) - 4)


def is_cut(proxy, reply):
    """Send half of a response."""
    return reply[: max(4, len(reply) // 2)]


def dies(proxy, reply):
    """Close the connection, and accept none from now on."""
    proxy.is_dead = True


FAILURES = (is_silent, is_late, closes, is_for_another_request, is_garbage, is_cut, dies)
"""Ways in which a response may be missing."""

DEFECTS = {
    last_not_after: {"LO-6", "LO-12"},
    only_after: {"LO-6"},
    last_of_equals: {"LO-6"},
    base_of_batch: {"LO-6"},
    next_offset_between: {"LO-6", "LO-12"},
    nothing_before_first: {"LO-6", "LO-14"},
    thirty_two_bits: {"LO-6", "LO-12", "LO-14"},
    target_for_timestamp: {"LO-6"},
    deleted_records: {"LO-6"},
    earliest_is_zero: {"LO-1"},
    earliest_is_next: {"LO-1"},
    latest_is_last: {"LO-2b"},
    latest_ignores_isolation: {"LO-2b"},
    time_ignores_isolation: {"LO-12", "LO-6"},
    debugger_is_consumer: {"LO-2b"},
    largest_is_last_of_batch: {"LO-10"},
    largest_is_newest: {"LO-10"},
    largest_is_producers: {"LO-10"},
    time_is_producers: {"LO-6"},
    nothing_has_target: {"LO-14"},
    nothing_is_end: {"LO-6", "LO-12"},
    nothing_is_error: {"LO-6"},
    nothing_has_epoch: {"LO-14"},
    another_epoch: {"LO-14"},
    unknown_is_nothing: {"LO-25"},
    unknown_has_epoch: {"LO-25"},
    newer_epoch_is_taken: {"LO-26"},
}
"""Defects that violate what is documented, with the clauses that may be reported."""
OTHER_ERRORS: dict = {
    unknown_is_out_of_range: "LO-25",
    newer_epoch_is_fenced: "LO-26",
}
"""Defects that return another error than the documented one, with the clause that is reported."""
NOT_KAFKAS: dict = {
    goes_on_to_later_segments: {"LO-23"},
    doubles_are_answered: {"LO-24"},
    doubles_are_out_of_range: {"LO-24"},
    unknown_is_latest: {"LO-15c", "LO-10", "LO-3a", "LO-4", "LO-5"},
}
"""Defects whose result is documented, or that no page forbids, but differs from the result of Kafka."""
PROMISED_TO_NOBODY = (goes_on_to_later_segments, doubles_are_answered, doubles_are_out_of_range)
"""Defects that break no promise."""


def stamped_is_as_created(part):
    """Return batches of a topic with LogAppendTime as batches with CreateTime, with the producer's timestamps."""
    found = bytearray()
    stamped = [batch for batch in iter_memory_batches(part.records or b"") if not batch.is_control]
    if not any(batch.timestamp_type.name == "LOG_APPEND_TIME" for batch in stamped):
        return False
    for batch in stamped:
        data = bytearray(batch.to_bytes())
        data[22] &= ~8
        write_checksum(data)
        found += data
    part.records = bytes(found)
    return True


def damaged(part):
    """Flip a bit of the last byte of each batch."""
    if part.records:
        part.records = part.records[:-1] + bytes([part.records[-1] ^ 1])
    return bool(part.records)


def without_leader_epochs(part):
    """Return batches with leader epoch -1, which no leader assigns; the checksum does not cover the epoch."""
    batches = [bytearray(batch.to_bytes()) for batch in iter_memory_batches(part.records or b"")]
    for data in batches:
        struct.pack_into(">i", data, 12, -1)
    part.records = b"".join(batches) if batches else part.records
    return len(batches)


FETCHES = {
    no_aborted_transactions: {"FE-2"},
    stable_is_high_watermark: {"FE-3"},
    stamped_is_as_created: {"FE-1"},
}
