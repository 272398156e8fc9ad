"""Prediction of a broker's start: effects of its log managers, loader and recovery on the files on its disks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kidx.cluster import ClusterMetadata, read_metadata
from kidx.dialect import Dialect, dialect_of
from kidx.discovery import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    EPOCHS,
    FUTURE,
    HIGH_WATERMARKS,
    LOG,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    START_OFFSETS,
    discover,
    parse_partition,
    parse_segment_file,
)
from kidx.errors import InvalidArgumentError, KidxError
from kidx.java_values import INT_MAX
from kidx.log.epochs import stored_epochs
from kidx.printable import counted, shell_word
from kidx.rebuild.lock import lock_owner
from kidx.records import file_batches
from kidx.repair import FROM_A_REPLICA, plan
from kidx.repair.interval import DEFAULT, Intervals
from kidx.segment import system_clock
from kidx.segment.files import file_name
from kidx.startup.answers import Ends, Later, Outcome, PartitionStart, Remark, SegmentChange
from kidx.startup.changes import Advice, move_out, try_changes
from kidx.startup.checkpoints import UnreadableError, offsets_of, topic_id_of
from kidx.startup.directories import (
    OF_LOG_DIRECTORIES,
    brokers_of,
    check_cache,
    directories_in,
    has_logs,
    inaccessible,
    is_managed,
    log_directories,
    names_in,
    perhaps_of_one,
    without_directory_ids,
)
from kidx.startup.evidence import already_lost, doubted, lost_logs, suspected, torn, with_misplaced
from kidx.startup.kraft import (
    check_metadata_log,
    check_properties,
    check_versions,
    has_metadata_log,
    has_properties,
    is_empty,
    node_of,
    runs_kraft,
)
from kidx.startup.names import (
    METADATA_LOG,
    is_ignored,
    is_unknown,
    is_unusual,
    unparsed_name,
)
from kidx.startup.offline import unreadable_transaction
from kidx.startup.partitions import (
    Assignment,
    Copies,
    Strays,
    assignments,
    inconsistent_ids,
    joined,
    lost_partitions,
    made_elsewhere,
    obstructed,
    only_in_checkpoints,
    renamed_only,
    strays_after_cut,
)
from kidx.startup.readable import LoggedRecords
from kidx.startup.remedies import (
    ALREADY_LOST,
    EMPTY_DIRECTORY,
    EMPTY_DIRECTORY_REMEDY,
    METADATA_CUT,
    METADATA_ELSEWHERE,
    METADATA_MISSING,
    MOVE_OUT,
    NO_DIRECTORY,
    NO_TARGET,
    OWN_LOG,
    RENAMED,
    TARGET_MISSING,
    WITHOUT,
    topic_id_remedy,
)
from kidx.startup.running import LogFiles, harm_of
from kidx.startup.settings import Settings, read_properties
from kidx.startup.simulation import (
    CheckpointedOffsets,
    Checkpoints,
    Loaded,
    regular_files,
    snapshot_directories,
    try_load,
)
from kidx.startup.start import Start
from kidx.startup.whole import WholeLog, without_entries

if TYPE_CHECKING:
    from kidx.findings import Finding
    from kidx.segment import Clock
    from kidx.verify import Verification


def predict(
    paths: Iterable[str | os.PathLike[str]],
    result: Verification,
    release: str | Dialect | None = None,
    index_interval_bytes: int | None = None,
    *,
    config: str | os.PathLike[str] | None = None,
    clock: Clock = system_clock,
    progress: Callable[[], None] = lambda: None,
) -> Start | None:
    """Return the effect of a broker's start; None if neither a partition nor a log directory was verified.

    Args:
        paths: verified paths: all log directories of a broker.
        result: result of their verification.
        release: release of the broker; the newest by default.
        index_interval_bytes: the topics' setting; inferred if None.
        config: ``server.properties`` of the broker; Kafka's defaults if None.
        clock: the wall clock at the start, which decides what retention deletes.
        progress: callback that is called for each partition.

    Raises:
        ToolError: ``config`` cannot be read.
    """
    properties = None if config is None else read_properties(Path(config))
    given = [Path(path) for path in paths]
    found = [each.directory for each in discover(given).partitions if each.complete]
    directories = log_directories(given, found)
    if not directories and not found:
        return None
    dialect = dialect_of(release)
    held = tuple(path for path in directories or {each.parent for each in found} if lock_owner(path) is not None)
    faulty = set(map(Path, result.faulty_paths))
    changing = any(finding.verdict == "changing" for finding in result.findings)
    if held or changing:
        return Start(dialect.release, tuple(directories), held, faults=len(faulty), changing=changing)
    planned = plan(result)
    repairable = set(planned.directories) - {Path(fault.place) for fault in planned.remaining}
    damaged = {path.parent for path in faulty if path.suffix == LOG and path.exists()}
    intervals = Intervals(result.files, index_interval_bytes)
    known = suspected(result), damaged, lost_logs(result), repairable, intervals, dialect
    named = None if release is None else dialect.release
    running = _Running(
        properties,
        clock,
        faulty,
        planned.repairs,
        named,
        torn(result),
        without_entries(result),
        result.clusters,
        progress,
    )
    groups = joined(brokers_of(directories), result.clusters)
    brokers = [_Broker(some, [], *known, running) for some in groups]
    if not directories:
        brokers = [_Broker([], found, *known, running)]
    for broker in brokers:
        broker.check()
    stopped = [path for path in directories if is_managed(path)] or sorted({each.parent for each in found})
    clean = {path: (path / CLEAN_SHUTDOWN).exists() for path in stopped}
    changed = (each for broker in brokers for each in broker.changed)
    aside = {path for broker in brokers for path in broker.aside}
    rebuilt = faulty & {path for broker in brokers for path in broker.rewritten}
    empty = tuple(path for path in given if directories and path not in directories and is_empty(path))
    return Start(
        dialect.release,
        tuple(directories),
        (),
        tuple(dict.fromkeys(each for broker in brokers for each in broker.fatal)),
        {path: why for broker in brokers for path, why in broker.offline.items()},
        tuple(each for broker in brokers for each in broker.further),
        tuple(sorted(with_misplaced(changed, result), key=lambda each: str(each.directory))),
        len(faulty - rebuilt),
        rebuilt=frozenset(rebuilt),
        missing=(
            *(each for broker in brokers for each in broker.missing),
            *(Remark(path, EMPTY_DIRECTORY, EMPTY_DIRECTORY_REMEDY) for path in empty),
        ),
        empty=empty,
        clean=clean,
        mixed=tuple(path for broker in brokers for path in broker.mixed),
        doubted=doubted(result, clean),
        lost=tuple(
            Remark(path, message, ALREADY_LOST) for path, message in already_lost(result).items() if path not in aside
        ),
        is_default=release is None,
        without_metadata=any(broker.without_metadata for broker in brokers),
        is_damaged=bool(damaged),
        later=tuple(each for broker in brokers for each in broker.later if each.directory not in aside),
        is_configured=properties is not None,
        omitted=tuple(each for broker in brokers for each in broker.omitted),
        apart=tuple(perhaps_of_one(groups)),
        of_zookeeper=any(not broker.is_kraft and any(map(has_properties, broker.managed)) for broker in brokers),
    )


class _Running(NamedTuple):
    """Input that all brokers have in common: the findings, and what decides what a broker does after loading.

    Attributes:
        properties: ``server.properties``; None if it was not given.
        clock: the wall clock.
        faulty: files that are wrong before the start.
        repairs: suffixes of the index files that can be rebuilt, by log.
        release: release whose rules were requested; None for the default.
        torn: remarks about bytes that a recovery cuts off, by partition directory.
        without_entries: index files without entries, by the directories of partitions with no other fault.
        clusters: KRaft's metadata that were read, by log directory.
        progress: callback that is called for each partition.
    """

    properties: Mapping[str, str] | None
    clock: Clock
    faulty: Collection[Path]
    repairs: Mapping[Path, Collection[str]]
    release: str | None
    torn: Mapping[Path, Finding]
    without_entries: Mapping[Path, Collection[Path]]
    clusters: Mapping[Path, ClusterMetadata]
    progress: Callable[[], None]


class _Broker:
    """One broker: its log directories (or else only partition directories, ``given``), and the faults of each."""

    def __init__(
        self,
        directories: list[Path],
        partitions: list[Path],
        suspected: set[Path],
        damaged: set[Path],
        lost_logs: Mapping[Path, Collection[int]],
        repairable: set[Path],
        intervals: Intervals,
        dialect: Dialect,
        running: _Running,
    ) -> None:
        self.directories, self.given, self.dialect = directories, partitions, dialect
        self.managed = [path for path in directories if is_managed(path)]  # without metadata.log.dir
        self.suspected, self.damaged, self.lost_logs = suspected, damaged, lost_logs
        self.running = running
        self.repairable, self.intervals = repairable, intervals
        self.fatal: list[Remark] = []
        self.offline: dict[Path, Remark] = {}
        self.given_up_later: set[Path] = set()  # log directories that go offline after their partitions were served
        self.further: list[Remark] = []  # faults of log directories that are offline already
        self.missing: list[Remark] = []  # remarks that do not prevent a start
        self.cluster = ClusterMetadata()  # KRaft's metadata
        self.node: int | None = None  # id of the broker
        self.aside: set[Path] = set()  # directories that the start renames to ...-stray
        self.own: list[Assignment] = []  # partitions of this broker in KRaft's metadata
        self.partitions: list[PartitionStart] = []
        self.later: list[Later] = []
        self.omitted: list[str] = []  # effects that are not evaluated
        self.ids: dict[Path, str | None] = {}  # topic ids in partition.metadata, by partition directory
        self.begins: dict[Path, int] = {}  # start of the first leader epoch in the checkpoint, by partition directory
        self.harmed: dict[Path, set[Path]] = {}  # logs that a recovery shortens, by log directory
        self.rewritten: set[Path] = set()  # index files that the start rebuilds
        known = dialect if running.release else None
        self.is_kraft = runs_kraft(directories or {path.parent for path in partitions}, known)
        self.metadata_end: int | None = None  # end of KRaft's own log, if the start truncates it
        self.without_metadata = False

    def check(self) -> None:
        """Check all log directories and partitions."""
        places = set(self.directories or (path.parent for path in self.given))
        known = [cluster for path, cluster in self.running.clusters.items() if path in places]
        self.cluster = known[0] if len(known) == 1 else read_metadata(places)
        for directory in self.directories:
            self._check_directory(directory)
            if (why := inaccessible(directory)) is not None:
                self._give_up(directory, why)
        if self.directories and self.is_kraft and self.ids and not any(map(has_metadata_log, self.directories)):
            self.without_metadata = True
            self.missing.append(Remark(self.directories[0] / METADATA_LOG, METADATA_MISSING, METADATA_ELSEWHERE))
        offsets = {directory: CheckpointedOffsets(directory) for directory in {path.parent for path in self.given}}
        for partition in self.given:
            self._check_partition(partition, offsets[partition.parent])
        fatal, offline = check_properties(self.directories, self.dialect, is_kraft=self.is_kraft)
        self.fatal += fatal
        self.offline = offline | self.offline
        self.fatal += self._ended_by_transactions()
        self.node = node_of(self.directories) if self.is_kraft else None
        self.own = [] if self.node is None else assignments(self.cluster, self.node)
        self._find_strays()
        self._find_lost()
        if self.offline and self.directories and not self.fatal:
            self._end_without_directories()
        if self.offline and not self.fatal and not self.dialect.has_directory_ids:
            others = [path for path in self.directories if path not in self.offline]
            late = {path for path, why in self.offline.items() if why.path.name == HIGH_WATERMARKS}
            given_up = self.offline.keys() - self.given_up_later - late  # high watermarks are read for each partition
            self._replace({each.directory: each for each in made_elsewhere(self.own, given_up, others)})

    @property
    def changed(self) -> list[PartitionStart]:
        """Partitions that change; in a log directory that goes offline, partitions with other corruption."""
        return [
            each
            for each in self.partitions
            if each.directory.parent not in self.offline or each.outcome not in ("kept", "unknown")
        ]

    @property
    def mixed(self) -> list[Path]:
        """Log directories that were stopped cleanly, if others were not."""
        clean = [path for path in self.managed if (path / CLEAN_SHUTDOWN).exists()]
        return clean if len(clean) < len(self.managed) else []

    def _end_without_directories(self) -> None:
        """End the broker if it has no log directory left, or not the directory with KRaft's own log."""
        if set(self.offline) >= set(self.managed):
            self.fatal += [
                why._replace(reason=f"{why.reason}: no log directory is left") for why in self.offline.values()
            ]
            return
        for path, why in self.offline.items():
            is_of_logs = why.path.name.endswith("-checkpoint") or why.path.name == PARTITION_METADATA
            is_survived = is_of_logs and not self.dialect.has_directory_ids
            if has_metadata_log(path) and not is_survived:
                self.fatal.append(
                    why._replace(reason=f"{why.reason}: the log directory with KRaft's own log is given up")
                )

    def _ended_by_transactions(self) -> Iterator[Remark]:
        """Yield the open transactions that the broker looks up in log directories that are offline already."""
        for directory, why in self.offline.items():
            if why.path.name != META_PROPERTIES:  # without it, no log is loaded
                unreadable = [each.path for each in (why, *self.further)]
                path = unreadable_transaction(directory, unreadable, self.dialect)
                if path is not None:
                    reason = (
                        f"it has an open transaction, which the broker cannot look up, because {shell_word(why.path)} "
                        "has taken its log directory offline"
                    )
                    yield Remark(path, reason)

    # -- one log directory -----------------------------------------------------------------------------------------

    def _check_directory(self, directory: Path) -> None:
        offsets = CheckpointedOffsets(directory)
        below = list(directories_in(directory))
        is_marked = directory in self.managed and bool(OF_LOG_DIRECTORIES.intersection(names_in(directory)))
        for path in below:
            self.fatal += check_cache(path, self.dialect)
            if is_ignored(path.name, self.dialect):
                continue
            if path.name == CLEAN_SHUTDOWN and not names_in(path):
                continue  # the broker deletes it like the file
            if is_unknown(path.name, self.dialect):
                if is_marked:
                    has_segments = any(map(parse_segment_file, names_in(path)))
                    remedy = RENAMED if has_segments else MOVE_OUT
                    self.fatal.append(Remark(path, "a directory that is not named like a partition", remedy))
                continue
            self._check_partition(path, offsets)
        if META_PROPERTIES in names_in(directory) and has_logs(directory):
            self.missing += self._without_checkpoints(directory, is_clean=offsets.clean)
        for name in (RECOVERY_POINTS, START_OFFSETS, HIGH_WATERMARKS, CLEANED_OFFSETS):
            try:
                offsets_of(directory / name)
            except UnreadableError as error:
                self._give_up(directory, Remark(directory / name, str(error)))
        metadata = directory / METADATA_LOG
        if metadata in below:
            self._check_metadata(metadata)

    def _without_checkpoints(self, directory: Path, *, is_clean: bool) -> Iterator[Remark]:
        """Yield the effect of checkpoints that are missing, or empty; a new log directory has empty ones."""
        for name, effect in WITHOUT.items():
            path = directory / name
            is_missing = not path.exists()
            if is_missing or path.stat().st_size == 0:
                shown = self._shown_again(directory) if name == START_OFFSETS else ""
                if is_missing or shown or (name == RECOVERY_POINTS and not is_clean):
                    yield Remark(path, f"it is {'missing' if is_missing else 'empty'}: {effect}{shown}")

    def _shown_again(self, directory: Path) -> str:
        """Return the logs whose first epoch begins after their first segment: the records between were deleted."""
        moved = []
        for path, begin in self.begins.items():
            if path.parent == directory and (base := min(LoggedRecords(path).sizes, default=begin)) < begin:
                with contextlib.suppress(KidxError, OSError):
                    first = next(iter(file_batches(path / file_name(base, LOG))), None)
                    if first is not None and first.partition_leader_epoch >= 0:
                        moved.append(f"{shell_word(path.name)} from offset {base} and not {begin}")
        more = f" and {len(moved) - 1} more" if len(moved) > 1 else ""
        return f", {moved[0]}{more}" if moved else ""

    def _check_metadata(self, path: Path) -> None:
        """Check KRaft's own log, which every start recovers, and without which no broker starts."""
        known = self.suspected, self.damaged, self.lost_logs, self.repairable, self.intervals, self.dialect
        own = _Broker([], [], *known, self.running)
        own._check_partition(path, CheckpointedOffsets(path.parent, recovers=True))
        fatal, survived = check_metadata_log(path, self.dialect)
        self.fatal += [*own.fatal, *own.offline.values(), *fatal]
        self.missing += survived
        if (why := check_versions(path, self.cluster, self.dialect)) is not None:
            self.fatal.append(why)
        cut = {each.directory: each for each in own.partitions if each.outcome == "cut"}
        if path in cut:
            self.metadata_end = cut[path].end[1]
            cut[path] = replace(cut[path], reason=OWN_LOG, remedy=METADATA_CUT, instead="", tried="")
        self.partitions += [cut.get(each.directory, each) for each in own.partitions]
        self.rewritten |= own.rewritten

    # -- one partition ---------------------------------------------------------------------------------------------

    def _check_partition(self, path: Path, offsets: CheckpointedOffsets) -> None:
        self.running.progress()
        try:
            names = regular_files(path)
        except OSError as error:
            self._give_up(path.parent, Remark(path, f"cannot be read: {error.strerror}"))
            return
        wrong = unparsed_name(names)
        if wrong is not None:
            self.fatal.append(Remark(path / wrong, "its name does not begin with an offset (NumberFormatException)"))
            return
        if not self._reads_epochs(path):
            return
        try:
            if self.dialect.logs_have_topic_ids:
                reads_newer = self.dialect.newer_partition_metadata_is_read
                self.ids[path] = topic_id_of(path, reads_newer=reads_newer)
        except UnreadableError as error:
            self._note(path / PARTITION_METADATA, str(error), fatal=error.fatal)
            return
        is_torn = path in self.running.torn
        is_odd = is_unusual(names) or bool(snapshot_directories(path))
        if not is_odd and self._follows(path, names, offsets.of(path)):
            return
        if path in self.suspected or is_odd or (is_torn and path.name == METADATA_LOG):
            self._simulate(path, offsets)
        elif is_torn:
            self._cut_tail(path, names, offsets.of(path), self.running.torn[path])

    def _cut_tail(self, path: Path, names: Iterable[str], checkpoints: Checkpoints, tail: Finding) -> None:
        """Note what a recovery does to an undamaged log with an incomplete last batch, without a simulation."""
        first = min(parsed[0] for name in names if (parsed := parse_segment_file(name)) and parsed[1] == LOG)
        start = max(first, checkpoints.start_offset)
        assert tail.offset is not None
        change = SegmentChange(Path(tail.path), Path(tail.path).stat().st_size, tail.position)
        ends = Ends(tail.offset, tail.offset, checkpoints.recovery_point)
        limits = (start, start), (tail.offset, tail.offset)
        self.partitions.append(PartitionStart(path, "kept", "", *limits, (change,), ends=ends))

    def _reads_epochs(self, path: Path) -> bool:
        new = path / f"{EPOCHS}.tmp"
        if new.is_dir():
            self._note(new, f"it is a directory, in whose place the broker writes a new {EPOCHS}", fatal=False)
            return False
        try:
            entries = stored_epochs(path / EPOCHS)
        except InvalidArgumentError as error:
            self._note(path / EPOCHS, str(error), fatal=self.dialect.leaks_number_format_error)
            return False
        except OSError as error:
            self._note(path / EPOCHS, str(error), fatal=False)
            return False
        if entries:
            self.begins[path] = entries[0].start_offset
        negative = next((entry for entry in entries if min(entry) < 0), None)
        if negative is not None and self.dialect.stored_epochs_are_checked:
            self._note(path / EPOCHS, f"it has a negative entry, {tuple(negative)}", fatal=True)
            return False
        return True

    def _note(self, path: Path, reason: str, *, fatal: bool) -> None:
        parsed = parse_partition(path.parent.name)
        remedy = ""
        if parsed is not None and path.name == PARTITION_METADATA:
            remedy = topic_id_remedy(parsed[0], self.cluster.ids.get(parsed[0]))
        blocker = Remark(path, reason.removeprefix(f"{path} "), remedy)
        if fatal or not self.dialect.loading_survives_storage_errors:
            self.fatal.append(blocker)
        else:
            self._give_up(path.parent.parent, blocker)

    def _give_up(self, directory: Path, why: Remark) -> None:
        if directory in self.offline:
            self.further.append(why)
        else:
            self.offline[directory] = why

    def _whole(self, path: Path, names: Collection[str], checkpoints: Checkpoints) -> WholeLog | None:
        """Return the log if it is undamaged and its index files have no entries, else None."""
        faulty = self.running.without_entries.get(path)
        if not faulty or path.name == METADATA_LOG or is_unusual(names) or path in self.running.torn:
            return None
        return WholeLog(path, names, faulty, checkpoints)

    def _follows(self, path: Path, names: Collection[str], checkpoints: Checkpoints) -> bool:
        """Note the effect of a start on a log if it follows from its files; return False otherwise."""
        whole = self._whole(path, names, checkpoints)
        kept = None if whole is None else whole.kept()
        if whole is None or kept is None:
            return False
        topic, _, mark = parse_partition(path.name) or ("", 0, "")
        if topic and not mark:
            settings = self._settings.of(topic, index_interval_bytes=DEFAULT)
            if settings.is_tiered or not whole.keeps_its_segments(settings.config, self.running.clock()):
                return False
        self.rewritten |= kept.rewritten
        ends = Ends(kept.end, kept.end, checkpoints.recovery_point)
        self.partitions.append(
            PartitionStart(path, "kept", "", (kept.start, kept.start), (kept.end, kept.end), ends=ends)
        )
        return True

    def _simulate(self, path: Path, offsets: CheckpointedOffsets) -> None:
        logged = LoggedRecords(path, may_shrink=self._may_be_compacted(path))
        interval = self._interval(path, logged.sizes)
        loaded = try_load(path, self.dialect, offsets.of(path), interval, logged)
        if loaded.fatal:
            self.fatal.append(Remark(path, loaded.fatal, self._remedy(path, offsets, interval, logged, loaded)))
        elif loaded.failed:
            in_the_way = [path / name for name in snapshot_directories(path) if str(path / name) in loaded.failed]
            what = "it is a directory, in whose place the broker writes a snapshot of the producers"
            self._give_up(path.parent, Remark(in_the_way[0], what) if in_the_way else Remark(path, loaded.failed))
        elif loaded.unknown:
            self.partitions.append(PartitionStart(path, "unknown", loaded.unknown))
        else:
            self.rewritten |= {path / name for name in loaded.rewritten}
            self._compare(path, offsets, interval, logged, loaded)
            self._run(path, offsets.of(path), interval)

    def _may_be_compacted(self, path: Path) -> bool:
        """Return False if the settings of a topic, and the checkpoint of compaction, show that it is not compacted."""
        topic, number, _ = parse_partition(path.name) or ("", 0, "")
        if topic not in self.cluster.topics or self._settings.of(topic, index_interval_bytes=DEFAULT).config.compacts:
            return True
        with contextlib.suppress(UnreadableError):
            return (topic, number) in offsets_of(path.parent / CLEANED_OFFSETS)
        return True

    @cached_property
    def _settings(self) -> Settings:
        places = self.directories or sorted({path.parent for path in self.given})
        return Settings(self.cluster, node_of(places), self.running.properties)

    def _run(self, path: Path, checkpoints: Checkpoints, interval: int) -> None:
        """Find the harm that the broker does to a log after it has loaded it."""
        topic, _, mark = parse_partition(path.name) or ("", 0, "")
        if not topic or mark or path.name == METADATA_LOG:
            return
        settings = self._settings.of(topic, index_interval_bytes=interval)
        files = {name: path / name for name in regular_files(path)}
        log_files = LogFiles(path, files, self.dialect, checkpoints, settings.config, self.running.clock)
        try:
            self.later += harm_of(
                log_files,
                settings,
                self.running.faulty,
                self.running.repairs,
                self.running.release,
                lambda: self._are_recovered(path.parent, but=path),
                self.omitted.append,
            )
        except Exception as error:  # noqa: BLE001 -- input is hostile, and an unexpected error predicts nothing
            reason = f"the effect of the broker on the loaded log is unknown: {type(error).__name__}: {error}"
            self.partitions.append(PartitionStart(path, "unknown", reason))

    def _remedy(
        self, path: Path, offsets: CheckpointedOffsets, interval: int, logged: LoggedRecords, loaded: Loaded
    ) -> str:
        if path in self.repairable or path.name == METADATA_LOG:
            return ""
        advice = self._advice(path, offsets, interval, logged, loaded)
        instead = advice.instead
        if instead.startswith(FROM_A_REPLICA):
            return instead
        if instead:
            return f"{FROM_A_REPLICA}; where none does: {instead}"
        return f"{FROM_A_REPLICA}; {advice.tried}" if advice.tried else FROM_A_REPLICA

    def _advice(
        self, path: Path, offsets: CheckpointedOffsets, interval: int, logged: LoggedRecords, loaded: Loaded
    ) -> Advice:
        """Return the change with which a start keeps more records of a log, or what was tried in vain."""
        try:
            recovers = offsets.clean and self._are_recovered(path.parent, but=path)
            return try_changes(path, self.dialect, interval, loaded, logged, is_recovery_harmless=recovers)
        except Exception as error:  # noqa: BLE001 -- input is hostile: no advice is better than no prediction
            return Advice(None, (("any of them", f"their effect is unknown: {type(error).__name__}: {error}"),))

    def _are_recovered(self, directory: Path, but: Path) -> bool:
        """Return True if a recovery keeps the records of all other logs of a log directory."""
        if directory not in self.harmed:
            self.harmed[directory] = set(self._harmed_by_recovery(directory))
        return not self.harmed[directory] - {but}

    def _harmed_by_recovery(self, directory: Path) -> Iterator[Path]:
        """Yield the logs of a log directory that a recovery shortens more than a start after a clean stop."""
        offsets = CheckpointedOffsets(directory)
        for path in self.suspected:
            if path.parent == directory and path.is_dir():
                now = offsets.of(path)
                whole = self._whole(path, regular_files(path), now)
                if whole is not None and whole.kept() is not None:
                    continue
                logged = LoggedRecords(path)
                interval = self._interval(path, logged.sizes)
                kept, recovered = (
                    try_load(path, self.dialect, replace(now, clean=is_clean), interval, logged)
                    for is_clean in (True, False)
                )
                if recovered.start is None or recovered.lost.records > kept.lost.records:
                    yield path

    def _interval(self, path: Path, sizes: Collection[int]) -> int:
        return self.intervals.of(path / file_name(max(sizes), LOG)).value if sizes else DEFAULT

    def _compare(
        self, path: Path, offsets: CheckpointedOffsets, interval: int, logged: LoggedRecords, loaded: Loaded
    ) -> None:
        """Compare what is readable before the start, by the batches alone, with what the loaded log has."""
        checkpoints = offsets.of(path)
        first = min(logged.sizes, default=0)
        missing = [base for base in self.lost_logs.get(path, ()) if base < first]
        start = max(checkpoints.start_offset, min(missing, default=first))
        changes = tuple(
            SegmentChange(path / file_name(base, LOG), size, after, logged.records_from(base, after or 0))
            for base, size in logged.sizes.items()
            if (after := loaded.segments.get(base)) != size
        )
        assert loaded.end is not None
        end = logged.end
        starts_late = bool(missing) and loaded.start is not None and loaded.start > start
        reason = remedy = ""
        if start > end:
            reason = f"the log start, {start}, is past its end, {end}: the whole log would be deleted"
            remedy = self._advice(path, offsets, interval, logged, loaded).instead
        elif starts_late:
            reason = (
                f"segments before {loaded.start} are missing: the log would start there, and if this broker becomes "
                "the leader, the other replicas delete their records before it, too"
            )
            remedy = f"restore the missing files; or, {FROM_A_REPLICA}"
        elif loaded.lost and not changes:
            if loaded.end < end:
                reason = f"its end would be read as {loaded.end}, and the next appends would overlap existing records"
            else:
                names = ", ".join(path.name for path in logged.leftovers)
                reason = f"the start deletes {names}, though no other file has all its records"
            remedy = self._remedy(path, offsets, interval, logged, loaded)
        elif loaded.split and not loaded.lost:
            reason = f"the offsets of {', '.join(loaded.split)} are more than {INT_MAX} apart: the start splits it"
        elif loaded.compacted > 0 and not self.cluster.is_compacted((parse_partition(path.name) or ("",))[0]):
            reason = (
                f"the start replaces segments as a compaction does, and {counted(loaded.compacted, 'readable record')} "
                "of them will be gone: if the topic is compacted, the compaction removed them"
            )
            changes_of_swaps = " && ".join(move_out(swap).command for swap in logged.swaps)
            remedy = f"if the topic is not compacted, move the replacements out: {changes_of_swaps}; then verify again"
        is_cut = bool(loaded.lost) or starts_late
        limits = (start, loaded.start), (max(end, loaded.end), loaded.end)
        is_open = not remedy and (path in self.damaged or (loaded.lost and changes))
        advice = self._advice(path, offsets, interval, logged, loaded) if is_open else Advice()
        ends = Ends(logged.readable_end, loaded.end, checkpoints.recovery_point)
        outcome: Outcome = "cut" if is_cut else "kept"
        said = remedy, advice.instead, advice.tried
        self.partitions.append(PartitionStart(path, outcome, reason, *limits, changes, *said, loaded.lost, ends))

    # -- several partitions ----------------------------------------------------------------------------------------

    def _find_strays(self) -> None:
        """Find directories that are no partitions of this broker, and settle partitions with several directories."""
        if self.is_kraft:
            known = self.cluster.topics or self.cluster.removed or not self.cluster.makes_topics
            is_complete = bool(known) and any(map(has_metadata_log, self.directories))
            come_first = self.dialect.strays_come_first
            strays = Strays(
                self.ids,
                self.cluster,
                self.node,
                are_complete=is_complete,
                come_first=come_first,
                renames_copies=self.dialect.settles_copies,
            )
            found = {each.directory: each for each in strays.find()}
            if self.metadata_end is not None:
                after = read_metadata(self.directories, self.metadata_end).ids
                cut = strays_after_cut(self.ids, self.cluster.ids, after, come_first=come_first)
                found |= {each.directory: each for each in cut}
            self._replace(found)
            self.aside = {path for path, each in found.items() if each.outcome in {"stray", "renamed"}}
        elif self.managed and self.dialect.topic_ids_are_compared_first and all(map(has_properties, self.managed)):
            self._replace({each.directory: each for each in inconsistent_ids(self.ids)})
        assigned = {(each.topic, each.partition): each.directory_id for each in self.own}
        settles = self.is_kraft and self.dialect.settles_copies
        fills = not self.dialect.has_directory_ids
        copies = Copies(self.managed, assigned, self.aside, self._limits, are_settled=settles, are_filled=fills)
        try:
            settled = copies.settle()
        except Exception as error:  # noqa: BLE001 -- as in _run
            reason = f"the effect on partitions with several directories is unknown: {type(error).__name__}: {error}"
            self.partitions += [PartitionStart(path, "unknown", reason) for path in self.managed]
            return
        self.fatal += settled.fatal
        self.given_up_later = settled.offline.keys() - self.offline.keys()
        self.offline = settled.offline | self.offline
        self.missing += settled.remarks
        self._replace({each.directory: each for each in settled.partitions})
        self.partitions = list(renamed_only(self.partitions, settled.replaced))

    def _replace(self, found: Mapping[Path, PartitionStart]) -> None:
        self.partitions = [each for each in self.partitions if each.directory not in found] + list(found.values())

    def _limits(self, path: Path) -> tuple[int, int]:
        """Return the start and the end of a log after it is loaded."""
        for each in self.partitions:
            if each.directory == path and each.start[1] is not None and each.end[1] is not None:
                return each.start[1], each.end[1]
        try:
            logged = LoggedRecords(path)
        except OSError:
            return 0, 0
        return max(CheckpointedOffsets(path.parent).of(path).start_offset, min(logged.sizes, default=0)), logged.end

    def _aside_copies(self) -> set[Path]:
        """Return the copies of partitions being moved that the start renames; a partition of that kind starts empty."""
        return {path for path in self.aside if (parse_partition(path.name) or ("", 0, ""))[2] == FUTURE}

    def _find_lost(self) -> None:
        """Find the partitions that KRaft's metadata or checkpoints have, but that no log directory has."""
        if not (self.is_kraft and any(map(has_metadata_log, self.directories))):
            self._replace({each.directory: each for each in only_in_checkpoints(self.directories)})
        if self.own:
            links = list(obstructed(self.directories, self.own))
            for path in links:
                why = (NO_TARGET, TARGET_MISSING) if path.is_symlink() else (NO_DIRECTORY, MOVE_OUT)
                self._give_up(path.parent, Remark(path, *why))
            lost, remarks = lost_partitions(self.directories, self.own, self._aside_copies())
            lost = [each for each in lost if each.directory not in links]
            empty = {each.directory for each in lost}
            self.partitions = [each for each in self.partitions if each.directory not in empty] + lost
            self.missing += remarks
            self.missing += without_directory_ids(self.directories, (each.directory_id for each in self.own))
