"""What of a broker behind ``wire:`` a run can leave out."""

from __future__ import annotations

from typing import Final

NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "delete-records": ("DeleteRecords",),
    "transactions": ("FindCoordinator", "InitProducerId", "AddPartitionsToTxn", "EndTxn"),
    "restarts": (),
    "topic-requests": ("CreateTopics", "DeleteTopics"),
    "timestamps": (),
}
"""What can be left out of a run, and the APIs that it needs.

Without topic-requests, topics are made by asking for them, without settings, and stay; without timestamps, no record is
looked up by time.
"""
