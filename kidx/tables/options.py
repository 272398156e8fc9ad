"""Options of ``spark.read.format("kafka_segments")``: Spark's Kafka options of the same meaning, and more.

=================================== ====================================================================================
option                              meaning
=================================== ====================================================================================
``content``                         the table; ``records`` by default (:mod:`kidx.tables.contents`)
``path``                            the argument of ``load``; several paths as a JSON array
``subscribe``                       topics, separated by commas; all topics if none of these three options is given
``subscribePattern``                a Java regular expression that some part of a topic's name matches
``assign``                          JSON, ``{"topic": [0, 1]}``
``startingTimestamp``               milliseconds; takes precedence over the next two
``startingOffsetsByTimestamp``      JSON, ``{"topic": {"0": 1700000000000}}``; takes precedence over the next one
``startingOffsets``                 ``earliest``, or JSON, ``{"topic": {"0": 23, "1": -2}}`` (-2: earliest); in a
                                    stream also ``latest`` and -1
``endingTimestamp``                 milliseconds, exclusive: the first record with that time or a later one is the end
``endingOffsetsByTimestamp``        JSON, exclusive, as ``startingOffsetsByTimestamp``
``endingOffsets``                   ``latest``, or JSON with -1 for latest
``startingOffsetsByTimestampStrategy`` ``error`` or ``latest``: the action if no record has the requested time
``columns``                         columns, separated by commas; other columns are not decoded
``includeHeaders``                  add the column ``headers``
``failOnDataLoss``                  fail at a corrupt segment or a missing offset (default), or read what is readable
``minPartitions``                   minimum number of tasks
``isolationLevel``                  ``read_uncommitted`` or ``read_committed``; also as ``kafka.isolation.level``
``checkCrcs``                       ``false`` skips checksum validation; also as ``kafka.check.crcs``
``maxPartitionBytes``               maximum bytes of logs per task, where the offset index allows a split
``useIndexes``                      ``false`` reads all logs, but no index or producer snapshot, where these cannot be
                                    trusted
``timestampDisorderMs``             the most by which a record can be older than an earlier record, in logs whose time
                                    indexes can be trusted: bounds on ``timestamp`` are then found by index
``replicas``                        ``one`` (the longest of each partition) or ``all``
``pushDown``                        ``true`` uses conditions to read less, if each query, and each part of one, loads a
                                    separate DataFrame: Spark would use the conditions of one query of a DataFrame
                                    for all its queries; ``false`` by default
``metrics``                         directory for the counts of bytes and the pushed predicates
                                    (:mod:`kidx.spark.metrics`)
``maxOffsetsPerTrigger``            streams: maximum offsets of a micro-batch, divided in proportion to the backlog
``minOffsetsPerTrigger``            streams: offsets that a micro-batch waits for, for at most ``maxTriggerDelay``
``maxTriggerDelay``                 streams: a time such as ``15m``, the default
``maxBytesPerTrigger``              streams: maximum bytes of logs of a micro-batch; at least a batch per partition
``storageOptions``                  JSON, for fsspec
``remote``                          remote storage of the topics, as ``LocalTieredStorage`` or Aiven's plugin stores it:
                                    a path or a URL; its records come before the local log
=================================== ====================================================================================

Options that begin with ``kafka.``, and the connection options of Spark's Kafka source, are accepted and ignored, so
that a query written for that source runs here. A warning names ``maxRecordsPerPartition``, and the limits of streams in
a batch query. A JSON table of offsets must name every partition, as in Spark's Kafka source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from kidx.errors import ToolError
from kidx.storage import Store
from kidx.tables.contents import CONTENTS, columns_of
from kidx.tables.patterns import check, matches
from kidx.tables.segments import TopicPartition

EARLIEST: Final = -2
LATEST: Final = -1
DEFAULT_PARTITION_BYTES: Final = 128 << 20
"""The default of ``spark.sql.files.maxPartitionBytes``."""

Isolation = Literal["read_uncommitted", "read_committed"]
OffsetBound = Mapping[TopicPartition, int] | int
"""Offset (or time) of every partition, or one offset for all partitions."""

# Options by what they apply to: every content, the contents that read batches, records alone, and streams.
# fmt: off
COMMON_OPTIONS: Final = frozenset({
    "content", "columns", "path", "paths", "subscribe", "subscribePattern", "assign", "failOnDataLoss", "minPartitions",
    "maxPartitionBytes", "replicas", "pushDown", "metrics", "storageOptions",
    "remote",
})
OF_BATCHES: Final = frozenset({
    "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets", "endingTimestamp",
    "endingOffsetsByTimestamp", "endingOffsets", "startingOffsetsByTimestampStrategy", "checkCrcs", "useIndexes",
    "timestampDisorderMs",
})
OF_RECORDS: Final = frozenset({"includeHeaders", "isolationLevel"})
OF_STREAMS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "maxBytesPerTrigger")
UNUSED: Final = "maxRecordsPerPartition"
OF_A_CONNECTION: Final = frozenset({
    "groupIdPrefix", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "kafkaConsumer.pollTimeoutMs", UNUSED,
    "useDeprecatedOffsetFetching",
})
# fmt: on
"""Connection options of Spark's Kafka source, accepted and ignored."""
LONGEST_DELAY: Final = "15m"
_UNITS: Final = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True)
class Limits:
    """Limits of a stream's micro-batches; None for no limit.

    Attributes:
        most_offsets, most_bytes: the maxima of one micro-batch.
        least_offsets: the number of offsets that a micro-batch waits for.
        longest_delay: the maximum wait in milliseconds.
        given: the names of the limits that were given, as written.
    """

    most_offsets: int | None = None
    least_offsets: int | None = None
    longest_delay: int = 0
    most_bytes: int | None = None
    given: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bound:
    """The start or end of a range: offsets, or times."""

    by_time: bool
    value: OffsetBound

    def of(self, key: TopicPartition) -> int:
        """Return the offset or time of a partition."""
        return self.value if isinstance(self.value, int) else self.value[key]


