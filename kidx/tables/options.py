"""What ``spark.read.format("kafka_segments")`` can be told: Spark's Kafka options where they mean the same, and more.

=================================== ====================================================================================
option                              meaning
=================================== ====================================================================================
``content``                         which table; ``records`` if not given (:mod:`kidx.tables.contents`)
``path``                            what ``load`` is given; several as a JSON array
``subscribe``                       topics, separated by commas; all that are there if none of these three is given
``subscribePattern``                a regular expression of Java's that some part of a topic's name matches
``assign``                          JSON, ``{"topic": [0, 1]}``
``startingTimestamp``               milliseconds; goes before the two below
``startingOffsetsByTimestamp``      JSON, ``{"topic": {"0": 1700000000000}}``; goes before the one below
``startingOffsets``                 ``earliest``, or JSON, ``{"topic": {"0": 23, "1": -2}}`` (-2: earliest)
``endingTimestamp``                 likewise, exclusive: ends before the first record with that time or a later one
``endingOffsetsByTimestamp``        likewise
``endingOffsets``                   ``latest``, or JSON with -1 for latest
``startingOffsetsByTimestampStrategy`` ``error`` or ``latest``: when no record has the time that was asked for
``includeHeaders``                  add the column ``headers``
``failOnDataLoss``                  fail at a damaged segment or a missing offset (default), or read what can be read
``minPartitions``                   tasks at least
``isolationLevel``                  ``read_uncommitted`` or ``read_committed``; also as ``kafka.isolation.level``
``checkCrcs``                       ``false`` trusts every byte; also as ``kafka.check.crcs``
``maxPartitionBytes``               bytes of logs that a task reads at most, where the offset index lets it be split
``useIndexes``                      ``false`` reads everything, to look at logs whose indexes are not to be trusted
``timestampDisorderMs``             how much older than one before it a record can be: lets an upper bound on
                                    ``timestamp`` end the reading; without it only what is certain is left out
``replicas``                        ``one`` (the longest of each partition) or ``all``
``metrics``                         directory to leave counts of bytes in (:mod:`kidx.spark.metrics`)
``storageOptions``                  JSON, for fsspec
=================================== ====================================================================================

Options that begin with ``kafka.``, and what else Spark's Kafka source needs for a connection, are taken and not used,
so that a query written for one runs on the other. A JSON table of offsets
has to name every partition, as there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from kidx.errors import ToolError
from kidx.tables.contents import CONTENTS
from kidx.tables.patterns import check, matches
from kidx.tables.segments import TopicPartition
from kidx.tables.storage import Store

EARLIEST: Final = -2
LATEST: Final = -1
DEFAULT_PARTITION_BYTES: Final = 128 << 20
"""As ``spark.sql.files.maxPartitionBytes``."""

Isolation = Literal["read_uncommitted", "read_committed"]
OffsetBound = Mapping[TopicPartition, int] | int
"""Offsets (or times) of every partition, or one for all."""

# fmt: off
OF_ANY_CONTENT: Final = frozenset({
    "content", "path", "paths", "subscribe", "subscribePattern", "assign", "failOnDataLoss", "minPartitions",
    "maxPartitionBytes", "replicas", "metrics", "storageOptions",
})
OF_BATCHES: Final = frozenset({
    "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets", "endingTimestamp",
    "endingOffsetsByTimestamp", "endingOffsets", "startingOffsetsByTimestampStrategy", "checkCrcs", "useIndexes",
    "timestampDisorderMs",
})
OF_RECORDS: Final = frozenset({"includeHeaders", "isolationLevel"})
OF_A_CONNECTION: Final = frozenset({
    "groupIdPrefix", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "kafkaConsumer.pollTimeoutMs",
    "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "maxRecordsPerPartition",
    "useDeprecatedOffsetFetching",
})
# fmt: on
"""Taken and not used."""


@dataclass(frozen=True)
class Bound:
    """Where to start or end: by offsets, or by times."""

    by_time: bool
    value: OffsetBound

    def of(self, key: TopicPartition) -> int:
        """The offset or time of a partition."""
        return self.value if isinstance(self.value, int) else self.value[key]


@dataclass(frozen=True)
class ReadOptions:
    """The options, read and checked; what each means is in the module's table.

    Attributes:
        topics: wanted topics; None for no such option.
        pattern: that some part of a topic's name matches; None likewise.
        assigned: wanted partitions; None likewise.
        start, end: the range of offsets.
        latest_if_no_match: ``startingOffsetsByTimestampStrategy`` is ``latest``.
    """

    content: str
    stores: tuple[Store, ...]
    topics: frozenset[str] | None
    pattern: str | None
    assigned: frozenset[TopicPartition] | None
    start: Bound
    end: Bound
    latest_if_no_match: bool
    include_headers: bool
    fail_on_data_loss: bool
    min_partitions: int | None
    isolation: Isolation
    check_crcs: bool
    max_partition_bytes: int
    use_indexes: bool
    disorder: int | None
    all_replicas: bool
    metrics: str | None

    def wants(self, key: TopicPartition) -> bool:
        """Whether a partition was asked for."""
        if self.topics is not None:
            return key.topic in self.topics
        if self.pattern is not None:
            return matches(self.pattern, key.topic)
        return self.assigned is None or key in self.assigned


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """The options of a query.

    Args:
        given: names, in any case, and values.

    Raises:
        ToolError: an option or a value is wrong; the message says what there is.
    """
    values = _Values(given)
    content = values.one_of("content", tuple(CONTENTS), "records")
    values.refuse_unknown(content)
    by_kind = [name for name in ("subscribe", "subscribePattern", "assign") if name in values]
    if len(by_kind) > 1:
        raise ToolError(f"only one of subscribe, subscribePattern and assign can be given, not {' and '.join(by_kind)}")
    topics = values.get("subscribe")
    names = None if topics is None else frozenset(filter(None, (name.strip() for name in topics.split(","))))
    if names is not None and not names:
        raise ToolError("subscribe names no topic")
    pattern = values.get("subscribePattern")
    if pattern is not None:
        check(pattern)
    isolation = values.one_of(
        "isolationLevel",
        ("read_uncommitted", "read_committed"),
        values.get("kafka.isolation.level") or "read_uncommitted",
    )
    crcs = values.flag("checkCrcs", default=values.flag("kafka.check.crcs", default=True))
    values.one_of("startingOffsetsByTimestampStrategy", ("error", "latest"), "error")
    return ReadOptions(
        content=content,
        stores=_stores(values),
        topics=names,
        pattern=pattern,
        assigned=_assigned(values.get("assign")),
        start=_bound(values, "starting", EARLIEST),
        end=_bound(values, "ending", LATEST),
        latest_if_no_match=values.one_of("startingOffsetsByTimestampStrategy", ("error", "latest"), "error")
        == "latest",
        include_headers=values.flag("includeHeaders", default=False),
        fail_on_data_loss=values.flag("failOnDataLoss", default=True),
        min_partitions=values.number("minPartitions", least=1),
        isolation=isolation,  # type: ignore[arg-type]
        check_crcs=crcs,
        max_partition_bytes=values.number("maxPartitionBytes", least=1) or DEFAULT_PARTITION_BYTES,
        use_indexes=values.flag("useIndexes", default=True),
        disorder=values.number("timestampDisorderMs", least=0),
        all_replicas=values.one_of("replicas", ("one", "all"), "one") == "all",
        metrics=values.get("metrics"),
    )


class _Values:
    """Options by name, whatever the case."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): (name, value) for name, value in given.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._given

    def get(self, name: str) -> str | None:
        """The value of an option, None if it is not given."""
        found = self._given.get(name.lower())
        return None if found is None else found[1]

    def refuse_unknown(self, content: str) -> None:
        """Raises ToolError for an option that there is not, or not for this content."""
        allowed = OF_ANY_CONTENT | (OF_BATCHES if content in ("records", "batches") else frozenset())
        allowed |= OF_RECORDS if content == "records" else frozenset()
        allowed_in_lower_case = {name.lower() for name in allowed | OF_A_CONNECTION}
        known = {name.lower() for name in OF_BATCHES | OF_RECORDS}
        for key, (name, _) in self._given.items():
            if key in allowed_in_lower_case or key.startswith("kafka."):
                continue
            if key in known:
                raise ToolError(f"the option {name} does not go with content={content}")
            there_are = ", ".join(sorted(allowed - {"paths"}, key=str.lower))
            raise ToolError(f"kafka_segments has no option {name!r}; there are {there_are}")

    def one_of(self, name: str, choices: tuple[str, ...], default: str) -> str:
        """One of some words, in any case."""
        value = (self.get(name) or default).lower()
        if value not in choices:
            raise ToolError(f"{name} is {value!r}; there are {', '.join(choices)}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """``true`` or ``false``."""
        return self.one_of(name, ("true", "false"), str(default).lower()) == "true"

    def number(self, name: str, *, least: int) -> int | None:
        """An integer; None if it is not given."""
        text = self.get(name)
        if text is None:
            return None
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise ToolError(f"{name} is {text!r}, not an integer of at least {least}")
        return number

    def json(self, name: str, form: str) -> Any:
        """A JSON value; None if it is not given."""
        text = self.get(name)
        if text is None:
            return None
        try:
            return json.loads(text)
        except ValueError:
            raise ToolError(f"{name} is not {form}: {text!r}") from None


def _stores(values: _Values) -> tuple[Store, ...]:
    paths = values.json("paths", "a JSON array of paths") or []  # load() of several gives this
    if (path := values.get("path")) is not None:
        listed = None
        if path.startswith("["):
            listed = values.json("path", "a JSON array of paths")
        paths = [*paths, *(listed if isinstance(listed, list) else [path])]
    if not paths:
        raise ToolError("kafka_segments needs a path: load(PATH)")
    options = values.json("storageOptions", "a JSON object") or {}
    if not isinstance(options, dict):
        raise ToolError("storageOptions is not a JSON object")
    return tuple(Store(str(path), options) for path in paths)


def _assigned(text: str | None) -> frozenset[TopicPartition] | None:
    if text is None:
        return None
    form = '{"topicA": [0, 1], "topicB": [2]}'
    try:
        table = json.loads(text)
        return frozenset(
            TopicPartition(topic, _integer(number)) for topic, numbers in table.items() for number in numbers
        )
    except (ValueError, TypeError, AttributeError):
        raise ToolError(f"assign is not JSON such as {form}: {text!r}") from None


def _bound(values: _Values, side: str, default: int) -> Bound:
    """The first of three options, in Spark's order: one time, a table of times, offsets."""
    if (text := values.get(f"{side}Timestamp")) is not None:
        try:
            return Bound(by_time=True, value=int(text))
        except ValueError:
            raise ToolError(f"{side}Timestamp is {text!r}, not a time in milliseconds") from None
    name = f"{side}OffsetsByTimestamp"
    if (text := values.get(name)) is not None:
        return Bound(by_time=True, value=_table(name, text, "1700000000000", lambda time: time >= 0))
    name = f"{side}Offsets"
    text = values.get(name)
    word, forbidden = ("earliest", LATEST) if side == "starting" else ("latest", EARLIEST)
    if text is None or text.strip().lower() == word:
        return Bound(by_time=False, value=default)
    if text.strip().lower() in ("earliest", "latest"):
        raise ToolError(f"{name} cannot be {text.strip().lower()} in a batch query")
    table = _table(name, text, "23", lambda offset: offset >= EARLIEST)
    if forbidden in table.values():
        raise ToolError(f"{name} cannot be {'latest' if forbidden == LATEST else 'earliest'} ({forbidden})")
    return Bound(by_time=False, value=table)


def _table(name: str, text: str, example: str, fits: Callable[[int], bool]) -> dict[TopicPartition, int]:
    try:
        table = {
            TopicPartition(topic, int(number)): _integer(value)
            for topic, values in json.loads(text).items()
            for number, value in values.items()
        }
    except (ValueError, TypeError, AttributeError):
        table = {TopicPartition("", 0): EARLIEST - 1}
    if not all(map(fits, table.values())):
        raise ToolError(f'{name} is not JSON such as {{"topicA": {{"0": {example}}}}}: {text!r}')
    return table


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value
