"""Corruptions that were seen in production: files of other partitions, links, ``.kafka_cleanshutdown``, odd names.

``sealed`` in a name means that a segment is inactive.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from conformance.experiments.start_damage import corruptions as do
from conformance.experiments.start_damage.prepared import LOG_DIRS, NEIGHBOUR, NEIGHBOURS, Shutdown
from kidx.segment import file_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from conformance.experiments.start_damage.corruptions import Damage, Site

_MARK: Final = ".kafka_cleanshutdown"
_EPOCH_AT: Final = 12
"""Position of the leader epoch in a record batch."""
_ALL: Final = (".log", ".index", ".timeindex")


def _neighbour(site: Site) -> Path:
    """Return the directory of a partition of the other topic. Consecutive cases use different partitions."""
    number = int(site.partition.name.rpartition("-")[2]) % NEIGHBOURS
    return next(path for name in LOG_DIRS if (path := site.root / name / f"{NEIGHBOUR}-{number}").is_dir())


def _exchange(one: Path, other: Path) -> None:
    aside = one.with_name(f"{one.name}.aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def _exchanged(base: int, suffixes: Iterable[str]) -> Damage:
    """Exchange files of a segment with the same files of a partition of the other topic."""

    def change(site: Site) -> None:
        for suffix in suffixes:
            _exchange(site.file(base, suffix), _neighbour(site) / file_name(base, suffix))

    return change


def _overwritten(base: int, suffixes: Iterable[str]) -> Damage:
    """Overwrite files of a segment with the same files of a partition of the other topic."""

    def change(site: Site) -> None:
        for suffix in suffixes:
            shutil.copy(_neighbour(site) / file_name(base, suffix), site.file(base, suffix))

    return change


def _exchange_directories(site: Site) -> None:
    _exchange(site.partition, _neighbour(site))


def _take_the_id(site: Site) -> None:
    """Replace ``partition.metadata`` by the file of the other topic, which has that topic's id."""
    shutil.copy(_neighbour(site) / "partition.metadata", site.partition)


def _linked(site: Site) -> None:
    """Move the partition's directory out of the log directory, and replace it by a symbolic link."""
    target = site.root / site.partition.name
    shutil.move(site.partition, target)
    site.partition.symlink_to(target)


def _linked_to_nothing(site: Site) -> None:
    """Move the partition's directory away, and replace it by a symbolic link to a directory that does not exist."""
    _linked(site)
    target = site.root / site.partition.name
    target.rename(target.with_name(f"{target.name}.aside"))


def _dangling(base: int, suffix: str) -> Damage:
    """Replace a file by a symbolic link to a file that does not exist."""

    def change(site: Site) -> None:
        path = site.file(base, suffix)
        path.unlink()
        path.symlink_to("nowhere")

    return change


def _mark(*names: str, text: str | None) -> Damage:
    """Write ``.kafka_cleanshutdown`` in log directories; delete it if the text is None."""

    def change(site: Site) -> None:
        for name in names:
            path = site.root / name / _MARK
            if text is None:
                path.unlink()
            else:
                path.write_text(text, "utf-8")

    return change


def _cut_metadata(part: float) -> Damage:
    """Keep the first part of KRaft's own log, and delete its snapshots."""

    def change(site: Site) -> None:
        do.delete_snapshots(site)
        path = site.metadata / file_name(0, ".log")
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])

    return change


def _without(key: str) -> Damage:
    """Delete the line of a property from ``meta.properties`` of the log directory."""

    def change(site: Site) -> None:
        path = site.log_dir / "meta.properties"
        kept = [line for line in path.read_text("utf-8").splitlines() if not line.startswith(key)]
        path.write_text("".join(f"{line}\n" for line in kept), "utf-8")

    return change


def _line_of(checkpoint: str, line: str) -> Damage:
    """Add a line to a checkpoint of the log directory."""

    def change(site: Site) -> None:
        path = site.log_dir / checkpoint
        lines = [*path.read_text("utf-8").splitlines()[2:], line]
        path.write_text("".join(f"{each}\n" for each in ("0", str(len(lines)), *lines)), "utf-8")

    return change


def _file_in_log_dir(name: str) -> Damage:
    return do.in_log_dir(name, "hello\n")


