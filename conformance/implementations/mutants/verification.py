"""Defects of how transactions are verified before they begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.implementations.mutants.producers import Infos
from conformance.implementations.mutants.registry import defect
from kidx.producers import ProducerAppendInfo, ProducerStateManager, VerificationStateEntry

if TYPE_CHECKING:
    from kidx.records import RecordBatch


@defect("LG-45a")
class GuardsOutliveTransactions(ProducerStateManager):
    """A guard counts for the next transaction too."""

    def end_verification(self, batch: RecordBatch) -> None:
        pass


@defect("LG-45a")
class OpenInAnyEpoch(ProducerStateManager):
    """A transaction of another epoch counts as open."""

    def has_ongoing(self, producer_id: int, epoch: int) -> bool:
        entry = self.producers.get(producer_id)
        return entry is not None and super().has_ongoing(producer_id, entry.producer_epoch)


@defect("LG-45b")
class TheFirstSequenceCounts(ProducerStateManager):
    """A smaller sequence number of a later verification is not stored."""

    def verify(
        self, producer_id: int, sequence: int, epoch: int, now: int, *, raises_epochs: bool
    ) -> VerificationStateEntry:
        known = self.verifications.get(producer_id)
        return known or super().verify(producer_id, sequence, epoch, now, raises_epochs=raises_epochs)


class _Unverified(ProducerAppendInfo):
    def _check_verified(self, sequence: int, where: str) -> None:
        pass


@defect("LG-45b")
class SequencesAreNotVerified(Infos):
    """A batch may begin above the verified sequence number."""

    info = _Unverified


class _OfVersionOne(ProducerAppendInfo):
    def _ends_its_epoch(self, epoch: int, offset: int) -> bool:
        return False


@defect("LG-45d")
class MarkersOfTheSameEpoch(Infos):
    """A marker of the second version may be of its transaction's epoch."""

    info = _OfVersionOne
