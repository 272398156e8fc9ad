"""Changes of a log directory that an operator can make before a start. Each is tried on a view before it is named.

A view is a scratch directory with the checkpoints of the log directory and links to the files of one partition, or of
all. A change replaces links and copies of the view, never a file of the log directory.
"""

from __future__ import annotations

import contextlib
import os
import re
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kidx.discovery import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG,
    META_PROPERTIES,
    METADATA_TOPIC,
    OFFSET_CHECKPOINTS,
    RECOVERY_POINTS,
    START_OFFSETS,
    parse_partition,
)
from kidx.errors import KidxError
from kidx.files import read_small
from kidx.java_values import LONG_MAX
from kidx.printable import counted, shell_word
from kidx.rebuild.lock import LOCK_FILE
from kidx.repair import FROM_A_REPLICA
from kidx.scan.blocks import LogBlocks
from kidx.segment.files import file_name
from kidx.startup.checkpoints import UnreadableError, offsets_of
from kidx.startup.readable import LoggedRecords
from kidx.startup.simulation import CheckpointedOffsets, foreign_log, scratch_directory, try_load
from kidx.startup.views import Shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from kidx.dialect import Dialect
    from kidx.startup.simulation import Loaded

_COPIED: Final = (*OFFSET_CHECKPOINTS, CLEAN_SHUTDOWN)
"""Files of a log directory that decide what a start does with a log."""
_OF_A_DIRECTORY: Final = (*_COPIED, CLEANED_OFFSETS, META_PROPERTIES)
"""Files of a log directory that a change may be about."""
_LARGEST_CHECKPOINT: Final = 64 << 20
"""Maximum size in bytes of a file that is copied whole."""

_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


class Change(NamedTuple):
    """Change of a partition, or of its line in a checkpoint.

    Attributes:
        what: the change in plain English, as an order.
        command: shell command for the operator.
        apply: the same on a view, given the directory of the partition in it.
    """

    what: str
    command: str
    apply: Callable[[Path], None]


def make_directory_view(partition: Path, scratch: Path) -> Path:
    """Fill a scratch directory with the view of a log directory and one of its partitions.

    Args:
        partition: directory of the partition; only read.
        scratch: an empty directory.

    Returns:
        The directory of the partition in the view.

    Raises:
        OSError: the directory or a checkpoint cannot be read.
    """
    for name in _COPIED:
        _copy(partition.parent / name, scratch)
    return _make_links(partition, scratch)


def make_whole_view(directory: Path, view: Path, *, only: Collection[str] | None = None) -> None:
    """Fill a directory with the view of a log directory and its partitions, without its lock.

    Args:
        directory: the log directory; only read.
        view: an empty directory.
        only: names of the partitions that the view has, with KRaft's own log; None for all.

    Raises:
        OSError: the directory or a checkpoint cannot be read.
    """
    for name in _OF_A_DIRECTORY:
        _copy(directory / name, view)
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name in {LOCK_FILE, *_OF_A_DIRECTORY} and entry.is_file():
                continue
            is_partition = parse_partition(entry.name) is not None and entry.is_dir()
            if is_partition and (only is None or entry.name in only):
                _make_links(Path(entry.path), view)
            elif not is_partition or entry.name.startswith(METADATA_TOPIC):
                (view / entry.name).symlink_to(Path(entry.path).absolute())


def _copy(source: Path, view: Path) -> None:
    if source.is_file():
        (view / source.name).write_bytes(read_small(source, limit=_LARGEST_CHECKPOINT))


def _make_links(partition: Path, scratch: Path) -> Path:
    """Make a directory with a link to each file of a partition, and with the owner and the mode of the partition."""
    view = scratch / partition.name
    view.mkdir()
    with os.scandir(partition) as entries:
        for entry in entries:
            (view / entry.name).symlink_to(Path(entry.path).absolute())
    status = partition.stat()
    try:
        os.chown(view, status.st_uid, status.st_gid)
        view.chmod(status.st_mode & 0o777)
    except PermissionError:
        view.chmod(0o777)  # in a scratch directory that only this user can enter
    return view


