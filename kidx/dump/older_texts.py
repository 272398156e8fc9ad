"""Texts of groups and transactions in the dumps of releases that do not print JSON."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from kidx.dialect import dialect_of
from kidx.errors import InvalidArgumentError
from kidx.java_numbers import to_int
from kidx.messages.reading import MessageError, Reader, definitions, jackson_text, read_message, within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kidx.records import Record

_DELETE: Final = "<DELETE>"
STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""States of a transaction, by their numbers."""
_TABLE: Final = 16
"""Number of buckets of a new hash table."""


def _message(release: str, name: str, data: bytes, offset: int) -> dict[str, Any]:
    """Return the fields of a message that begins with its version.

    Raises:
        InvalidArgumentError: the bytes are malformed; Kafka's dump ends there.
    """
    reader, message = Reader(data), definitions("coordinator", release)[name]
    try:
        version = int.from_bytes(reader.take(2), "big", signed=True)
        if within(message["versions"], version):
            return read_message(reader, message, version)
        problem = f"unknown version {version}"
    except MessageError as error:
        problem = str(error)
    raise InvalidArgumentError(f"{name} at offset {offset}: {problem}")


def _key(record: Record, topic: str) -> bytes:
    if record.key is None:
        raise InvalidArgumentError(f"Failed to decode message using {topic} topic decoder (message had a missing key)")
    return record.key


def formatted_group_record(release: str, record: Record) -> tuple[str | None, str | None]:
    """Return key and value of a record of ``__consumer_offsets``."""
    if dialect_of(release).dumps_internal_records_plainly:
        return _plain_group_record(release, record)
    key = _key(record, "offset")
    kind = int.from_bytes(key[:2], "big", signed=True)
    if kind in (0, 1):
        group = _message(release, "OffsetCommitKey", key, record.offset)
        shown = f"offset_commit::group={group['group']},partition={group['topic']}-{group['partition']}"
        if record.value is None:
            return shown, _DELETE
        commit = _message(release, "OffsetCommitValue", record.value, record.offset)
        return shown, f"offset={commit['offset']}" + (f",metadata={commit['metadata']}" if commit["metadata"] else "")
    if kind == 2:
        group = _message(release, "GroupMetadataKey", key, record.offset)
        shown = f"group_metadata::group={group['group']}"
        if record.value is None:
            return shown, _DELETE
        value = _message(release, "GroupMetadataValue", record.value, record.offset)
        return shown, _group_text(release, value)
    return f"unknown::version={kind}", None


def _group_text(release: str, value: dict[str, Any]) -> str:
    members = {member["memberId"]: member for member in value["members"]}
    is_consumer = value["protocolType"] == "consumer"
    shown = []
    for name in in_scala_order(members, {name: string_hash(name) for name in members}):
        assignment = base64.b64decode(members[name]["assignment"] or "")
        shown.append(f"{name}={_assignment_text(release, assignment) if is_consumer else _hex(assignment)}")
    return jackson_text(
        {
            "protocolType": value["protocolType"],
            "protocol": value["protocol"],
            "generationId": value["generation"],
            "assignment": "{" + ",".join(shown) + "}",
        }
    )


def _plain_group_record(release: str, record: Record) -> tuple[str | None, str | None]:
    if record.value is None:
        return None, None
    key = _key(record, "offset")
    kind = int.from_bytes(key[:2], "big", signed=True)
    if kind in (0, 1):
        group = _message(release, "OffsetCommitKey", key, record.offset)
        commit = _message(release, "OffsetCommitValue", record.value, record.offset)
        metadata = f":{commit['metadata']}" if commit["metadata"] else ""
        return f"offset::{group['group']}:{group['topic']}:{group['partition']}", f"{commit['offset']}{metadata}"
    if kind == 2:
        group = _message(release, "GroupMetadataKey", key, record.offset)
        value = _message(release, "GroupMetadataValue", record.value, record.offset)
        return jackson_text({"metadata": group["group"]}), _group_text(release, value)
    raise InvalidArgumentError(f"the key at offset {record.offset} has the unknown version {kind}")


def _assignment_text(release: str, assignment: bytes) -> str:
    reader = Reader(assignment)
    try:
        version = int.from_bytes(reader.take(2), "big", signed=True)
        found = read_message(reader, definitions("client", release)["ConsumerProtocolAssignment"], version)
    except MessageError as error:
        raise InvalidArgumentError(f"an assignment of a member: {error}") from None
    partitions = [f"{each['topic']}-{number}" for each in found["assignedPartitions"] for number in each["partitions"]]
    user_data = _hex(base64.b64decode(found["userData"] or ""))
    return f"[{', '.join(partitions)}]" + (f":{user_data}" if user_data else "")


def _hex(data: bytes) -> str:
    return f"{int.from_bytes(data, 'big'):X}" if data else ""


def formatted_transaction(release: str, record: Record) -> tuple[str | None, str | None]:
    """Return key and value of a record of ``__transaction_state``."""
    is_plain = dialect_of(release).dumps_internal_records_plainly
    if is_plain and record.value is None:
        return None, None
    key = _key(record, "transaction state")
    kind = int.from_bytes(key[:2], "big", signed=True)
    if kind != 0:
        return f"unknown::version={kind}", None
    named = _message(release, "TransactionLogKey", key, record.offset)
    shown = f"{'' if is_plain else 'transaction_metadata::'}transactionalId={named['transactionalId']}"
    if record.value is None:
        return shown, _DELETE
    value = _message(release, "TransactionLogValue", record.value, record.offset)
    status = value["transactionStatus"]
    if not 0 <= status < len(STATES):
        raise InvalidArgumentError(f"Unknown transaction state byte {status} from the transaction status message")
    partitions: dict[str, int] = {}
    for each in value["transactionPartitions"] or ():
        for number in each["partitionIds"]:
            partitions[f"{each['topic']}-{number}"] = to_int(31 * (31 + number) + string_hash(each["topic"]))
    ordered = in_scala_order(partitions, partitions)
    is_set = dialect_of(release).dumped_partitions_are_a_set
    listed = f"HashSet({', '.join(ordered)})" if is_set else f"[{','.join(ordered)}]"
    return shown, (
        f"producerId:{value['producerId']},producerEpoch:{value['producerEpoch']},state={STATES[status]},"
        f"partitions={listed},"
        f"txnLastUpdateTimestamp={value['transactionLastUpdateTimestampMs']},txnTimeoutMs={value['transactionTimeoutMs']}"
    )


def string_hash(text: str) -> int:
    """Return the result of ``String.hashCode``."""
    data = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(data), 2):
        value = (31 * value + int.from_bytes(data[position : position + 2], "big")) & 0xFFFF_FFFF
    return to_int(value)


def in_scala_order(keys: Iterable[str], hashes: dict[str, int]) -> list[str]:
    """Return keys in the iteration order of Scala's mutable hash table, which keeps its buckets sorted by hash."""
    given = list(keys)
    buckets = _TABLE
    while len(given) + 1 > buckets * 3 // 4:
        buckets *= 2

    def bucket_and_hash(key: str) -> tuple[int, int]:
        bits = hashes[key] & 0xFFFF_FFFF
        folded = to_int(bits ^ (bits >> 16))
        return folded & (buckets - 1), folded

    return sorted(given, key=bucket_and_hash)
