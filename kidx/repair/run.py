"""Run of a repair: verification, rebuild and second verification, while no broker can start.

Index files are rebuilt, and a ``leader-epoch-checkpoint`` from the batches of its log, as a broker that appends them
writes it. In the cache of remote index files, corrupt copies are deleted: the broker fetches them again (RC-5).
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kidx.dialect import Dialect, dialect_of
from kidx.discovery import EPOCHS, Found, discover
from kidx.errors import InvalidArgumentError, KidxError, ToolError
from kidx.files import NO_SPACE
from kidx.log.epochs import LeaderEpochCache
from kidx.printable import counted, encodable
from kidx.producers.manager import load_producers_before
from kidx.rebuild import rebuild
from kidx.rebuild.in_place import WORK, swap_in, work_directory
from kidx.rebuild.lock import broker_locks, lock_owner, log_directories_of
from kidx.remote.cache import CacheFault, faults_of
from kidx.remote.entry import DIRECTORY
from kidx.repair.backup import Backup, back_up, check_place
from kidx.repair.interval import Intervals, intervals_of_topics, warning_of
from kidx.repair.plan import TRANSACTIONS, Plan, RemainingFault, against_a_link, plan
from kidx.verify import Verification, verify_paths
from kidx.verify.epoch_rules import epochs_of
from kidx.verify.segment import verify_segment

if TYPE_CHECKING:
    from kidx.discovery import Partition
    from kidx.segment import ProducerState


def write_epochs(partition: Partition, directory: Path) -> Path:
    """Write the checkpoint of a partition into another directory, in the format of all releases.

    An epoch whose leader appended nothing is in no batch, and therefore not in the checkpoint.

    Args:
        partition: partition with sound logs.
        directory: empty directory for the checkpoint.

    Raises:
        InvalidArgumentError: the epochs of the batches contradict each other, so that a broker would drop some.
        OSError: the file cannot be written.
    """
    logged = epochs_of([verify_segment(segment) for segment in partition.segments])
    path = directory / EPOCHS
    cache = LeaderEpochCache(path)
    for entry in logged:
        cache.assign(*entry)
    if cache.entries != logged:
        raise InvalidArgumentError("the leader epochs of the batches do not ascend")
    if partition.start_offset:
        cache.truncate_from_start(partition.start_offset)
    return path


def cache_faults(log_directories: Iterable[Path], dialect: Dialect) -> list[CacheFault]:
    """Return the faults that prevent a broker from opening the caches below some log directories."""
    if not dialect.has_remote_index_cache:
        return []
    found: list[CacheFault] = []
    for cache in sorted({each.absolute() / DIRECTORY for each in log_directories}):
        try:
            found += faults_of(cache, dialect) if cache.is_dir() else []
        except OSError as error:
            found.append(CacheFault(cache, "RC-2", f"cannot be read: {error.strerror or error}"))
    return found


def delete_copy(fault: CacheFault, *, dry_run: bool) -> int:
    """Delete a corrupt copy of a remote file, and return its former size in bytes.

    Raises:
        OSError: the path is not a regular file, or cannot be deleted.
    """
    if fault.path.is_symlink() or not fault.path.is_file():
        raise OSError("only a regular file is deleted, not a link or a directory")
    size = fault.path.stat().st_size
    if not dry_run:
        fault.path.unlink()
    return size


_INDEX_BYTES: Final = 10 << 20
"""``segment.index.bytes`` by default."""

Verify = Callable[..., Verification]
"""Function with the arguments of :func:`kidx.verify.verify_paths`."""


@dataclass(frozen=True, slots=True)
class Change:
    """Index file or checkpoint that was rebuilt, or would be.

    Attributes:
        action: ``replaced``, ``created``, ``removed`` (a ``.txnindex`` of a log without aborted transactions) or
            ``deleted`` (a corrupt copy of a remote file, which the broker fetches again).
        size: bytes of the new file; 0 without one.
        old_size: bytes of the old file; None if it did not exist.
        index_interval_bytes: interval of the entries; None for a checkpoint, and for a deleted copy.
        kept: path of the old file; None without one, and in a dry run.
    """

    path: str
    action: str
    size: int
    old_size: int | None
    index_interval_bytes: int | None
    kept: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return an object of ``kidx repair --json``."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: encodable(value) if isinstance(value, str) else value for name, value in values.items()}


@dataclass(slots=True)
class Repair:
    """Result of a repair.

    Attributes:
        before: verification before the repair.
        dry_run: True if nothing was changed.
        after: verification of the changed partitions after the repair.
        changes: files that were rebuilt, or would be.
        remaining: Faults that are not repaired.
        warnings: warnings about guessed values.
        held: log directories that a running broker holds, in a dry run; any other repair raises an error then.
        backup: copies of the changed files; None without them.
        release: release whose rules were followed.
    """

    before: Verification
    dry_run: bool
    after: Verification = field(default_factory=Verification)
    changes: list[Change] = field(default_factory=list)
    remaining: list[RemainingFault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    held: list[Path] = field(default_factory=list)
    backup: Backup | None = None
    release: str = ""

    @property
    def exit_code(self) -> int:
        """Exit code. 0: all is exact or sound now; 1: a fault remains; 2: nothing could be read."""
        if self.before.exit_code == 2:
            return 2
        return int(bool(self.remaining) or (self.dry_run and bool(self.changes)))

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``kidx repair --json``."""
        return {
            "release": self.release,
            "dry_run": self.dry_run,
            "sound": self.exit_code == 0,
            "changed": [change.to_json() for change in self.changes],
            "refused": [{"path": encodable(each.path), "reason": encodable(each.reason)} for each in self.remaining],
            "warnings": [encodable(warning) for warning in self.warnings],
            "backup": None if self.backup is None else self.backup.to_json(),
        }


