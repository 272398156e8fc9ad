"""State of a topic on a broker that is driven only by its protocol, and statistics of the lockstep."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.implementations.broker.producers import TopicProducers
from conformance.lockstep.divergence import DivergenceError, ServerStatistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.implementations.broker.reference import ReferencePartition
    from conformance.implementations.wire.partition_history import PartitionHistory
    from conformance.lockstep.divergence import Divergence
    from conformance.operations import Operation


STAMPED: Final = "LogAppendTime"


class Situation(NamedTuple):
    """Operation or request, such as ``list_offsets -3``, and the circumstances that its result may depend on.

    A circumstance is a state of the topic or the broker, such as ``deleted records`` or ``a restart``.
    """

    request: str
    circumstances: tuple[str, ...] = ()

    def __str__(self) -> str:
        suffixes = (" of LogAppendTime" if each == STAMPED else f", with {each}" for each in self.circumstances)
        return "".join((self.request, *suffixes))


class WireDivergenceError(DivergenceError):
    """First occurrence of a broker's divergence.

    Attributes:
        situation: The request or operation, and its circumstances.
        how: The difference between the results, such as ``"a record -> nothing"``.
    """

    def __init__(self, divergence: Divergence, operations: Sequence[Operation], situation: Situation, how: str) -> None:
        super().__init__(divergence, operations)
        self.situation = situation
        self.how = how

    @property
    def clause(self) -> str:
        """The id of the clause."""
        return self.divergence.clauses[0]

    @property
    def shape(self) -> str:
        """The signature, such as ``"list_offsets -3: a record -> nothing"``."""
        return f"{self.situation}: {self.how}"

    @property
    def key(self) -> tuple[str, str]:
        """The clause and the signature, which identify a unique divergence."""
        return self.clause, self.shape


@dataclass(slots=True)
class Statistics(ServerStatistics):
    """Statistics of a wire lockstep."""

    abandoned: int = 0
    """The number of topics that were abandoned because their records differ."""
    fetches: int = 0
    """The number of compared fetches."""
    late_fetches: int = 0
    """The number of fetches without records because remote storage took too long."""
    asked: Counter[str] = field(default_factory=Counter)
    """The number of results by target."""
    performed: set[str] = field(default_factory=set)
    """The beginnings of signatures: executed operations and requests with circumstances, and their right results."""
    without_log_append_time: int = 0
    """The number of topics with LogAppendTime that continued with CreateTime, because the broker used it."""
    occurrences: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The number of occurrences of each (clause, signature)."""


@dataclass(slots=True)
class Topic:
    """Topic with its reference and all its operations; it has one partition.

    ``account`` has the batches that the broker has appended to the partition, as responses to fetches returned them.
    ``active`` is False once the topic was abandoned: no more requests are sent.
    """

    name: str
    settings: dict[str, Any]
    reference: ReferencePartition
    account: PartitionHistory
    operations: list[Operation] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    producers: TopicProducers = field(init=False)
    active: bool = True
    stopped: tuple[str, ...] = ()
    """The kind of the last stop of the broker since the topic was created, as a circumstance; empty if none."""

    def __post_init__(self) -> None:
        self.producers = TopicProducers(self.name)

    @property
    def is_stamped(self) -> bool:
        """True if the topic has LogAppendTime."""
        return bool(self.settings.get("message.timestamp.type") == STAMPED)

    @property
    def is_tiered(self) -> bool:
        """True if the broker copies its segments to remote storage."""
        return str(self.settings.get("remote.storage.enable")).lower() == "true"

    @property
    def circumstances(self) -> tuple[str, ...]:
        """The circumstances that a result may depend on: LogAppendTime, deleted records, an open transaction."""
        where = [STAMPED] if self.is_stamped else []
        account = self.account
        if account.start:
            where += ["deleted records"] + ["all deleted"] * (account.start == account.end)
        if account.undecided:
            first = min(account.undecided.values())
            is_gone = any(b.base_offset == first and b.last_offset < account.start for b in account.batches)
            where += ["an open transaction"] + ["its begin deleted"] * is_gone
        return tuple(where)

    @property
    def codec(self) -> str | None:
        """The codec of the topic's setting; None if the leader keeps the producer's codec."""
        name = str(self.settings.get("compression.type", "producer"))
        return None if name == "producer" else "none" if name == "uncompressed" else name
