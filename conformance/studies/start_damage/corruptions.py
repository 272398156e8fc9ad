"""Corruptions of the files of a stopped broker, one function each.

Each takes, or returns a function that takes, the :class:`Site` of the corruption. A corruption of one partition changes
nothing outside the partition's directory and its lines in the checkpoints, so that many corruptions can share a start.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.studies.start_damage.observing import LOG_DIRS, TOPIC
from kidx.layout import LOG_OVERHEAD, RECORD_BATCH
from kidx.records import file_batches
from kidx.records.builder import write_checksum
from kidx.segment import file_name

if TYPE_CHECKING:
    from pathlib import Path

_LENGTH: Final = RECORD_BATCH.codec("length")
_RECORDS_AT: Final = RECORD_BATCH.size
_OLD_NS: Final = 600_000_000 * 10**9
OTHER_ID: Final = "AAAAAAAAAAAAAAAAAAAAZw"
"""Topic id that no topic has."""


class InapplicableError(Exception):
    """A corruption of something that the broker's release does not have."""


class Site(NamedTuple):
    """Place of a corruption.

    Attributes:
        root: The directory of the broker.
        partition: The directory of the case's partition.
    """

    root: Path
    partition: Path

    @property
    def log_dir(self) -> Path:
        """Log directory of the partition."""
        return self.partition.parent

    @property
    def metadata(self) -> Path:
        """Directory of KRaft's own log.

        Raises:
            InapplicableError: the broker runs with ZooKeeper.
        """
        path = self.root / LOG_DIRS[0] / "__cluster_metadata-0"
        if not path.is_dir():
            raise InapplicableError(path)
        return path

    def file(self, base: int, suffix: str = ".log") -> Path:
        """Return a file of the partition."""
        return self.partition / file_name(base, suffix)

    def bases(self) -> list[int]:
        """Return the base offsets of the segments."""
        return sorted(int(path.stem) for path in self.partition.glob("*.log"))


Damage = Callable[[Site], None]
"""Function that corrupts files at a site."""


# -- files as a whole ----------------------------------------------------------------------------------------------


def nothing(site: Site) -> None:
    """Change nothing, so that the start of an intact partition is predicted, too."""
    del site


def delete(*names: str) -> Damage:
    """Delete the files of the partition that match one of the patterns."""

    def do(site: Site) -> None:
        for name in names:
            for path in list(site.partition.glob(name)):
                path.unlink()

    return do


