"""Records of internal topics, which a broker writes for its own use, as a release's dump shows them."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kidx.dialect import dialect_of
from kidx.dump.older_texts import STATES, formatted_group_record, formatted_transaction
from kidx.dump.remote_texts import remote_text
from kidx.errors import InvalidArgumentError
from kidx.messages.framed import framed_message
from kidx.messages.reading import MessageError, Reader, definitions, jackson_text, read_message, within
from kidx.records import ControlRecordType

if TYPE_CHECKING:
    from kidx.messages.reading import Message
    from kidx.records import Record

Parser = Callable[["Record"], tuple[str | None, str | None]]
"""Function that returns key and value of a record as text; None for a part that is not shown."""

DECODERS: Final = ("offsets", "transaction-log", "cluster-metadata", "remote-log-metadata")
"""Topics that can be shown, by the names in the options of Kafka's tool."""

_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def parser_of(decoder: str, release: str) -> Parser:
    """Return the parser for the records of a topic.

    Args:
        decoder: one of :data:`DECODERS`.
        release: the Kafka release.
    """
    if decoder == "cluster-metadata":
        return partial(_metadata, release)
    if decoder == "remote-log-metadata":
        return partial(_remote, release)
    transactions = decoder == "transaction-log"
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
            return shown, "<DELETE>"
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
