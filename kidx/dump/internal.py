"""Records of internal topics, which a broker writes for its own use, as a release's dump shows them.

Releases that do not print JSON print groups and transactions as texts, and ``__remote_log_metadata`` as Kafka's objects
that Java prints. The decoders of keys and values come with Kafka; each is known under all names that it has had.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kidx.dialect import dialect_of
from kidx.errors import InvalidArgumentError
from kidx.java_values import java_text, to_int
from kidx.messages.reading import MessageError, Reader, definitions, framed_message, jackson_text, read_message, within
from kidx.records import ControlRecordType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kidx.messages.reading import Message
    from kidx.records import Record

_SEGMENT_STATES: Final = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_PARTITION_STATES: Final = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")


def remote_text(name: str, data: dict[str, Any], *, has_transaction_flag: bool) -> str:
    """Return the text of a record.

    Args:
        name: name of the message.
        data: fields of the message.
        has_transaction_flag: True if the release marks segments without aborted transactions.
    """
    if name == "RemotePartitionDeleteMetadataRecord":
        shown = {
            "topicPartition": _partition(data["topicIdPartition"]),
            "state": _state(_PARTITION_STATES, data["remotePartitionDeleteState"]),
            "eventTimestampMs": data["eventTimestampMs"],
            "brokerId": data["brokerId"],
        }
    elif name == "RemoteLogSegmentMetadataUpdateRecord":
        shown = {
            "remoteLogSegmentId": _segment(data["remoteLogSegmentId"]),
            "customMetadata": _custom(data),
            "state": _state(_SEGMENT_STATES, data["remoteLogSegmentState"]),
            "eventTimestampMs": data["eventTimestampMs"],
            "brokerId": data["brokerId"],
        }
    else:
        shown = _whole(name == "RemoteLogSegmentMetadataSnapshotRecord", data)
        if has_transaction_flag:
            shown["txnIdxEmpty"] = "true" if data.get("txnIndexEmpty") else "false"
    return name.removesuffix("Record") + "{" + ", ".join(f"{key}={value}" for key, value in shown.items()) + "}"


def _whole(is_snapshot: bool, data: dict[str, Any]) -> dict[str, Any]:
    """Return the shown fields of a record with all metadata of a segment."""
    names: tuple[str, ...] = ("startOffset", "endOffset", "maxTimestampMs")
    if is_snapshot:
        shown = {"segmentId": data["segmentId"]}
    else:
        shown = {"remoteLogSegmentId": _segment(data["remoteLogSegmentId"])}
        names = ("startOffset", "endOffset", "brokerId", "maxTimestampMs", "eventTimestampMs")
    epochs = {each["leaderEpoch"]: each["offset"] for each in data["segmentLeaderEpochs"]}
    return (
        shown
        | {name: data[name] for name in names}
        | {
            "segmentLeaderEpochs": "{" + ", ".join(f"{epoch}={epochs[epoch]}" for epoch in sorted(epochs)) + "}",
            "segmentSizeInBytes": data["segmentSizeInBytes"],
            "customMetadata": _custom(data),
            "state": _state(_SEGMENT_STATES, data["remoteLogSegmentState"]),
        }
    )


def _segment(found: dict[str, Any]) -> str:
    partition = _partition(found["topicIdPartition"])
    return f"RemoteLogSegmentId{{topicIdPartition={partition}, id={found['id']}}}"


def _partition(found: dict[str, Any]) -> str:
    return f"{found['id']}:{found['name']}-{found['partition']}"


def _custom(data: dict[str, Any]) -> str:
    content = data.get("customMetadata")
    if content is None:
        return "Optional.empty"
    return f"Optional[CustomMetadata{{{len(base64.b64decode(content))} bytes}}]"


def _state(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else "null"


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


Parser = Callable[["Record"], tuple[str | None, str | None]]
"""Function that returns key and value of a record as text; None for a part that is not shown."""

TOPICS: Final = ("offsets", "transaction-log", "cluster-metadata", "remote-log-metadata")
"""Topics that can be shown, by the names in the options of Kafka's tool."""

_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def parser_of(topic: str, release: str) -> Parser:
    """Return the parser for the records of a topic.

    Args:
        topic: one of :data:`TOPICS`.
        release: the Kafka release.
    """
    if topic == "cluster-metadata":
        return partial(_metadata, release)
    if topic == "remote-log-metadata":
        return partial(_remote, release)
    transactions = topic == "transaction-log"
    dialect = dialect_of(release)
    if not (dialect.dumps_transactions_as_json if transactions else dialect.dumps_offsets_as_json):
        return partial(formatted_transaction if transactions else formatted_group_record, release)
    return partial(_coordinator, release, transactions)


def _metadata(release: str, record: Record) -> tuple[None, str]:
    try:
        name, _, version, data = framed_message(release, "metadata", record.value or b"")
    except MessageError as error:
        return None, f"Error at {record.offset}, skipping. {error}"
    return None, jackson_text({"type": _WORD.sub("_", name).upper(), "version": version, "data": data})


def _remote(release: str, record: Record) -> tuple[None, str]:
    try:
        name, message, _, data = framed_message(release, "remote", record.value or b"")
    except MessageError as error:
        return None, f"Error at offset {record.offset}, skipping. {error}"
    has_transaction_flag = any(field["name"] == "txnIndexEmpty" for field in message["fields"])
    return None, remote_text(name, data, has_transaction_flag=has_transaction_flag)