def write(name: str, text: str | bytes) -> Damage:
    """Write a file of the partition."""

    def do(site: Site) -> None:
        (site.partition / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    return do


def overwrite(pattern: str, data: bytes) -> Damage:
    """Write the same bytes into every file that matches a pattern."""

    def do(site: Site) -> None:
        for path in site.partition.glob(pattern):
            path.write_bytes(data)

    return do


def cut(base: int, size: int, suffix: str = ".log") -> Damage:
    """Keep the first bytes of a file. With a negative size, delete the last bytes."""

    def do(site: Site) -> None:
        path = site.file(base, suffix)
        path.write_bytes(path.read_bytes()[:size])

    return do


def extend(base: int, data: bytes, suffix: str = ".log") -> Damage:
    """Append bytes to a file."""

    def do(site: Site) -> None:
        with site.file(base, suffix).open("ab") as file:
            file.write(data)

    return do


def zero_out(base: int, suffix: str, size: int | None = None) -> Damage:
    """Overwrite the last bytes of a file of a segment with zeros, as many as ``size``, or all."""

    def do(site: Site) -> None:
        path = site.file(base, suffix)
        data = path.read_bytes()
        count = len(data) if size is None else size
        path.write_bytes(data[: len(data) - count] + bytes(count))

    return do


def make_old(base: int, suffix: str = ".log") -> Damage:
    """Set the modification time of a file to a time before all limits of retention."""
    return lambda site: os.utime(site.file(base, suffix), ns=(_OLD_NS, _OLD_NS))


def repeat_batch(source: int, number: int, base: int) -> Damage:
    """Append a batch of one segment to the ``.log`` of another, or of the same."""

    def do(site: Site) -> None:
        batches = list(file_batches(site.file(source)))
        extend(base, batches[number].to_bytes())(site)

    return do


def spread(base: int, number: int) -> Damage:
    """Raise the offsets of the batches of a segment by 2**31, from a number on."""

    def do(site: Site) -> None:
        path = site.file(base)
        content = bytearray(path.read_bytes())
        for each in list(file_batches(path))[number:]:
            RECORD_BATCH.set(content, "base_offset", each.base_offset + 2**31, each.position)
        path.write_bytes(content)

    return do


def cut_swap(base: int, size: int) -> Damage:
    """Rename a segment as an interrupted compaction does, and cut its ``.log.swap`` to this size."""

    def do(site: Site) -> None:
        rename(base, ".swap")(site)
        path = site.file(base, ".log.swap")
        path.write_bytes(path.read_bytes()[:size])

    return do


def rename(base: int, mark: str, *, suffixes: tuple[str, ...] = (".log", ".index", ".timeindex")) -> Damage:
    """Append a suffix to the names of a segment's files, as an interrupted compaction or deletion does."""

    def do(site: Site) -> None:
        for suffix in suffixes:
            path = site.file(base, suffix)
            path.rename(path.with_name(path.name + mark))

    return do


def copy(base: int, name: str, suffixes: tuple[str, ...] = (".log",)) -> Damage:
    """Copy files of a segment to another name."""

    def do(site: Site) -> None:
        for suffix in suffixes:
            shutil.copy(site.file(base, suffix), site.partition / name.replace("*", suffix))

    return do


def make_directory(name: str) -> Damage:
    """Create a directory in the partition; it replaces a file with this name."""

    def do(site: Site) -> None:
        (site.partition / name).unlink(missing_ok=True)
        (site.partition / name).mkdir()

    return do


# -- batches -------------------------------------------------------------------------------------------------------


def batch(base: int, number: int, change: Callable[[bytearray], None], *, checksum: bool = False) -> Damage:
    """Change a batch of a segment in place; with ``checksum``, also correct the batch's checksum."""

    def do(site: Site) -> None:
        path = site.file(base)
        data = bytearray(path.read_bytes())
        at, size = 0, _size_of(data, 0)
        for _ in range(number):
            at += size
            size = _size_of(data, at)
        changed = data[at : at + size]
        change(changed)
        if checksum:
            write_checksum(changed)
        data[at : at + size] = changed
        path.write_bytes(data)

    return do


def _size_of(data: bytearray, at: int) -> int:
    return LOG_OVERHEAD + int(_LENGTH.unpack_from(data, at + RECORD_BATCH.field("length").offset)[0])


def flip(data: bytearray) -> None:
    """Flip a bit of the last record."""
    data[-3] ^= 1


def zero(data: bytearray) -> None:
    """Overwrite the whole batch with zeros."""
    data[:] = bytes(len(data))


def set_field(name: str, value: int) -> Callable[[bytearray], None]:
    """Set a field of the header of a batch."""
    return lambda data: RECORD_BATCH.set(data, name, value)


def set_base(offset: int) -> Callable[[bytearray], None]:
    """Set the base offset of a batch, which the checksum does not cover."""
    return set_field("base_offset", offset)


# Changes of a batch to a negative size, an unknown format, a wrong number of records, an end before its last record,
# a compression that it does not have, and the beginning of a transaction.
set_size = set_field("length", -5)
set_magic = set_field("magic", 9)
set_count = set_field("record_count", 7)
set_delta = set_field("last_offset_delta", 0)
claim_gzip = set_field("attributes", 1)
set_transactional = set_field("attributes", 1 << 4)


def repeat_offsets(data: bytearray) -> None:
    """Give the second record the offset of the first."""
    first = data[_RECORDS_AT] >> 1  # zigzag length of the first record, below 64
    length = first if data[_RECORDS_AT] < 128 else ((data[_RECORDS_AT] & 127) | (data[_RECORDS_AT + 1] << 7)) >> 1
    head = 1 if data[_RECORDS_AT] < 128 else 2
    second = _RECORDS_AT + head + length
    second_head = 1 if data[second] < 128 else 2
    # attributes, timestamp delta, offset delta
    data[second + second_head + 2] = 0


def both(*damages: Damage) -> Damage:
    """Apply several corruptions in order."""

    def do(site: Site) -> None:
        for damage in damages:
            damage(site)

    return do


# -- checkpoints of a log directory --------------------------------------------------------------------------------


def set_offset(checkpoint: str, offset: int | None) -> Damage:
    """Set the partition's line in a checkpoint; delete the line if the offset is None."""

    def do(site: Site) -> None:
        path = site.log_dir / checkpoint
        lines = path.read_text("utf-8").splitlines()[2:]
        name, _, number = site.partition.name.rpartition("-")
        kept = [line for line in lines if line.rpartition(" ")[0] != f"{name} {number}"]
        if offset is not None:
            kept.append(f"{name} {number} {offset}")
        path.write_text("".join(f"{line}\n" for line in ("0", str(len(kept)), *kept)), "utf-8")

    return do


def in_log_dir(name: str, text: str | bytes | None) -> Damage:
    """Write a file of the partition's log directory; delete the file if the text is None."""

    def do(site: Site) -> None:
        path = site.log_dir / name
        if text is None:
            path.unlink()
        else:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())

    return do


