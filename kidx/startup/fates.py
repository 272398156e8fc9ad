"""Fates of segments: why each one still exists, what will delete it, and when (``deleteOldSegments``, the cleaner).

The reference computes the next check of retention, over the sizes and timestamps of the files. A broker checks every
``log.retention.check.interval.ms``, and deletes the files ``file.delete.delay.ms`` later.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from kidx.discovery import META_PROPERTIES, METADATA_TOPIC, discover
from kidx.errors import KidxError
from kidx.log.retention import RetentionLog, Rule, delete_by_rule
from kidx.lookup import ReadOnlyLog
from kidx.printable import counted, dated, encodable
from kidx.repair.interval import DEFAULT
from kidx.startup.remedies import NO_TOPIC_SETTINGS, NOT_CONFIGURED
from kidx.startup.settings import Settings
from kidx.verify.identity import clusters_of, identified

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kidx.cluster import ClusterMetadata
    from kidx.dialect import Dialect
    from kidx.discovery import Partition
    from kidx.log import LogConfig
    from kidx.segment import Clock
    from kidx.startup.settings import TopicSettings

_RULES: Final[dict[Rule, str]] = {
    "start": "it is below the log start offset",
    "size": "the log is larger than retention.bytes without it",
    "time": "it is older than retention.ms",
}
_LAST_TIME: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Fate:
    """Fate of a segment.

    Attributes:
        log: path of the ``.log``.
        next_offset: base offset of the next segment, or end of the log.
        size: size of the ``.log`` in bytes.
        largest_timestamp: largest timestamp in milliseconds as a broker reads it.
        deleted_by: rule by which the next check deletes it; None if it is kept.
        why: reasons why it still exists; or why it is deleted.
        expires: time in milliseconds from which on retention by time deletes it; None if it does not.
        after_bytes: number of bytes that may be appended before retention by size deletes it; None if it does not.
    """

    log: Path
    base_offset: int
    next_offset: int
    size: int
    largest_timestamp: int
    deleted_by: Rule | None
    why: tuple[str, ...]
    expires: int | None = None
    after_bytes: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return an object of ``kidx explain --json``."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return values | {"log": encodable(str(self.log)), "why": [encodable(each) for each in self.why]}


@dataclass(frozen=True, slots=True)
class Fates:
    """Fates of a partition's segments.

    Attributes:
        settings: settings that decide, each with its source.
        limits: start, high watermark and end of the log.
        segments: the segments, oldest first.
        compaction: state of compaction; empty if the topic is not compacted.
        not_checked: settings that were not found, so that Kafka's defaults are assumed; each with where they may be.
        problem: reason why nothing is known; empty if the partition could be read.
    """

    directory: Path
    settings: tuple[str, ...] = ()
    limits: tuple[int, int, int] = (0, 0, 0)
    segments: tuple[Fate, ...] = ()
    compaction: str = ""
    not_checked: tuple[str, ...] = ()
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return an object of ``kidx explain --json``."""
        return {
            "directory": encodable(str(self.directory)),
            "settings": list(self.settings),
            "start_offset": self.limits[0],
            "high_watermark": self.limits[1],
            "end_offset": self.limits[2],
            "segments": [each.to_json() for each in self.segments],
            "compaction": self.compaction,
            "not_checked": list(self.not_checked),
            "problem": encodable(self.problem),
        }


def fates(
    paths: Iterable[str | os.PathLike[str]],
    dialect: Dialect,
    clock: Clock,
    properties: Mapping[str, str] | None = None,
) -> Iterator[Fates]:
    """Yield the fates of the segments of all partitions under some paths.

    Args:
        paths: partitions or log directories.
        dialect: rules of the release.
        clock: the wall clock.
        properties: the broker's ``server.properties``; Kafka's defaults if None.
    """
    discovered = discover([Path(path) for path in paths])
    above = discover(sorted({each.directory.parent for each in discovered.partitions}))
    clusters = clusters_of(above)
    for partition in identified(discovered, clusters).partitions:
        if partition.topic is not None and partition.topic != METADATA_TOPIC and not partition.state:
            own = _cluster_of(partition, clusters)
            lacks = (partition.topic not in own.topics, NO_TOPIC_SETTINGS), (properties is None, NOT_CONFIGURED)
            found = _fates_of(partition, dialect, clock, _settings_of(partition, own, properties))
            yield found if found.problem else replace(found, not_checked=tuple(text for holds, text in lacks if holds))


def _cluster_of(partition: Partition, clusters: Mapping[Path, ClusterMetadata]) -> ClusterMetadata:
    from kidx.cluster import ClusterMetadata  # noqa: PLC0415 -- a type elsewhere

    return clusters.get(partition.directory.parent) or next(iter(clusters.values()), None) or ClusterMetadata()


