"""Batched execution by Kafka's classes of many releases, some steps after the references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.jvm.driver import driver_class
from conformance.implementations.jvm.step_batch import StepBatch
from conformance.implementations.jvm.virtual_machine import most_open_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.implementations.jvm.step_batch import Language

_SHARE: Final = 0.4
"""Share of this process's file descriptors for files to compare; Kafka's classes need the others."""


class JvmBatchGroup:
    """Group of implementations of one kind (see :class:`conformance.implementations.protocol.BatchGroup`).

    Args:
        language: The encoder of the steps.
        rules: The number of sets of rules; releases that share a reference have the same set.
        members: Implementations, each with a ``driver`` and the number of its set of rules.
    """

    def __init__(self, language: Language, rules: int, members: Sequence[tuple[Any, int]]) -> None:
        self._language = language
        self._rules = rules
        self._executors = driver_class("BatchExecutors")(rules, int(most_open_files() * _SHARE))
        for member, mine in members:
            self._executors.add(member.driver, mine)
        self.begin = self._executors.begin
        self.finish = self._executors.finish
        self.stopped_at = self._executors.stoppedAt
        self.resume = self._executors.resume
        self.performing = self._executors.executing

    def script(self) -> StepBatch:
        """Return a new batch; see the protocol."""
        return StepBatch(self._rules, self._language)

    def start(self, script: StepBatch, *, alone: bool) -> None:
        """Start to execute a batch; see the protocol."""
        self._executors.start(bytes(script), script.steps, alone)
