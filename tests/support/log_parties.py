"""Parties of a log lockstep that are not what their release says: one held to another release, and a follower."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from conformance.operations.batches import Batch, encode, is_marker
from kidx.errors import KidxError
from kidx.log.leader import assign_offsets

if TYPE_CHECKING:
    from conformance.implementations.jvm.log import JvmLog
    from conformance.operations import Operation
    from conformance.operations.log import LogObservation


class HeldTo:
    """A release's own log, held to what another release does."""

    def __init__(self, log: JvmLog, release: str) -> None:
        self._log = log
        self.release = release

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class Follower(HeldTo):
    """A log that gets, as a follower, the very bytes that its leader of the same release has appended."""

    followers = None  # it does not perform what the others do

    def __init__(self, log: JvmLog) -> None:
        super().__init__(log, log.release)
        self._end = 0
        self._now: int | None = None

    def perform(self, operation: Operation) -> LogObservation:
        """What a leader appends arrives with its offsets, epoch and timestamps."""
        name, arguments = operation
        if name == "open_log":
            stamped = arguments[0].get("message.timestamp.type") == "LogAppendTime"
            self._now = arguments[4] if stamped else None
        elif name == "set_clock" and self._now is not None:
            self._now = arguments[0]
        observation = None
        if name == "append_as_leader":
            with contextlib.suppress(KidxError):  # what the leader refuses, nobody replicates
                observation = self._replicate(*arguments)
        if observation is None:
            observation = self._log.perform(operation)
        if observation.state is not None:
            self._end = observation.state.end_offset
        return observation

    def _replicate(self, batches: list[Batch], epoch: int) -> LogObservation:
        records = assign_offsets(
            encode(batches), self._end, epoch, log_append_time=self._now, from_client=not is_marker(batches)
        )
        return self._log.perform_bytes(records, epoch)
