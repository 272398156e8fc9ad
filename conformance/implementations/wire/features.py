"""Features of a broker (``wire:``) that a run can skip."""

from __future__ import annotations

from typing import Final

NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "delete-records": ("DeleteRecords",),
    "transactions": ("FindCoordinator", "InitProducerId", "AddPartitionsToTxn", "EndTxn"),
    "restarts": (),
    "topic-requests": ("CreateTopics", "DeleteTopics"),
    "timestamps": (),
}
"""Features that a run can skip, with the APIs that they need.

Without topic-requests, topics are created by metadata requests, without topic configurations, and are not deleted.
Without timestamps, no record is looked up by timestamp.
"""