def repair_paths(
    paths: Iterable[str | os.PathLike[str]],
    *,
    release: str | Dialect | None = None,
    index_interval_bytes: int | None = None,
    dry_run: bool = False,
    backup: Path | None = None,
    verify: Verify = verify_paths,
    **options: Any,
) -> Repair:
    """Rebuild the index files that are broken or missing and whose logs are sound, and keep the old files.

    Args:
        paths: segments, partitions and log directories.
        release: release whose recovery is followed; the newest by default.
        index_interval_bytes: the topics' setting; inferred, partition by partition, if None.
        dry_run: True to rebuild into a scratch directory, and to write nothing under the paths.
        backup: new or empty directory, into which files are copied before they change; None for no copies.
        verify: function like :func:`kidx.verify.verify_paths`, called before and after the repair.
        options: options of ``verify``.

    Raises:
        ToolError: a broker holds a log directory, its lock cannot be opened, the disk is full, or the backup cannot be
            written; nothing is changed without the backup.
        ValueError: the release is unknown.
    """
    dialect = dialect_of(release)
    found = discover(paths)
    locks = {lock for partition in found.partitions for lock in log_directories_of(partition.directory)}
    if backup is not None:
        check_place(backup, locks)
    with contextlib.nullcontext() if dry_run else broker_locks(locks):
        options["index_interval_bytes"] = index_interval_bytes
        before = verify(found, release=None if release is None else dialect, **options)
        result = Repair(before, dry_run, release=dialect.release)
        planned = plan(before, {each.directory for each in found.partitions if not each.complete})
        result.remaining += planned.remaining
        copies = cache_faults(locks, dialect)
        changing = [log.with_suffix(each) for log, suffixes in planned.repairs.items() for each in suffixes]
        changing += [*planned.epochs, *(fault.path for fault in copies if fault.is_copy)]
        if backup is not None and changing and not dry_run:
            result.backup = back_up((path for path in changing if not _is_rejected(path)), backup)
        _rebuild_indexes(planned, result, dialect, index_interval_bytes)
        _rebuild_epochs({each.directory: each for each in found.partitions}, planned.epochs, result)
        _remove_leftovers(found, dry_run=dry_run)
        if dry_run:
            result.held = sorted(lock for lock in locks if lock_owner(lock) is not None)
        elif result.changes:
            _verify_again(found, result, verify, release=None if release is None else dialect, **options)
        _delete_corrupt_copies(copies, result)
    result.remaining.sort(key=lambda fault: fault.path)
    return result


def _delete_corrupt_copies(faults: Iterable[CacheFault], result: Repair) -> None:
    """Delete corrupt copies of remote files; other faults of a cache remain."""
    for fault in faults:
        if not fault.is_copy:
            result.remaining.append(RemainingFault(str(fault.path), fault.reason, "file"))
            continue
        try:
            size = delete_copy(fault, dry_run=result.dry_run)
        except OSError as error:
            words = error.strerror or str(error)
            result.remaining.append(RemainingFault(str(fault.path), f"cannot be deleted: {words}", "file"))
            continue
        result.changes.append(Change(str(fault.path), "deleted", 0, size, None))


def _remove_leftovers(found: Found, *, dry_run: bool) -> None:
    """Remove the leftovers of a repair that was killed at its end."""
    for partition in found.partitions:
        if not dry_run and os.path.lexists(partition.directory / WORK):
            with work_directory(partition.directory.absolute()):
                pass