@dataclass(frozen=True)
class ReadOptions:
    """Parsed and validated options; the module's table defines each.

    Attributes:
        topics: the requested topics; None without the option.
        pattern: a pattern that some part of a topic's name matches; None without the option.
        assigned: the requested partitions; None without the option.
        start, end: the range of offsets.
        latest_if_no_match: True if ``startingOffsetsByTimestampStrategy`` is ``latest``.
        remote: the remote storage; None without the option.
        columns: the columns, as Spark's DDL.
        push_down: True if the conditions of a query may restrict what its DataFrame reads.
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
    max_timestamp_disorder: int | None
    all_replicas: bool
    metrics: str | None
    limits: Limits = Limits()
    remote: Store | None = None
    columns: str = ""
    push_down: bool = False

    def wants(self, key: TopicPartition) -> bool:
        """Return True if a partition is requested by the options."""
        if self.topics is not None:
            return key.topic in self.topics
        if self.pattern is not None:
            return matches(self.pattern, key.topic)
        return self.assigned is None or key in self.assigned


def read_options(given: Mapping[str, str], *, may_stream: bool = False) -> ReadOptions:
    """Parse the options of a query.

    Args:
        given: option values by name, in any case.
        may_stream: True if the query is, or can be, a stream: a stream may start at the latest offsets.

    Raises:
        ToolError: an option or a value is invalid; the message lists the valid ones.
    """
    values = _Values(given)
    content = values.one_of("content", tuple(CONTENTS), "records")
    values.reject_unknown(content)
    by_kind = [name for name in ("subscribe", "subscribePattern", "assign") if name in values]
    if len(by_kind) > 1:
        raise ToolError(f"only one of subscribe, subscribePattern and assign can be given, not {' and '.join(by_kind)}")
    topics = values.names("subscribe")
    if topics == []:
        raise ToolError("subscribe names no topic")
    columns = values.names("columns")
    if columns == []:
        raise ToolError("columns names no column")
    headers = values.flag("includeHeaders", default="headers" in (columns or ()))
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
        topics=None if topics is None else frozenset(topics),
        pattern=pattern,
        assigned=_assigned(values.get("assign")),
        start=_bound(values, "starting", EARLIEST, may_stream=may_stream),
        end=_bound(values, "ending", LATEST),
        latest_if_no_match=values.one_of("startingOffsetsByTimestampStrategy", ("error", "latest"), "error")
        == "latest",
        include_headers=headers,
        fail_on_data_loss=values.flag("failOnDataLoss", default=True),
        min_partitions=values.number("minPartitions", least=1),
        isolation=isolation,  # type: ignore[arg-type]
        check_crcs=crcs,
        max_partition_bytes=values.number("maxPartitionBytes", least=1) or DEFAULT_PARTITION_BYTES,
        use_indexes=values.flag("useIndexes", default=True),
        max_timestamp_disorder=values.number("timestampDisorderMs", least=0),
        all_replicas=values.one_of("replicas", ("one", "all"), "one") == "all",
        metrics=values.get("metrics"),
        limits=_limits(values),
        remote=_remote(values),
        columns=columns_of(content, columns, headers=headers),
        push_down=values.flag("pushDown", default=False),
    )


class _Values:
    """A case-insensitive map of option values."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): (name, value) for name, value in given.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._given

    def get(self, name: str) -> str | None:
        """Return the value of an option; None if it is not given."""
        found = self._given.get(name.lower())
        return None if found is None else found[1]

    def reject_unknown(self, content: str) -> None:
        """Raise ToolError if an option does not exist, or does not apply to this content."""
        allowed = COMMON_OPTIONS | (OF_BATCHES if content in ("records", "batches") else frozenset())
        allowed |= OF_RECORDS if content == "records" else frozenset()
        allowed_in_lower_case = {name.lower() for name in allowed | OF_A_CONNECTION | {*OF_STREAMS}}
        known = {name.lower() for name in OF_BATCHES | OF_RECORDS}
        for key, (name, _) in self._given.items():
            if key in allowed_in_lower_case or key.startswith("kafka."):
                continue
            if key in known:
                raise ToolError(f"the option {name} does not apply to content={content}")
            there_are = ", ".join(sorted(allowed - {"paths"}, key=str.lower))
            raise ToolError(f"unknown option {name!r} of kafka_segments; choose from {there_are}")

    def one_of(self, name: str, choices: tuple[str, ...], default: str) -> str:
        """Return the value of an option that is one of several words, in any case."""
        value = (self.get(name) or default).lower()
        if value not in choices:
            raise ToolError(f"unknown {name} {value!r}; choose from {', '.join(choices)}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return the value of an option that is ``true`` or ``false``."""
        return self.one_of(name, ("true", "false"), str(default).lower()) == "true"

    def names(self, name: str) -> list[str] | None:
        """Return the names, separated by commas, in the value of an option; None if it is not given."""
        text = self.get(name)
        return None if text is None else [part.strip() for part in text.split(",") if part.strip()]

    def number(self, name: str, *, least: int) -> int | None:
        """Return the value of an integer option; None if it is not given."""
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
        """Return the value of a JSON option; None if it is not given."""
        text = self.get(name)
        if text is None:
            return None
        try:
            return json.loads(text)
        except ValueError:
            raise ToolError(f"{name} is not {form}: {text!r}") from None


def _limits(values: _Values) -> Limits:
    most, least = (values.number(name, least=1) for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger"))
    if most is not None and least is not None and least > most:
        raise ToolError(f"minOffsetsPerTrigger is {least}, more than maxOffsetsPerTrigger, {most}")
    text = (values.get("maxTriggerDelay") or LONGEST_DELAY).strip().lower()
    delay = re.fullmatch(r"(\d+)\s*([a-z]*)", text)
    if delay is None or delay[2] not in _UNITS:
        raise ToolError(f"maxTriggerDelay is {text!r}, not a time such as 30s, 15m or 1h")
    return Limits(
        most,
        least,
        int(delay[1]) * _UNITS[delay[2]],
        values.number("maxBytesPerTrigger", least=1),
        tuple(name for name in (*OF_STREAMS, UNUSED) if name in values),
    )


def _remote(values: _Values) -> Store | None:
    url = values.get("remote")
    return None if url is None else Store(url, values.json("storageOptions", "a JSON object") or {})


def _stores(values: _Values) -> tuple[Store, ...]:
    paths = values.json("paths", "a JSON array of paths") or []  # load() of several paths passes this
    if (path := values.get("path")) is not None:
        listed = None
        if path.startswith("["):
            listed = values.json("path", "a JSON array of paths")
        paths = [*paths, *(listed if isinstance(listed, list) else [path])]
    if not paths:
        raise ToolError(
            "kafka_segments requires a path: load(PATH), or CREATE TABLE without columns and with OPTIONS (path 'PATH')"
        )
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


def _bound(values: _Values, side: str, default: int, *, may_stream: bool = False) -> Bound:
    """Parse the first given of three options, in Spark's order: one time, a table of times, offsets."""
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
    if may_stream and text.strip().lower() == "latest":
        return Bound(by_time=False, value=LATEST)
    if text.strip().lower() in ("earliest", "latest"):
        raise ToolError(f"{name} cannot be {text.strip().lower()} in a batch query")
    table = _table(name, text, "23", lambda offset: offset >= EARLIEST)
    if forbidden in table.values() and not may_stream:
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
