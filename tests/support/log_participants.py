"""Participants of a log lockstep that are compared with another release, or act as followers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from conformance.implementations.kidx.log import reported
from conformance.operations import Outcome
from conformance.operations.batches import Batch, encode, is_marker
from conformance.operations.log import UNLIMITED
from kidx.dialect import dialect_of
from kidx.errors import KidxError
from kidx.log import LogConfig
from kidx.log.results import append_result
from kidx.log.validation import ValidationContext, checked_batches, validate
from kidx.records.record import NO_TIMESTAMP
from kidx.segment import follower_append_info

if TYPE_CHECKING:
    from conformance.implementations.jvm.log import JvmLog
    from conformance.operations import Operation
    from conformance.operations.log import LogObservation


class CheckedAgainst:
    """Log of one release that is compared with the reference of another release."""

    def __init__(self, log: JvmLog, release: str) -> None:
        self._log = log
        self.release = release

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class Follower(CheckedAgainst):
    """Log that appends, as a follower, the batches that its leader of the same release has appended."""

    batch_group = None  # it does not execute the others' operations

    def __init__(self, log: JvmLog) -> None:
        super().__init__(log, log.release)
        self._end = 0
        self._now = 0
        self._config = LogConfig()

    def perform(self, operation: Operation) -> LogObservation:
        """Append as a follower: the leader's batches have offsets, epoch and timestamps. Return the leader's result."""
        name, arguments = operation
        if name == "open_log":
            self._config = LogConfig.of_topic(UNLIMITED | arguments[0])
            self._now = arguments[4]
        elif name == "set_clock":
            self._now = arguments[0]
        observation = None
        if name == "append_as_leader":
            with contextlib.suppress(KidxError):  # a follower replicates nothing that the leader rejects
                observation = self._replicate(*arguments)
        if observation is None:
            observation = self._log.perform(operation)
        if observation.state is not None:
            self._end = observation.state.end_offset
        return observation

    def _replicate(self, batches: list[Batch], epoch: int) -> LogObservation:
        from_client, name = not is_marker(batches), "t-0"
        checked = checked_batches(
            encode(batches), name, self._config.largest_message(dialect_of(self.release)), from_client=from_client
        )
        context = ValidationContext(dialect_of(self.release), self._config, self._end, epoch, self._now, from_client)
        records = validate(checked, context).records
        time = NO_TIMESTAMP if context.log_append_time is None else context.log_append_time
        observation = self._log.perform_bytes(records, epoch)
        if observation.outcome.error is not None:
            return observation
        info, start = follower_append_info(records), observation.state.start_offset
        result = append_result(checked, info, first=self._end, start=start, log_append_time=time)
        return observation._replace(outcome=Outcome(None, reported(result, context.dialect)))