def set_recovery_point(partition: Path, offset: int, state: Path | None = None) -> Iterator[Change]:
    """Yield the change that makes a start recover a log from an offset on only; ``state`` as in _checkpointed."""
    return _checkpointed(partition, RECOVERY_POINTS, offset, state)


def set_high_watermark(partition: Path, offset: int, state: Path | None = None) -> Iterator[Change]:
    """Yield the change that makes an offset the high watermark of a log; ``state`` as in _checkpointed."""
    return _checkpointed(partition, HIGH_WATERMARKS, offset, state)


def forget_log_start(partition: Path, state: Path | None = None) -> Iterator[Change]:
    """Yield the change that makes a log start with its first segment; ``state`` as in _checkpointed."""
    return _checkpointed(partition, START_OFFSETS, None, state)


def forget_clean_stop(partition: Path) -> Change:
    """Return the change that makes a start recover all logs of the log directory."""
    return move_out_of_directory(partition.parent / CLEAN_SHUTDOWN)


def move_out_of_directory(path: Path) -> Change:
    """Return the change that moves a file out of its log directory; it is applied to a partition of a view."""
    return _moved(path, lambda view: view.parent / path.name)


def move_out(path: Path) -> Change:
    """Return the change that moves a file out of its partition."""
    return _moved(path, lambda view: view / path.name)


def _moved(path: Path, viewed: Callable[[Path], Path]) -> Change:
    aside = _aside(path)
    command = f"mkdir -p {aside} && mv -n {shell_word(path.absolute())} {aside}"
    return Change(f"move {shell_word(path.name)} out", command, lambda view: viewed(view).unlink())


def _aside(path: Path) -> str:
    """Return the directory for a file that is moved out of its directory, as a word of a command.

    It is next to the log directory, and each partition has a directory in it: their files have the same names.
    """
    directory = path.absolute().parent
    if path.name in _OF_A_DIRECTORY:
        return shell_word(f"{directory}.aside")
    return shell_word(f"{directory.parent}.aside/{directory.name}")


def rename(path: Path, name: str) -> Change:
    """Return the change that gives a file of a partition another name."""
    command = f"mv -n {shell_word(path.absolute())} {shell_word(path.absolute().with_name(name))}"
    what = f"rename {shell_word(path.name)} to {shell_word(name)}"
    return Change(what, command, lambda view: _rename(view / path.name, name))


def _rename(path: Path, name: str) -> None:
    path.replace(path.with_name(name))


def cut(path: Path, size: int) -> Change:
    """Return the change that leaves the first bytes of a file, of which a copy is kept."""

    def apply(view: Path) -> None:
        _show(Shown(path, size), view / path.name)

    command = f"{_kept_copy(path)} && truncate -s {size} {shell_word(path.absolute())}"
    return Change(f"cut {shell_word(path.name)} to {counted(size, 'byte')}", command, apply)


def _kept_copy(path: Path) -> str:
    """Return the command that copies a file before a change; the copy's name has its size, and replaces no other."""
    aside, size = _aside(path), path.stat().st_size
    return f"mkdir -p {aside} && cp {shell_word(path.absolute())} {aside}/{shell_word(f'{path.name}.{size}')}"


def write_number(path: Path, position: int, number: int) -> Change:
    """Return the change that writes a 64-bit number into a file, of which a copy is kept."""
    data = number.to_bytes(8, "big", signed=True)
    octal = "".join(f"\\{byte:03o}" for byte in data)

    def apply(view: Path) -> None:
        _show(Shown(path, None, position, data), view / path.name)

    write = f"printf '{octal}' | dd of={shell_word(path.absolute())} bs=1 seek={position} conv=notrunc"
    what = f"write the offset {number} at position {position} of {shell_word(path.name)}"
    return Change(what, f"{_kept_copy(path)} && {write}", apply)


def _show(shown: Shown, link: Path) -> None:
    """Show a file instead of the file of a link, without a copy."""
    link.unlink()
    shown.write(link)


