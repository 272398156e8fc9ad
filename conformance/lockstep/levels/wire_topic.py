"""What is known of a topic on a broker that only its protocol is known of, and what a lockstep of it has seen."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.implementations.broker.producers import TopicProducers

if TYPE_CHECKING:
    from conformance.implementations.broker.reference import ReferencePartition
    from conformance.implementations.wire.account import Account
    from conformance.lockstep.divergence import Divergence
    from conformance.operations import Operation


class Difference(NamedTuple):
    """One thing that is wrong, as it was seen first.

    Attributes:
        divergence: as of any lockstep.
        shape: what it is known by, such as ``"list_offsets -3: a record -> nothing"``.
        operations: the steps of the topic, up to the one that shows it.
    """

    divergence: Divergence
    shape: str
    operations: tuple[Operation, ...]


@dataclass(slots=True)
class Statistics:
    """What a lockstep has done."""

    topics: int = 0
    left: int = 0
    """Topics that were left before their end, as their records differ."""
    steps: int = 0
    answers: int = 0
    fetches: int = 0
    acknowledged: int = 0
    expected: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    """Answers by what was asked for."""
    clauses: Counter[str] = field(default_factory=Counter)
    performed: set[str] = field(default_factory=set)
    """What shapes begin with: what was done or asked, under which circumstances, and what was rightly answered."""
    restarts: int = 0
    kills: int = 0
    unstamped: int = 0
    """Topics of LogAppendTime that were judged as CreateTime from their first batch on, which the broker left so."""
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each (clause, shape) was seen."""


@dataclass(slots=True)
class Topic:
    """One topic: its reference, its account, and everything that has been done to it."""

    name: str
    settings: dict[str, Any]
    reference: ReferencePartition
    account: Account
    operations: list[Operation] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    producers: TopicProducers = field(init=False)
    active: bool = True
    stopped: str = ""
    """How the broker was stopped last since the topic was made, as a circumstance; empty if it was not."""

    def __post_init__(self) -> None:
        self.producers = TopicProducers(self.name)

    @property
    def is_stamped(self) -> bool:
        """Whether the broker's clock gives the timestamps."""
        return bool(self.settings.get("message.timestamp.type") == "LogAppendTime")

    @property
    def circumstances(self) -> str:
        """What an answer may depend on: the broker's clock, deleted records, an open transaction."""
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
        """What the leader compresses with; None: as the producer did."""
        name = str(self.settings.get("compression.type", "producer"))
        return None if name == "producer" else "none" if name == "uncompressed" else name
