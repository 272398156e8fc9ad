"""Signatures of power failures: those with one cause violate the same guarantee and lose the same kinds of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from conformance.operations.shortened import shortened
from conformance.studies.power_loss.disk import Disk, Item, Length, Name, Page
from conformance.studies.power_loss.failures import MARKER, Failure
from conformance.studies.power_loss.histories import History

if TYPE_CHECKING:
    from conformance.implementations.jvm.journal import Event
    from conformance.operations import Operation
    from conformance.studies.power_loss.guarantees import Guarantee


class Signature(NamedTuple):
    """Common properties of failures with the same cause.

    Attributes:
        guarantee: violated guarantee; None for a divergence between kidx and Kafka's classes.
        clean: True if the broker finds that it was shut down cleanly.
        lost: kinds of items that must be lost.
        during: the interrupted operation, if nothing has to be lost.
    """

    guarantee: Guarantee | None
    clean: bool
    lost: frozenset[str]
    during: str = ""

    def explains(self, other: Signature) -> bool:
        """Return True if a failure with the other signature, not shrunk yet, may have the same cause."""
        if self[:2] != other[:2] or not self.lost <= other.lost:
            return False
        return bool(self.lost) or self.during == other.during

    def __str__(self) -> str:
        how = "after a clean shutdown" if self.clean else "after an unclean shutdown"
        lost = ", ".join(sorted(self.lost)) or f"nothing, {self.during} interrupted"
        return f"{self.guarantee or 'kidx diverges'} {how}; lost: {lost}"


class RecordedHistory(Protocol):
    """Recorded history of a log, a segment or a cache."""

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Operations in their order."""

    @property
    def events(self) -> tuple[Event, ...]:
        """Writes, renames and syncs of files by Kafka's classes during the operations."""


HistoryType = TypeVar("HistoryType", bound=RecordedHistory)


@dataclass
class Finding(Generic[HistoryType]):
    """Violation of a guarantee after a power failure, or a divergence of kidx.

    Attributes:
        signature: signature of all failures with the same cause.
        failure: the power failure with the fewest lost writes.
        text: evidence.
        times: number of occurrences.
    """

    signature: Signature
    history: HistoryType
    failure: Failure
    text: str
    times: int = 1

    def lines(self) -> list[str]:
        """Return the lines of a report: evidence, operations, losses, and the restart of a log."""
        crash_point, restart, is_log = self.failure.crash_point, self.failure.restart, isinstance(self.history, History)
        operations = self.history.operations[: None if is_log else crash_point.step + 1]
        writes = f"; {crash_point.disk.event} writes, renames and syncs" if is_log else ""
        start = f"start        clean={restart.clean}, recovery point {restart.recovery_point}, start {restart.start}"
        cleaned = f", cleaned up to {restart.cleaned_to}" if restart.cleaned_to >= 0 else ""
        return [
            f"shows        {self.text}",
            "steps",
            *(f"{number:>5}  {shortened(step)}" for number, step in enumerate(operations, start=1)),
            f"power fails  {'after' if crash_point.done else 'during'} step {crash_point.step + 1}{writes}",
            *(f"lost         {lost}" for lost in self.failure.described()),
            *([f"{start}{cleaned}"] if is_log else []),
        ]


def kind_of(disk: Disk, item: Item) -> str:
    """Return the kind of a lost item."""
    match item:
        case Page(file, _):
            return f"content of {_suffix(disk.name_of(file))}"
        case Length(file):
            return f"length of {_suffix(disk.name_of(file))}"
        case Name(number):
            old, new, _ = disk.changes[number]
            if not old:
                return f"creation of {_suffix(new)}"
            return f"rename to {_suffix(new)}" if new else f"removal of {_suffix(old)}"


def _suffix(name: str) -> str:
    return name[name.index(".") :] if name[:1].isdigit() and "." in name else name


def during_of(history: RecordedHistory, failure: Failure) -> str:
    """Return the operation that was interrupted, or that had ended last."""
    name = history.operations[failure.crash_point.step].name
    return f"after {name}" if failure.crash_point.done else name


def signature_of(history: RecordedHistory, failure: Failure, guarantee: Guarantee | None) -> Signature:
    """Return the signature of a failure."""
    lost = frozenset(kind_of(failure.crash_point.disk, item) for item in failure.loss)
    if failure.restart.marker_is_back:
        lost |= {f"removal of {MARKER}"}
    return Signature(guarantee, failure.restart.clean, lost, during_of(history, failure))