def _checkpointed(partition: Path, name: str, offset: int | None, state: Path | None = None) -> Iterator[Change]:
    """Yield the change of a line in a checkpoint of offsets, if that is legible; no offset removes the line.

    Args:
        state: view of the log directory after earlier changes; the log directory itself if None.
    """
    topic, number, _ = parse_partition(partition.name) or ("", 0, "")
    path, key = (partition.parent / name).absolute(), (topic, number)
    try:
        before = offsets_of((state or partition.parent) / name)
    except UnreadableError:
        return
    if _TOPIC.fullmatch(topic) is None or before.get(key) == offset:
        return
    after = {each: value for each, value in before.items() if each != key}
    if offset is not None:
        after[key] = offset
    line, file = f"{topic} {number} {offset}", shell_word(path)
    pattern = rf"^{topic}[[:space:]]+{number}[[:space:]]".replace(".", r"\.")
    count = f"2s/.*/{len(after)}/"
    if not before:
        command = f"printf '0\\n1\\n{line}\\n' > {file}"
    elif offset is None:
        command = f"sed -E -i -e '{count}' -e '/{pattern}/d' {file}"
    elif key in before:
        command = f"sed -E -i 's/{pattern}.*/{line}/' {file}"
    else:
        command = f"sed -E -i -e '{count}' -e '$a {line}' {file}"

    def apply(view: Path) -> None:
        lines = ["0", str(len(after)), *(f"{topic} {number} {value}" for (topic, number), value in after.items())]
        (view.parent / name).write_text("".join(f"{each}\n" for each in lines), "utf-8")

    what = f"remove its line in {name}" if offset is None else f"set its line in {name} to {offset}"
    yield Change(what, command, apply)


_UNLOADED: Final = "the log cannot be loaded then"
_EITHER: Final = f"{_UNLOADED}, either"
_TRIED: Final = 16
"""Number of changes that are tried: each loads the log."""
_BATCHES: Final = 1 << 20
"""Number of batches of a log that are searched for a wrong offset."""


class Alternative(NamedTuple):
    """Change of a partition, with its simulated result.

    Attributes:
        kept: number of records that a consumer can read after the start.
        lost: number of records that a consumer can read now, but not then.
    """

    change: Change
    kept: int
    lost: int

    def __str__(self) -> str:
        records = counted(self.lost, "readable record")
        cost = f"{records} would be lost" if self.lost else "no readable record is lost"
        command = f"{self.change.command}  # {cost}; then verify again"
        return f"{FROM_A_REPLICA}; where none does: {command}" if self.lost else command


class Advice(NamedTuple):
    """Changes of a partition that were tried on views.

    Attributes:
        best: the change after which a start keeps most records; None if no change keeps more than a start now.
        rejected: what was tried if there is no better change, and its result.
        are_more: True if there are more changes than are tried.
    """

    best: Alternative | None = None
    rejected: tuple[tuple[str, str], ...] = ()
    are_more: bool = False

    @property
    def instead(self) -> str:
        """The best change as text; empty without one."""
        return "" if self.best is None else str(self.best)

    @property
    def tried(self) -> str:
        """The changes that were tried in vain, each with its result, as text; empty if one helps."""
        more = "; there are more, which were not tried" if self.are_more else ""
        said = tried_in_vain(self.rejected, "keeps more records")
        return f"{said}{more}" if said else ""


def tried_in_vain(rejected: Iterable[tuple[str, str]], aim: str) -> str:
    """Return changes that do not help, each with the result of a start after it, as text; empty without one."""
    results = "; ".join(f"{what} ({result})" for what, result in rejected)
    return f"no change that was tried on a view of it {aim}: {results}" if results else ""


def try_changes(
    path: Path,
    dialect: Dialect,
    index_interval_bytes: int,
    loaded: Loaded,
    logged: LoggedRecords,
    *,
    is_recovery_harmless: bool,
) -> Advice:
    """Return the result of the changes of a log that an operator can make before a start.

    Args:
        path: directory of the partition.
        dialect: rules of the release.
        index_interval_bytes: setting of the topic.
        loaded: result of a start without a change.
        logged: its records before the start.
        is_recovery_harmless: True if the other logs of the log directory can be recovered without a loss.
    """
    now = logged.records - loaded.lost.records
    helpful, rejected = [], []
    changes = _changes(path, logged, is_recovery_harmless=is_recovery_harmless)
    for change in islice(changes, _TRIED):
        after = _after(change, path, dialect, index_interval_bytes, logged)
        if isinstance(after, str):
            rejected.append((change.what, after if loaded.start is not None else after.replace(_UNLOADED, _EITHER)))
        elif loaded.start is None or after.kept > now:
            helpful.append(after)
        else:
            fewer = now - after.kept
            rejected.append(
                (change.what, f"{counted(fewer, 'record')} fewer" if fewer else "as many are kept without it")
            )
    if helpful:
        return Advice(min(helpful, key=lambda each: (each.lost, -each.kept)))  # of several, the first changes least
    return Advice(None, tuple(rejected), next(changes, None) is not None)


