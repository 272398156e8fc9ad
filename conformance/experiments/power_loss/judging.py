"""Evaluation of power failures of one life: what had to be durable, and what the reopened log shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from conformance.experiments.power_loss.batches import Batch, batches_of_log
from conformance.experiments.power_loss.compaction import Keys, is_compacted
from conformance.experiments.power_loss.disk import disks
from conformance.experiments.power_loss.promises import Promise, broken
from conformance.implementations.jvm.journal import StepBegins

if TYPE_CHECKING:
    from conformance.experiments.power_loss.compaction import Expected
    from conformance.experiments.power_loss.failures import Failure
    from conformance.experiments.power_loss.lives import Life
    from conformance.experiments.power_loss.opening import Opener
    from conformance.experiments.power_loss.original import Original


class Judge:
    """Evaluator of a life's power failures.

    Args:
        life: the life.
        opener: opens the remaining files.
        original: the life without its planted defect, or None.
    """

    def __init__(self, life: Life, opener: Opener, original: Original | None = None) -> None:
        self.life = life
        self._original = original
        self._opener = opener
        self._logs = list(_logs(life))
        self._keys = Keys(life, self._logs) if is_compacted(life.operations[0].args[0]) else None

    @property
    def has_defect(self) -> bool:
        """True if a defect is planted in the life."""
        return self._original is not None

    def counts(self, failure: Failure) -> bool:
        """Return True if a failure is due to the planted defect, or if no defect is planted."""
        return self._without_defect(failure) != failure

    def _without_defect(self, failure: Failure) -> Failure | None:
        """Return the part of the failure that is possible without the defect; None if no defect is planted."""
        return None if self._original is None else self._original.nearest(failure, self.life.events)

    def durable(self, failure: Failure) -> list[Batch]:
        """Return the batches that must exist after a failure: all except those that an operation was removing."""
        moment = failure.moment
        start, bound = self._durable_offsets(failure)
        batches = self._logs[moment.step + 1] if moment.done else self._logs[moment.step]
        others = {batch.data for batch in self._logs[moment.step + 1]}
        return [b for b in batches if b.last < bound and b.base >= start and b.data in others]

    def expected(self, failure: Failure) -> list[Expected]:
        """Return the latest record that each key of a compacted log must have after a failure."""
        if self._keys is None:
            return []
        start, bound = self._durable_offsets(failure)
        found = self._keys.expected(failure.moment.step, bound, done=failure.moment.done)
        return [each for each in found if each.record.offset >= start]

    def _durable_offsets(self, failure: Failure) -> tuple[int, int]:
        """Return the first and the last offset, exclusive, of what must exist after a failure."""
        start, end = self._bounds(failure.moment.step, done=failure.moment.done)
        return start, end if failure.restart.clean else min(failure.restart.recovery_point, end)

    def _bounds(self, step: int, *, done: bool) -> tuple[int, int]:
        """Return log start and end over all states that a failure at a step may show."""
        seen = [each.state for each in self.life.observations[: step + 1]]
        states = [state for state in seen if state is not None][-1 if done else -2 :]
        if not states:
            return 0, 0
        return max(state.start_offset for state in states), min(state.end_offset for state in states)

    def judge(self, failure: Failure, *, lockstep: bool = False) -> dict[Promise | None, str]:
        """Return the evidence for each guarantee that a failure breaks, and for None the divergence of kidx.

        Args:
            failure: the failure.
            lockstep: True to open the remaining files with kidx too.
        """
        files, opening = failure.files(), failure.opening(self.life)
        cleaned_to = failure.restart.cleaned_to
        opened = self._opener.open_with_kafka(files, opening, cleaned_to)
        start, _ = self._bounds(failure.moment.step, done=failure.moment.done)
        found: dict[Promise | None, str] = {}
        for promise, text in broken(opened, self.durable(failure), start, self.expected(failure)):
            found.setdefault(promise, text)
        if lockstep and (difference := self._opener.difference(opened, files, opening, cleaned_to)):
            found[None] = difference
        return found

    def shows(self, failure: Failure, promise: Promise | None) -> str:
        """Return the evidence that a failure breaks a guarantee, or the divergence for None; may be empty."""
        sound = self._without_defect(failure)
        if sound == failure:
            return ""
        shown = self.judge(failure, lockstep=promise is None).get(promise, "")
        if shown and sound is not None and promise in self.judge(sound, lockstep=promise is None):
            return ""
        return shown


def _logs(life: Life) -> Iterator[list[Batch]]:
    """Yield the batches before the first operation, and after each."""
    begun = False
    live: dict[str, bytes] = {}
    for disk, event in zip(disks(life.events), life.events, strict=True):
        if isinstance(event, StepBegins):
            yield batches_of_log(live)
            begun = True
        live = disk.live()
    assert begun
    yield batches_of_log(live)