def _settings_of(partition: Partition, own: ClusterMetadata, properties: Mapping[str, str] | None) -> TopicSettings:
    from kidx.startup.kraft import node_of  # noqa: PLC0415

    home = partition.directory.parent
    node = node_of([home]) if (home / META_PROPERTIES).exists() else None
    return Settings(own, node, properties).of(partition.topic or "", index_interval_bytes=DEFAULT)


@dataclass(slots=True)
class _Segment:
    """Segment as retention sees it."""

    log: Path
    base_offset: int
    size: int
    largest_timestamp: int


@dataclass(slots=True)
class _Snapshot:
    """Log as retention sees it."""

    dialect: Dialect
    clock: Callable[[], int]
    config: LogConfig
    start_offset: int
    high_watermark: int
    end_offset: int
    segments: list[_Segment] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(each.size for each in self.segments)

    def remove_oldest(self, segments: list[_Segment]) -> None:
        self.segments = self.segments[len(segments) :]


def _fates_of(partition: Partition, dialect: Dialect, clock: Clock, settings: TopicSettings) -> Fates:
    try:
        with ReadOnlyLog(partition.directory, dialect) as log:
            segments = [
                _Segment(each.files.log, each.base_offset, each.log_size, each.largest_timestamp)
                for each in log.segments
            ]
            end, start = log.end_offset, log.start_offset
    except (KidxError, OSError) as error:
        return Fates(partition.directory, problem=str(error))
    # The log of one replica is replicated; the checkpoint of another is at most five seconds old.
    watermark = min(partition.high_watermark or 0, end) if partition.is_replicated else end
    config, now = settings.config, clock()
    before = _Snapshot(dialect, lambda: now, config, start, watermark, end, list(segments))
    deleted = {
        each.base_offset: rule
        for rule, some in delete_by_rule(cast("RetentionLog", before)).items()
        for each in cast("list[_Segment]", some)
    }
    bases = [*(each.base_offset for each in segments[1:]), end]
    found = []
    oldest, cumulative, total = -_LAST_TIME, 0, before.size
    for each, following in zip(segments, bases, strict=True):
        if each.base_offset in deleted:
            rule = deleted[each.base_offset]
            found.append(_fate(each, following, rule, (_RULES[rule],)))
            continue
        oldest, cumulative = max(oldest, each.largest_timestamp), cumulative + each.size
        expires = after = None
        if config.deletes and not settings.is_tiered:
            expires = oldest + config.retention_ms if config.retention_ms >= 0 else None
            after = max(config.retention_bytes + cumulative - total, 0) if config.retention_bytes >= 0 else None
        is_active = each is segments[-1]
        why = tuple(_reasons(each, settings, watermark, following, (oldest, expires, after), is_active=is_active))
        found.append(_fate(each, following, None, why, expires, after))
    names = ("cleanup.policy", "retention.ms", "retention.bytes")
    values = (_policy(config), config.retention_ms, config.retention_bytes)
    shown = tuple(f"{name}={value} ({settings.source_of(name)})" for name, value in zip(names, values, strict=True))
    return Fates(partition.directory, shown, (start, watermark, end), tuple(found), _compaction(partition, config, end))


def _fate(
    each: _Segment,
    following: int,
    rule: Rule | None,
    why: tuple[str, ...],
    expires: int | None = None,
    after: int | None = None,
) -> Fate:
    return Fate(each.log, each.base_offset, following, each.size, each.largest_timestamp, rule, why, expires, after)


def _policy(config: LogConfig) -> str:
    return ",".join(name for name, has in (("compact", config.compacts), ("delete", config.deletes)) if has)


def _reasons(
    segment: _Segment,
    settings: TopicSettings,
    watermark: int,
    following: int,
    limits: tuple[int, int | None, int | None],
    *,
    is_active: bool,
) -> Iterator[str]:
    """Yield the reasons why a segment still exists, those first that come first."""
    oldest, expires, after = limits
    if is_active:
        yield "it is the active segment" + (", and empty" if not segment.size else "")
    if watermark < following:
        yield f"its last record is not below the high watermark, {watermark}"
    if settings.is_tiered:
        yield "it is deleted here after its copy is in remote storage, by local.retention.ms and local.retention.bytes"
    elif not settings.config.deletes:
        yield "the topic is compacted, and nothing is deleted by time or size"
    if expires is not None:
        held = "" if oldest == segment.largest_timestamp else f", because an older segment has {dated(oldest)}"
        yield f"retention by time deletes it after {dated(expires)}{held}"
    if after is not None:
        yield f"retention by size deletes it after {counted(after, 'more byte')}"
    if expires is None and after is None and settings.config.deletes and not settings.is_tiered:
        yield "retention has no limit"


def _compaction(partition: Partition, config: LogConfig, end: int) -> str:
    if not config.compacts:
        return ""
    cleaned = partition.cleaned_to
    if cleaned is None:
        return f"never compacted: offsets up to {end} are dirty"
    return f"compacted up to offset {cleaned}: offsets {cleaned} to {end} are dirty"
