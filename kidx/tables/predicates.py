"""Predicates that Spark pushes down, as far as they can be decided without reading records.

Spark keeps every predicate and evaluates it again on the rows. The predicates here may therefore accept too much, but
never too little. A predicate on ``timestamp`` restricts record times, which need not ascend. With LogAppendTime the
largest timestamp in a batch's header is the time of every record, by definition. With CreateTime it only describes
them. A broker of Kafka sets it, but nothing in a log shows that one did: other brokers and mirrors write -1 or what a
client sent, and the time index is made of it. So these records are read once, and their times are kept
(:mod:`kidx.tables.record_times`), unless ``timestampDisorderMs`` is given.
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

HEADER_HAS_TIMES: Final = 2
"""The oldest format of a batch whose header has the times of all its records, with LogAppendTime."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class Predicates:
    """Bounds of a query, each inclusive and None if open; times in milliseconds.

    Attributes:
        topics, partitions: the topics and partitions that can have rows; None for all.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    min_offset: int | None = None
    max_offset: int | None = None
    min_time: int | None = None
    max_time: int | None = None

    def admits(self, key: TopicPartition) -> bool:
        """Return True if a partition can have rows."""
        return (self.topics is None or key.topic in self.topics) and (
            self.partitions is None or key.partition in self.partitions
        )

    @property
    def restricts_times(self) -> bool:
        """True if times are bounded."""
        return self.min_time is not None or self.max_time is not None

    def admits_batch(self, batch: RecordBatch) -> bool:
        """Return True if a batch can have rows, by its header; exact only for v2 batches with LogAppendTime."""
        if batch.magic < HEADER_HAS_TIMES or batch.timestamp_type is not TimestampType.LOG_APPEND_TIME:
            return True
        too_old = self.min_time is not None and batch.max_timestamp < self.min_time
        return not too_old and (self.max_time is None or batch.max_timestamp <= self.max_time)

    def __and__(self, other: Predicates) -> Predicates:
        def sets(one: frozenset[Any] | None, two: frozenset[Any] | None) -> frozenset[Any] | None:
            return two if one is None else one if two is None else one & two

        def bound(pick: Callable[..., int], one: int | None, two: int | None) -> int | None:
            return two if one is None else one if two is None else pick(one, two)

        return Predicates(
            sets(self.topics, other.topics),
            sets(self.partitions, other.partitions),
            bound(max, self.min_offset, other.min_offset),
            bound(min, self.max_offset, other.max_offset),
            bound(max, self.min_time, other.min_time),
            bound(min, self.max_time, other.max_time),
        )


def predicates_of(filters: Iterable[Any], columns: Mapping[str, str]) -> Predicates:
    """Translate Spark's filters (``pyspark.sql.datasource.Filter``) to bounds; other filters are ignored.

    Args:
        filters: the filters, all of which must hold.
        columns: the name of the column that is ``topic``, ``partition``, ``offset`` and ``timestamp`` in this content.
    """
    result = Predicates()
    kinds = {column: kind for kind, column in columns.items()}
    for each in filters:
        path: tuple[str, ...] = getattr(each, "attribute", ())
        kind = kinds.get(".".join(path))
        if kind is not None:
            result &= _OF_KIND[kind](type(each).__name__, getattr(each, "value", None))
    return result


def pushed(filters: Iterable[Any], columns: Mapping[str, str]) -> list[str]:
    """Return the filters that :func:`predicates_of` uses, as text such as ``offset > 20``."""
    return [
        f"{'.'.join(each.attribute)} {_SIGNS.get(type(each).__name__, '=')} {each.value}"
        for each in filters
        if predicates_of([each], columns) != Predicates()
    ]


def _of_set(field: Literal["topics", "partitions"], kind: type) -> Callable[[str, Any], Predicates]:
    def of(name: str, value: Any) -> Predicates:
        values = value if name == "In" else (value,) if name in ("EqualTo", "EqualNullSafe") else None
        if values is None or not all(isinstance(each, kind) for each in values):
            return Predicates()
        found = frozenset(values)
        return Predicates(topics=found) if field == "topics" else Predicates(partitions=found)

    return of


def _of_range(name: str, value: Any) -> tuple[int | None, int | None]:
    """Return the smallest and the largest integer that a filter accepts."""
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


def _of_offset(name: str, value: Any) -> Predicates:
    least, largest = _of_range(name, value)
    return Predicates(min_offset=least, max_offset=largest)


def _of_time(name: str, value: Any) -> Predicates:
    values = [_microseconds(each) for each in (value if name == "In" else (value,))]
    if not values or None in values:
        return Predicates()
    least, largest = _of_range(name, tuple(values) if name == "In" else values[0])
    rounded_up = None if least is None else -(-least // 1000)
    return Predicates(min_time=rounded_up, max_time=None if largest is None else largest // 1000)


def _microseconds(value: Any) -> int | None:
    """Convert a Spark timestamp to microseconds since the epoch; None for another value, or a time without a zone."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return (value - _EPOCH) // _MICROSECOND


_SIGNS: Final = {"GreaterThan": ">", "GreaterThanOrEqual": ">=", "LessThan": "<", "LessThanOrEqual": "<=", "In": "in"}
_OF_KIND: Final[Mapping[str, Callable[[str, Any], Predicates]]] = {
    "topic": _of_set("topics", str),
    "partition": _of_set("partitions", int),
    "offset": _of_offset,
    "timestamp": _of_time,
}