def _coordinator(release: str, transactions: bool, record: Record) -> tuple[str, str | None]:
    if record.key is None:
        label = "the specified" if dialect_of(release).coordinator_versions_are_checked else "offset topic"
        raise InvalidArgumentError(
            f"Failed to decode message at offset {record.offset} using {label} decoder (message had a missing key)"
        )
    try:
        reader = Reader(record.key)
        kind = _version(reader, "key")
        found = coordinator_messages(release, transactions=transactions).get(kind)
        if found is None:
            return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
        name, key_version, key, value = found
        data = _read(reader, key, key_version, "key", kind)
        shown = jackson_text({"type": str(kind), "data": data})
        if record.value is None:
            return shown, _DELETE
        reader = Reader(record.value)
        version = _version(reader, "value")
        if dialect_of(release).coordinator_versions_are_checked and not within(value["versions"], version):
            raise MessageError(f"Found an unknown record version {version} for {kind} type")  # noqa: TRY301
        content = _read(reader, value, version, "value", version)
    except MessageError as error:
        return f"Error at offset {record.offset}, skipping. {error}", None
    if name == "GroupMetadata" and content.get("protocolType") == "consumer":
        _open_members(release, content)
    if transactions and dialect_of(release).transaction_states_are_named:
        status = content["transactionStatus"]
        content["transactionStatus"] = STATES[status] if 0 <= status < len(STATES) else str(status)
    return shown, jackson_text({"version": str(version), "data": content})


def coordinator_messages(release: str, *, transactions: bool) -> dict[int, tuple[str, int, Message, Message]]:
    """Return, by the version of a key: name of the record, version of its key, and definitions of key and value."""
    messages = definitions("coordinator", release)
    found = {}
    for name, key in messages.items():
        stem = name.removesuffix("Key")
        if stem == name or stem.startswith("TransactionLog") != transactions:
            continue
        first, _, last = key["versions"].partition("-")
        numbers = range(int(first), int(last or first) + 1) if key["key"] is None else (key["key"],)
        for number in numbers:
            found[number] = (stem, number if key["key"] is None else 0, key, messages[f"{stem}Value"])
    return found


def _version(reader: Reader, what: str) -> int:
    if reader.remaining < 2:
        raise MessageError(f"Could not read version from {what}'s buffer.")
    return int.from_bytes(reader.take(2), "big", signed=True)


def _read(reader: Reader, message: Message, version: int, what: str, shown: int) -> dict[str, Any]:
    try:
        return read_message(reader, message, version)
    except MessageError as error:
        raise MessageError(
            f"Could not read record with version {shown} from {what}'s buffer due to: {error}."
        ) from None


def _open_members(release: str, content: dict[str, Any]) -> None:
    """Decode the subscription and the assignment of each member, which Kafka can do for consumers."""
    for member in content.get("members") or ():
        for field, name in (("subscription", "Subscription"), ("assignment", "Assignment")):
            try:
                reader = Reader(base64.b64decode(member[field] or ""))
                message = definitions("client", release)[f"ConsumerProtocol{name}"]
                member[field] = read_message(reader, message, _version(reader, field))
            except (MessageError, KeyError):
                continue


_CONTROL: Final = {
    ControlRecordType.LEADER_CHANGE: ("LeaderChange:", "LeaderChangeMessage"),
    ControlRecordType.SNAPSHOT_HEADER: ("SnapshotHeader", "SnapshotHeaderRecord"),
    ControlRecordType.SNAPSHOT_FOOTER: ("SnapshotFooter", "SnapshotFooterRecord"),
    ControlRecordType.KRAFT_VERSION: ("KRaftVersion", "KRaftVersionRecord"),
    ControlRecordType.KRAFT_VOTERS: ("KRaftVoters", "VotersRecord"),
}
"""Label that precedes the content of a control record, and the message that its content is."""


def control_content(kind: ControlRecordType, record: Record, release: str) -> tuple[str, dict[str, Any]] | None:
    """Return label and fields of one of KRaft's control records; None if the release's dump shows only its name.

    Raises:
        InvalidArgumentError: the value is malformed.
    """
    dialect = dialect_of(release)
    if kind not in _CONTROL or kind.name_in(dialect) != kind.name:
        return None
    if kind is ControlRecordType.LEADER_CHANGE and not dialect.dumps_leader_changes:
        return None
    label, name = _CONTROL[kind]
    value = record.value or b""
    message = definitions("client", release)[name]
    version = int.from_bytes(value[:2], "big", signed=True)
    if not within(message["versions"], version):
        version = int(message["versions"].partition("-")[2] or message["versions"])
    try:
        return label, read_message(Reader(value), message, version)
    except MessageError as error:
        raise InvalidArgumentError(f"{name} at offset {record.offset}: {error}") from None


Decoder = Callable[[bytes], str]


def _number(code: str) -> Decoder:
    layout = struct.Struct(code)

    def decode(data: bytes) -> str:
        if len(data) < layout.size:
            raise InvalidArgumentError(f"expected a number of {layout.size} bytes, got {len(data)} bytes")
        return str(layout.unpack_from(data)[0])

    return decode


_DECODERS: Final[dict[str, Decoder]] = {
    "StringDecoder": java_text,
    "IntegerDecoder": _number(">i"),
    "LongDecoder": _number(">q"),
}
_PACKAGES: Final = ("kafka.serializer.", "org.apache.kafka.tools.api.", "")


def decoder(name: str) -> Decoder | None:
    """Return the decoder of a class name such as ``kafka.serializer.StringDecoder``, or None for others.

    ``DefaultDecoder`` is not among them: Kafka prints the address of an array for it.
    """
    for package in _PACKAGES:
        if name.startswith(package) and name.removeprefix(package) in _DECODERS:
            return _DECODERS[name.removeprefix(package)]
    return None


def decoder_names() -> list[str]:
    """Return the class names in the newest releases, for messages."""
    return [_PACKAGES[1] + name for name in _DECODERS]