def _of_a_partition(base: int) -> dict[str, Damage]:
    """Return the corruptions of one partition, given the base offset of the active segment."""
    return {
        "a sealed .log exchanged with another topic": _exchanged(12, [".log"]),
        "a sealed .index exchanged with another topic": _exchanged(12, [".index"]),
        "a sealed .timeindex exchanged with another topic": _exchanged(12, [".timeindex"]),
        "a sealed segment exchanged with another topic": _exchanged(12, _ALL),
        "the active .log exchanged with another topic": _exchanged(base, [".log"]),
        "the active .index exchanged with another topic": _exchanged(base, [".index"]),
        "the active segment exchanged with another topic": _exchanged(base, _ALL),
        "a sealed .log overwritten with another topic": _overwritten(12, [".log"]),
        "the active .log overwritten with another topic": _overwritten(base, [".log"]),
        "a sealed .log is a link to no file": _dangling(12, ".log"),
        "a sealed .index is a link to no file": _dangling(12, ".index"),
        "an empty .log beyond the end": do.write(file_name(500, ".log"), b""),
        "a producer snapshot beyond the end": do.write(file_name(500, ".snapshot"), b""),
        "a .log whose number is too large": do.write("99999999999999999999.log", b""),
        "a .log with a negative number": do.write("-1.log", b""),
        "a directory named like a producer snapshot": do.make_directory(file_name(500, ".snapshot")),
        "sealed batch: a higher leader epoch": do.batch(12, 2, do.set_int(_EPOCH_AT, 7)),
        "active batch: a higher leader epoch": do.batch(base, 2, do.set_int(_EPOCH_AT, 7)),
        "active, last batch: a higher leader epoch": do.batch(base, 5, do.set_int(_EPOCH_AT, 7)),
        "sealed batch: a negative leader epoch": do.batch(12, 2, do.set_int(_EPOCH_AT, -7)),
        "active .txnindex torn": do.write(file_name(base, ".txnindex"), b"\0" * 10),
        "log start is negative": do.set_offset("log-start-offset-checkpoint", -5),
        "recovery point is negative": do.set_offset("recovery-point-offset-checkpoint", -5),
    }


_OF_A_BROKER: Final[dict[str, Damage]] = {
    "the directory exchanged with another topic": _exchange_directories,
    "partition.metadata of a topic that exists": _take_the_id,
    "the directory is a link": _linked,
    "the directory is a link to nothing": _linked_to_nothing,
    "a .kafka_cleanshutdown that is empty": _mark(*LOG_DIRS, text=""),
    "a checkpoint has a partition that does not exist": _line_of("recovery-point-offset-checkpoint", "gone 0 9"),
    "a checkpoint has a partition with a negative number": _line_of("log-start-offset-checkpoint", "gone -1 9"),
    "KRaft's log cut in half, without snapshots": _cut_metadata(0.5),
    "KRaft's log cut at its first batches, without snapshots": _cut_metadata(0.05),
    "KRaft's log emptied, without snapshots": _cut_metadata(0),
    "KRaft's log: its directory emptied": do.in_kraft_log(do.delete("*")),
    "meta.properties: version 0": do.replace_in_log_dir("meta.properties", "version", "version=0"),
    "meta.properties without a version": _without("version"),
    "meta.properties without a cluster.id": _without("cluster.id"),
    "meta.properties without a node.id": _without("node.id"),
    "meta.properties without a directory.id": _without("directory.id"),
    "quorum-state empty": do.in_kraft_log(do.write("quorum-state", "")),
    "quorum-state: no object": do.in_kraft_log(do.write("quorum-state", "[]")),
    "a file named like a partition": _file_in_log_dir("orders-7"),
    "a hidden directory in a log directory": do.directory_in_log_dir(".trash"),
    "a directory with a number that is too large": do.directory_in_log_dir("orders-99999999999"),
    "a directory with a negative number": do.directory_in_log_dir("orders--1"),
    "a -delete directory without an id": do.directory_in_log_dir("orders-0-delete"),
    "an empty -future directory": do.directory_in_log_dir("orders-7.0123456789abcdef0123456789abcdef-future"),
    "no .kafka_cleanshutdown in one log directory": _mark(LOG_DIRS[1], text=None),
    "no .kafka_cleanshutdown, sealed batch fails its checksum": do.both(
        _mark(*LOG_DIRS, text=None), do.batch(12, 2, do.flip)
    ),
    "no .kafka_cleanshutdown, active batch fails its checksum": do.both(
        _mark(*LOG_DIRS, text=None), do.batch(36, 2, do.flip)
    ),
}
_OF_KILLS: Final[dict[str, Damage]] = {
    "a .kafka_cleanshutdown with active .log torn": do.both(_mark(*LOG_DIRS, text=""), do.cut(72, -30)),
    "a .kafka_cleanshutdown with unflushed batch corrupt": do.both(_mark(*LOG_DIRS, text=""), do.batch(48, 2, do.flip)),
}

OF_A_PARTITION: Final[dict[Shutdown, dict[str, Damage]]] = {
    "clean": _of_a_partition(36),
    "killed": _of_a_partition(72),
}
"""Corruptions that affect one partition, by name, for each kind of stop."""
OF_A_BROKER: Final[dict[Shutdown, dict[str, Damage]]] = {"clean": _OF_A_BROKER, "killed": _OF_KILLS}
"""Corruptions that affect more than one partition, by name, for each kind of stop."""
