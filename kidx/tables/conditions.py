"""What a query asks for, as far as it can be decided without reading records: the conditions that Spark pushes down.

Spark keeps every condition and checks it again on the rows, so that these here may let too much through, never too
little. A condition on ``timestamp`` is one on record times, which need not ascend: the time index says for certain how
far everything is older than its lower bound. Behind its upper bound older records can still come, so that only batches
whose header decides are left out there, unless ``timestampDisorderMs`` says how late they can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from kidx.records import TimestampType

if TYPE_CHECKING:
    from kidx.records import RecordBatch
    from kidx.tables.segments import TopicPartition

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class Conditions:
    """Bounds, each inclusive and None if there is none; times in milliseconds.

    Attributes:
        topics, partitions: the only ones that can have rows; None for any.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    least_offset: int | None = None
    largest_offset: int | None = None
    least_time: int | None = None
    largest_time: int | None = None

    def admits(self, key: TopicPartition) -> bool:
        """Whether a partition can have rows."""
        return (self.topics is None or key.topic in self.topics) and (
            self.partitions is None or key.partition in self.partitions
        )

    def admits_batch(self, batch: RecordBatch) -> bool:
        """Whether a batch of v2 can have rows, by its header."""
        if self.least_time is not None and batch.max_timestamp < self.least_time:
            return False
        if self.largest_time is None or batch.max_timestamp <= self.largest_time:
            return True
        # Of many records one can be older than the largest; stamped by the broker, or alone, none can.
        return not (batch.count == 1 or batch.timestamp_type is TimestampType.LOG_APPEND_TIME)

    def __and__(self, other: Conditions) -> Conditions:
        def sets(one: frozenset[Any] | None, two: frozenset[Any] | None) -> frozenset[Any] | None:
            return two if one is None else one if two is None else one & two

        def bound(pick: Callable[..., int], one: int | None, two: int | None) -> int | None:
            return two if one is None else one if two is None else pick(one, two)

        return Conditions(
            sets(self.topics, other.topics),
            sets(self.partitions, other.partitions),
            bound(max, self.least_offset, other.least_offset),
            bound(min, self.largest_offset, other.largest_offset),
            bound(max, self.least_time, other.least_time),
            bound(min, self.largest_time, other.largest_time),
        )


def conditions_of(filters: Iterable[Any], columns: Mapping[str, str]) -> Conditions:
    """What some of Spark's filters (``pyspark.sql.datasource.Filter``) say; those that say nothing here are left out.

    Args:
        filters: all of them hold.
        columns: which column is the ``topic``, ``partition``, ``offset`` and ``timestamp`` of this content.
    """
    result = Conditions()
    kinds = {column: kind for kind, column in columns.items()}
    for each in filters:
        path: tuple[str, ...] = getattr(each, "attribute", ())
        kind = kinds.get(".".join(path))
        if kind is not None:
            result &= _OF_KIND[kind](type(each).__name__, getattr(each, "value", None))
    return result


def _of_set(field: Literal["topics", "partitions"], kind: type) -> Callable[[str, Any], Conditions]:
    def of(name: str, value: Any) -> Conditions:
        values = value if name == "In" else (value,) if name in ("EqualTo", "EqualNullSafe") else None
        if values is None or not all(isinstance(each, kind) for each in values):
            return Conditions()
        found = frozenset(values)
        return Conditions(topics=found) if field == "topics" else Conditions(partitions=found)

    return of


def _of_range(name: str, value: Any) -> tuple[int | None, int | None]:
    """Smallest and largest integer that a filter lets through."""
    if name == "In" and value and all(isinstance(each, int) for each in value):
        return min(value), max(value)
    if not isinstance(value, int):
        return None, None
    return {
        "EqualTo": (value, value),
        "EqualNullSafe": (value, value),
        "GreaterThan": (value + 1, None),
        "GreaterThanOrEqual": (value, None),
        "LessThan": (None, value - 1),
        "LessThanOrEqual": (None, value),
    }.get(name, (None, None))


def _of_offset(name: str, value: Any) -> Conditions:
    least, largest = _of_range(name, value)
    return Conditions(least_offset=least, largest_offset=largest)


def _of_time(name: str, value: Any) -> Conditions:
    values = [_microseconds(each) for each in (value if name == "In" else (value,))]
    if not values or None in values:
        return Conditions()
    least, largest = _of_range(name, tuple(values) if name == "In" else values[0])
    rounded_up = None if least is None else -(-least // 1000)
    return Conditions(least_time=rounded_up, largest_time=None if largest is None else largest // 1000)


def _microseconds(value: Any) -> int | None:
    """A Spark timestamp as microseconds since the epoch; None for anything else, times without a zone included."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return (value - _EPOCH) // _MICROSECOND


_OF_KIND: Final[Mapping[str, Callable[[str, Any], Conditions]]] = {
    "topic": _of_set("topics", str),
    "partition": _of_set("partitions", int),
    "offset": _of_offset,
    "timestamp": _of_time,
}
