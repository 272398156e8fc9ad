"""Check of a log after a power failure: which batches must exist, and which guarantees the reopened log violates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from conformance.implementations.jvm.journal import StepBegins
from conformance.studies.power_loss.batches import Batch, batches_of_log
from conformance.studies.power_loss.compaction import Keys, is_compacted
from conformance.studies.power_loss.disk import disks
from conformance.studies.power_loss.guarantees import Guarantee, violations

if TYPE_CHECKING:
    from conformance.studies.power_loss.compaction import Expected
    from conformance.studies.power_loss.failures import Failure
    from conformance.studies.power_loss.histories import History
    from conformance.studies.power_loss.opening import Opener
    from conformance.studies.power_loss.original import Original


class Checker:
    """Checker of the power failures of one history.

    Args:
        history: operations, results and file operations of an example.
        opener: opens the remaining files with Kafka's classes.
        original: the same history without its planted defect; None if no defect is planted.
    """

    def __init__(self, history: History, opener: Opener, original: Original | None = None) -> None:
        self.history = history
        self._original = original
        self._opener = opener
        self._logs = list(_logs(history))
        self._keys = Keys(history, self._logs) if is_compacted(history.operations[0].args[0]) else None

    @property
    def has_defect(self) -> bool:
        """True if a defect is planted in the history."""
        return self._original is not None

    def counts(self, failure: Failure) -> bool:
        """Return True unless the same failure is possible without the planted defect."""
        return self._without_defect(failure) != failure

    def _without_defect(self, failure: Failure) -> Failure | None:
        """Return the part of the failure that is possible without the defect; None if no defect is planted."""
        return None if self._original is None else self._original.nearest(failure, self.history.events)

    def durable(self, failure: Failure) -> list[Batch]:
        """Return the batches that must exist after a failure: all except those that an operation was removing."""
        crash_point = failure.crash_point
        start, bound = self._durable_offsets(failure)
        batches = self._logs[crash_point.step + 1] if crash_point.done else self._logs[crash_point.step]
        others = {batch.data for batch in self._logs[crash_point.step + 1]}
        return [b for b in batches if b.last < bound and b.base >= start and b.data in others]

    def expected(self, failure: Failure) -> list[Expected]:
        """Return the latest record that each key of a compacted log must have after a failure."""
        if self._keys is None:
            return []
        start, bound = self._durable_offsets(failure)
        found = self._keys.expected(failure.crash_point.step, bound, done=failure.crash_point.done)
        return [each for each in found if each.record.offset >= start]

    def _durable_offsets(self, failure: Failure) -> tuple[int, int]:
        """Return the first and the last offset, exclusive, of what must exist after a failure."""
        start, end = self._bounds(failure.crash_point.step, done=failure.crash_point.done)
        return start, end if failure.restart.clean else min(failure.restart.recovery_point, end)

    def _bounds(self, step: int, *, done: bool) -> tuple[int, int]:
        """Return log start and end over all states that a failure at a step may show."""
        seen = [each.state for each in self.history.observations[: step + 1]]
        states = [state for state in seen if state is not None][-1 if done else -2 :]
        if not states:
            return 0, 0
        return max(state.start_offset for state in states), min(state.end_offset for state in states)

    def check(self, failure: Failure, *, lockstep: bool = False) -> dict[Guarantee | None, str]:
        """Return the evidence for each guarantee that a failure violates, and for None the divergence of kidx.

        Args:
            failure: the failure.
            lockstep: True to open the remaining files with kidx too.
        """
        files, opening = failure.files(), failure.opening(self.history)
        cleaned_to = failure.restart.cleaned_to
        opened = self._opener.open_with_kafka(files, opening, cleaned_to)
        start, _ = self._bounds(failure.crash_point.step, done=failure.crash_point.done)
        found: dict[Guarantee | None, str] = {}
        for guarantee, text in violations(opened, self.durable(failure), start, self.expected(failure)):
            found.setdefault(guarantee, text)
        if lockstep and (difference := self._opener.difference(opened, files, opening, cleaned_to)):
            found[None] = difference
        return found

    def shows(self, failure: Failure, guarantee: Guarantee | None) -> str:
        """Return the evidence that a failure violates a guarantee, or the divergence for None; empty if it does not."""
        sound = self._without_defect(failure)
        if sound == failure:
            return ""
        shown = self.check(failure, lockstep=guarantee is None).get(guarantee, "")
        if shown and sound is not None and guarantee in self.check(sound, lockstep=guarantee is None):
            return ""
        return shown


def _logs(history: History) -> Iterator[list[Batch]]:
    """Yield the batches before the first operation, and after each."""
    begun = False
    live: dict[str, bytes] = {}
    for disk, event in zip(disks(history.events), history.events, strict=True):
        if isinstance(event, StepBegins):
            yield batches_of_log(live)
            begun = True
        live = disk.live()
    assert begun
    yield batches_of_log(live)