def in_metadata_dir(name: str, text: str | bytes | None) -> Damage:
    """Write a file of the log directory that contains KRaft's own log; delete the file if the text is None."""
    return lambda site: in_log_dir(name, text)(site._replace(partition=site.root / LOG_DIRS[0] / site.partition.name))


def replace_in_log_dir(name: str, old: str, new: str) -> Damage:
    """Replace each line that begins with ``old``, in a file of the partition's log directory."""
    return lambda site: _replace(site.log_dir / name, old, new)


def replace(name: str, old: str, new: str) -> Damage:
    """Replace each line that begins with ``old``, in a file of the partition."""
    return lambda site: _replace(site.partition / name, old, new)


def _replace(path: Path, old: str, new: str) -> None:
    changed = [new if line.startswith(old) else line for line in path.read_text("utf-8").splitlines()]
    path.write_text("".join(f"{line}\n" for line in changed), "utf-8")


def directory_in_log_dir(name: str) -> Damage:
    """Create a directory in the log directory."""

    def do(site: Site) -> None:
        (site.log_dir / name).mkdir()

    return do


def copy_to_the_other_log_dir(site: Site) -> None:
    """Copy the partition to the broker's other log directory."""
    other = next(site.root / name for name in LOG_DIRS if site.root / name != site.log_dir)
    shutil.copytree(site.partition, other / site.partition.name)


def move_to_the_other_log_dir(site: Site) -> None:
    """Move the partition to the broker's other log directory."""
    other = next(site.root / name for name in LOG_DIRS if site.root / name != site.log_dir)
    shutil.move(site.partition, other / site.partition.name)


def rename_partition(suffix: str) -> Damage:
    """Append a suffix to the name of the partition's directory."""

    def do(site: Site) -> None:
        site.partition.rename(site.partition.with_name(f"{site.partition.name}{suffix}"))

    return do


def remove_partition(site: Site) -> None:
    """Delete the directory of the partition."""
    shutil.rmtree(site.partition)


def empty_log_dir(site: Site) -> None:
    """Delete the content of the log directory, as if an empty disk were mounted there."""
    for path in site.log_dir.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def copy_directory_id(site: Site) -> None:
    """Give the log directory the ``directory.id`` of the other log directory, as if it were a copy of that disk."""
    properties = site.log_dir / "meta.properties"
    lines = (site.root / LOG_DIRS[0] / "meta.properties").read_text("utf-8").splitlines()
    line = next((line for line in lines if line.startswith("directory.id=")), None)
    if line is None:
        raise InapplicableError(properties)
    kept = [each for each in properties.read_text("utf-8").splitlines() if not each.startswith("directory.id=")]
    properties.write_text("".join(f"{each}\n" for each in (*kept, line)), "utf-8")


# -- KRaft ---------------------------------------------------------------------------------------------------------


def in_kraft_log(damage: Damage) -> Damage:
    """Apply a corruption to KRaft's own log instead of the partition."""
    return lambda site: damage(site._replace(partition=site.metadata))


def flip_snapshot(site: Site) -> None:
    """Flip a bit in the last record batch of the newest snapshot of KRaft's log."""
    path = max(site.metadata.glob("*.checkpoint"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def cut_snapshot(site: Site) -> None:
    """Truncate the newest snapshot of KRaft's log to half its size."""
    path = max(site.metadata.glob("*.checkpoint"))
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def delete_snapshots(site: Site) -> None:
    """Delete all snapshots of KRaft's log, which is complete without them."""
    for path in site.metadata.glob("*.checkpoint"):
        path.unlink()


def flip_kraft_record(number: int) -> Damage:
    """Flip a bit in a batch of KRaft's log."""
    return in_kraft_log(batch(0, number, flip))


def name_of(number: int) -> str:
    """Return the name of the directory of the partition with this number."""
    return f"{TOPIC}-{number}"
