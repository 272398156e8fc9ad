"""Texts of the records of ``__remote_log_metadata`` in a dump: Kafka's objects as Java prints them."""

from __future__ import annotations

import base64
from typing import Any, Final

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