def _changes(path: Path, logged: LoggedRecords, *, is_recovery_harmless: bool) -> Iterator[Change]:
    """Yield the changes that may help, those first that change least."""
    sizes = logged.sizes
    is_clean = CheckpointedOffsets(path.parent).clean
    if is_clean and is_recovery_harmless:
        yield forget_clean_stop(path)
    if not is_clean:
        yield from set_recovery_point(path, logged.end)
    yield from forget_log_start(path)
    with contextlib.suppress(OSError):
        yield from _misnumbered(path, sizes)
    if (foreign := foreign_log(path)) is not None:
        yield move_out(foreign)
    if not logged.may_shrink:
        for swap in logged.swaps:
            yield move_out(swap)
    for old in (*logged.leftovers, *(piece.path for piece in logged.split)):
        name = old.name.partition(LOG)[0] + LOG
        if not (path / name).exists():
            yield rename(old, name)
    for base in sizes:
        log = path / file_name(base, LOG)
        with contextlib.suppress(OSError):
            if (position := _trouble(log, base)) is not None:
                yield cut(log, position)


def _after(change: Change, path: Path, dialect: Dialect, interval: int, before: LoggedRecords) -> Alternative | str:
    """Return a change with the result of a start after it; the reason if the log cannot be loaded then."""
    with scratch_directory() as scratch:
        try:
            view = make_directory_view(path, scratch)
            change.apply(view)
        except (KidxError, OSError) as error:
            return f"it cannot be tried: {getattr(error, 'strerror', None) or error}"
        checkpoints = CheckpointedOffsets(view.parent).of(view)
        logged = LoggedRecords(view, may_shrink=before.may_shrink)
        loaded = try_load(view, dialect, checkpoints, interval, logged)
        if loaded.start is None or loaded.end is None:
            reason = loaded.fatal or loaded.failed or loaded.unknown
            return f"{_UNLOADED}: {reason.replace(str(view), str(path))}"
        lost = before.lost(loaded.pieces_in(view), checkpoints.start_offset, loaded.start, loaded.end)
        return Alternative(change, logged.records - loaded.lost.records, lost.records)


def _trouble(log: Path, base: int) -> int | None:
    """Return the position of the first batch that a recovery cannot pass; None if it passes all."""
    with LogBlocks(log) as blocks:
        for rows in blocks:
            reached = np.maximum.accumulate([base, *(rows["last_offset"] + 1)])
            wrong = np.flatnonzero(~rows["crc_ok"] | (rows["base_offset"] < reached[:-1]))
            if wrong.size:
                return int(rows["position"][wrong[0]])
            base = int(reached[-1])
    return blocks.tail.valid_bytes if blocks.tail.kind != "whole" else None


def _misnumbered(path: Path, sizes: Mapping[int, int]) -> Iterator[Change]:
    """Yield the change of a batch's base offset, if its neighbours leave only one that is right.

    No checksum covers a base offset. One wrong base offset makes a recovery reject the batch, or all later ones.
    """
    batches = []
    for base in sizes:
        log = path / file_name(base, LOG)
        with LogBlocks(log) as blocks:
            for rows in blocks:
                each = rows[rows["crc_ok"]]
                columns = (each[name].tolist() for name in ("position", "base_offset", "last_offset"))
                batches += [(log, base, *values) for values in zip(*columns, strict=True)]
        if len(batches) > _BATCHES:
            return
    following = next(iter(sizes), 0)
    for (log, base, position, first, last), (_, next_base, next_position, next_first, _) in pairwise(batches):
        right = max(following, base) if position == 0 else following
        after = next_base if next_position == 0 else next_first
        if first != right <= LONG_MAX and right + last - first + 1 == after:
            yield write_number(log, position, right)
            return
        following = last + 1
