"""State of a topic on a broker that is tested by its protocol alone, and statistics of its lockstep."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.implementations.broker.producers import TopicProducers

if TYPE_CHECKING:
    from conformance.implementations.broker.reference import ReferencePartition
    from conformance.implementations.wire.partition_history import PartitionHistory
    from conformance.lockstep.divergence import Divergence
    from conformance.operations import Operation


class WireDivergence(NamedTuple):
    """Divergence of a broker, as it occurred first.

    Attributes:
        divergence: The divergence, as in any lockstep.
        shape: The signature, such as ``"list_offsets -3: a record -> nothing"``.
        operations: The steps of the topic, up to the step that diverged.
    """

    divergence: Divergence
    shape: str
    operations: tuple[Operation, ...]


@dataclass(slots=True)
class Statistics:
    """Statistics of a lockstep."""

    topics: int = 0
    abandoned: int = 0
    """The number of topics that were abandoned because their records differ."""
    steps: int = 0
    answers: int = 0
    fetches: int = 0
    acknowledged: int = 0
    expected: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    """The number of results by target."""
    clauses: Counter[str] = field(default_factory=Counter)
    performed: set[str] = field(default_factory=set)
    """The begins of signatures: operations and requests with their circumstances, and their right results."""
    restarts: int = 0
    kills: int = 0
    without_log_append_time: int = 0
    """The number of topics of LogAppendTime that continued with CreateTime, which the broker used."""
    occurrences: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The number of occurrences of each (clause, signature)."""


@dataclass(slots=True)
class Topic:
    """Topic with its reference, its partition history, and all its operations."""

    name: str
    settings: dict[str, Any]
    reference: ReferencePartition
    account: PartitionHistory
    operations: list[Operation] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    producers: TopicProducers = field(init=False)
    active: bool = True
    stopped: str = ""
    """The kind of the last stop of the broker since the topic was created, as a circumstance; empty if none."""

    def __post_init__(self) -> None:
        self.producers = TopicProducers(self.name)

    @property
    def is_stamped(self) -> bool:
        """True if the topic has LogAppendTime."""
        return bool(self.settings.get("message.timestamp.type") == "LogAppendTime")

    @property
    def is_tiered(self) -> bool:
        """True if the broker copies its segments to remote storage."""
        return str(self.settings.get("remote.storage.enable")).lower() == "true"

    @property
    def circumstances(self) -> str:
        """The circumstances that a result may depend on: LogAppendTime, deleted records, an open transaction."""
        where = " of LogAppendTime" if self.is_stamped else ""
        account = self.account
        if account.start:
            where += ", with deleted records" + (", with all deleted" if account.start == account.end else "")
        if account.undecided:
            first = min(account.undecided.values())
            is_gone = any(b.base_offset == first and b.last_offset < account.start for b in account.batches)
            where += ", with an open transaction" + (", with its begin deleted" if is_gone else "")
        return where

    @property
    def codec(self) -> str | None:
        """The codec of the leader; None if it keeps the producer's codec."""
        name = str(self.settings.get("compression.type", "producer"))
        return None if name == "producer" else "none" if name == "uncompressed" else name