def _rebuild_indexes(planned: Plan, result: Repair, dialect: Dialect, given: int | None) -> None:
    """Rebuild the index files of a plan; ``given`` is the topics' ``index.interval.bytes``, if it is known."""
    settings = intervals_of_topics(_log_directories(planned)) if given is None else {}
    intervals = Intervals(result.before.files, given, settings)
    guesses = []
    index_bytes: dict[Path, int] = defaultdict(lambda: _INDEX_BYTES)  # by partition directory
    for file in result.before.files:
        parent = Path(file.path).parent
        if not file.path.endswith(".log"):
            index_bytes[parent] = max(index_bytes[parent], file.size or 0)
    for log, suffixes in sorted(planned.repairs.items()):
        choice = intervals.of(log)
        try:
            producers = load_producers_before(log, dialect) if TRANSACTIONS in suffixes else None
            size = index_bytes[log.parent]
            done = _rebuild_segment(log, suffixes, dialect, choice.value, size, producers, dry_run=result.dry_run)
        except (KidxError, OSError) as error:
            words = getattr(error, "strerror", None) or str(error)
            if getattr(error, "errno", None) in NO_SPACE:
                raise ToolError(_full(log, words, result)) from error
            result.remaining += [
                RemainingFault(str(log.with_suffix(suffix)), f"cannot be rebuilt: {words}") for suffix in suffixes
            ]
            continue
        result.changes += done
        if suffixes != [TRANSACTIONS]:
            guesses.append(choice.guess)
    result.warnings += warning_of(guesses)


def _log_directories(planned: Plan) -> set[Path]:
    """Return the log directories of the files to repair."""
    return {directory for log in planned.repairs for directory in log_directories_of(log.parent)}


def _full(log: Path, words: str, result: Repair) -> str:
    if result.dry_run:
        directory = tempfile.gettempdir()
        return f"cannot rebuild the indexes of {log} in {directory}: {words}; set TMPDIR to another directory"
    done = counted(len(result.changes), "index file")
    return f"cannot rebuild the indexes of {log}: {words}; {done} rebuilt before, all others are unchanged"


def _rebuild_epochs(partitions: dict[Path, Partition], paths: list[Path], result: Repair) -> None:
    """Rebuild checkpoints of leader epochs; ``partitions`` has the partition of each directory."""
    for path in paths:
        try:
            _check_plain(path)
            partition = partitions[path.parent]
            with _work_directory_for(path.parent, dry_run=result.dry_run) as work:
                new, old = write_epochs(partition, work).stat().st_size, _size(path)
                kept = {} if result.dry_run else swap_in(work, [path], partition.segments[0].log)
        except (KidxError, OSError) as error:
            words = getattr(error, "strerror", None) or str(error)
            if isinstance(error, OSError) and error.errno in NO_SPACE:
                raise ToolError(_full(path, words, result)) from error
            result.remaining.append(RemainingFault(str(path), f"cannot be rebuilt: {words}", "checkpoint"))
            continue
        where = str(kept[path]) if path in kept else None
        result.changes.append(Change(str(path), "created" if old is None else "replaced", new, old, None, where))


def _rebuild_segment(
    log: Path,
    suffixes: list[str],
    dialect: Dialect,
    interval: int,
    index_bytes: int,
    producers: ProducerState | None,
    *,
    dry_run: bool,
) -> list[Change]:
    paths = [log.with_suffix(suffix) for suffix in suffixes]
    for path in paths:
        _check_plain(path)
    with _work_directory_for(log.parent, dry_run=dry_run) as work:
        rebuild(
            log,
            work,
            dialect=dialect,
            index_interval_bytes=interval,
            segment_index_bytes=index_bytes,
            producer_state=producers,
        )
        sizes = {path: (_size(work / path.name), _size(path)) for path in paths}
        kept = {} if dry_run else swap_in(work, paths, log)
    changes = []
    for path, (new, old) in sizes.items():
        action = "removed" if new is None else "created" if old is None else "replaced"
        where = str(kept[path]) if path in kept else None
        changes.append(Change(str(path), action, new or 0, old, interval, where))
    return changes


def _is_rejected(path: Path) -> bool:
    """Return True if a path is a link or no file, which no repair changes."""
    return path.is_symlink() or (path.exists() and not path.is_file())


def _check_plain(path: Path) -> None:
    if path.is_symlink():
        raise OSError(against_a_link(path))


@contextlib.contextmanager
def _work_directory_for(directory: Path, *, dry_run: bool) -> Iterator[Path]:
    if not dry_run:
        with work_directory(directory.absolute()) as work:
            yield work
        return
    with tempfile.TemporaryDirectory(prefix="kidx-repair-") as work_name:
        yield Path(work_name)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _verify_again(found: Found, result: Repair, verify: Verify, **options: Any) -> None:
    """Verify the changed partitions again; add a fault that remains to ``remaining``."""
    changed = {Path(change.path).parent for change in result.changes}
    again = [
        partition.directory if partition.complete else segment.log
        for partition in found.partitions
        if partition.directory in changed
        for segment in partition.segments
    ]
    result.after = verify(discover(dict.fromkeys(again)), **options)
    known = {fault.path for fault in result.remaining}
    for fault in (*(still := plan(result.after)).remaining,):
        if fault.path not in known:
            result.remaining.append(fault)
    left = [str(log.with_suffix(suffix)) for log, suffixes in still.repairs.items() for suffix in suffixes]
    for path in [*left, *map(str, still.epochs)]:
        if path not in known:
            message = next((finding.message for finding in result.after.findings if finding.path == path), "")
            result.remaining.append(RemainingFault(path, f"is still broken after its recovery: {message}"))
