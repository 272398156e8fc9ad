"""Cases of starts with corrupt files: each is a corruption after one kind of stop of the broker.

Every segment has 12 offsets. After the clean stop, the active segment begins at offset 36. After the kill it begins at
72, and the segments from 48 on were not flushed. ``sealed`` in a name means that a segment is inactive.

Some corruptions were seen in production: files of other partitions, links, ``.kafka_cleanshutdown``, odd names.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.kafka.broker.workload import EPOCH_MS
from conformance.studies.start_damage import corruptions as do
from conformance.studies.start_damage.observing import HOUR_MS, LOG_DIRS, NEIGHBOUR, NEIGHBOURS, Shutdown
from kidx.segment import file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from conformance.studies.start_damage.corruptions import Damage, Site

_MARK: Final = ".kafka_cleanshutdown"
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


def _transaction(base: int) -> Damage:
    """Make the last batch of the active segment the beginning of a transaction, which no producer snapshot has."""
    batch = do.batch(base, 5, do.set_transactional, checksum=True)
    return do.both(batch, do.delete(f"{base + 12:020d}.snapshot"))


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
        "sealed batch: a higher leader epoch": do.batch(12, 2, do.set_field("partition_leader_epoch", 7)),
        "active batch: a higher leader epoch": do.batch(base, 2, do.set_field("partition_leader_epoch", 7)),
        "active, last batch: a higher leader epoch": do.batch(base, 5, do.set_field("partition_leader_epoch", 7)),
        "sealed batch: a negative leader epoch": do.batch(12, 2, do.set_field("partition_leader_epoch", -7)),
        "active .txnindex torn": do.write(file_name(base, ".txnindex"), b"\0" * 10),
        "log start is negative": do.set_offset("log-start-offset-checkpoint", -5),
        "recovery point is negative": do.set_offset("recovery-point-offset-checkpoint", -5),
    }


_OF_A_BROKER: Final[dict[str, Damage]] = {
    "the directory exchanged with another topic": _exchange_directories,
    "partition.metadata of a topic that exists": _take_the_id,
    "an open transaction, and a recovery-point-offset-checkpoint that is garbage": do.both(
        _transaction(36), do.in_log_dir("recovery-point-offset-checkpoint", "hello\n")
    ),
    "a directory named like the producer snapshot at the end": do.make_directory(file_name(48, ".snapshot")),
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
    "an open transaction, and a recovery-point-offset-checkpoint that is garbage": do.both(
        _transaction(72), do.in_log_dir("recovery-point-offset-checkpoint", "hello\n")
    ),
    "a directory named like the producer snapshot at the end": do.make_directory(file_name(84, ".snapshot")),
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


class Case(NamedTuple):
    """Corruption of the files of a stopped broker.

    Attributes:
        name: A description of the corruption.
        shutdown: The way in which the broker was stopped.
        do: The function that corrupts the files.
        alone: True if the corruption affects more than one partition, and so gets a separate copy and start.
    """

    name: str
    shutdown: Shutdown
    do: Damage
    alone: bool = False

    def __str__(self) -> str:
        return f"{self.name} ({self.shutdown})"


_GARBAGE: Final = "hello\n"
_ACTIVE: Final = {"clean": 36, "killed": 72}
"""Base offset of the active segment after each kind of stop."""
_ALL_FILES: Final = (".log", ".index", ".timeindex")

_AFTER_BOTH_STOPS: Final[dict[str, Callable[[int], Damage]]] = {
    # Each function receives the base offset of the active segment.
    "nothing": lambda _: do.nothing,
    "all producer snapshots deleted": lambda _: do.delete("*.snapshot"),
    "all producer snapshots are garbage": lambda _: do.overwrite("*.snapshot", b"hello"),
    "the newest producer snapshot cut": lambda base: do.cut(base, 20, ".snapshot"),
    "leader-epoch-checkpoint: an epoch past the end": lambda _: do.write(
        "leader-epoch-checkpoint", "0\n2\n0 0\n7 99999\n"
    ),
    "leader-epoch-checkpoint deleted": lambda _: do.delete("leader-epoch-checkpoint"),
    "leader-epoch-checkpoint empty": lambda _: do.write("leader-epoch-checkpoint", ""),
    "leader-epoch-checkpoint: epochs in the wrong order": lambda _: do.write(
        "leader-epoch-checkpoint", "0\n2\n3 20\n0 0\n"
    ),
    "active .index deleted": lambda base: do.delete(f"{base:020d}.index"),
    "active .timeindex deleted": lambda base: do.delete(f"{base:020d}.timeindex"),
    "sealed .index deleted": lambda _: do.delete(f"{12:020d}.index"),
    "sealed .timeindex deleted": lambda _: do.delete(f"{12:020d}.timeindex"),
    "active .index empty": lambda base: do.write(f"{base:020d}.index", ""),
    "active .index is garbage": lambda base: do.write(f"{base:020d}.index", b"\x00\x00\x10\x00\x00\x00\x07\xff" * 3),
    "active .index points past its log": lambda base: do.write(
        f"{base:020d}.index", b"\x00\x00\x00\x03\x00\x00\xff\xff"
    ),
    "active .timeindex is garbage": lambda base: do.write(f"{base:020d}.timeindex", b"hello world!" * 3),
    "first .timeindex: zeros": lambda _: do.zero_out(0, ".timeindex"),
    "first .timeindex: the last entry zeros": lambda _: do.zero_out(0, ".timeindex", 12),
    "first .timeindex empty, an old .log": lambda _: do.both(do.write(f"{0:020d}.timeindex", b""), do.make_old(0)),
    "first .timeindex deleted, an old .log": lambda _: do.both(do.delete(f"{0:020d}.timeindex"), do.make_old(0)),
    "an old .log": lambda _: do.make_old(0),
    "first and sealed .timeindex: zeros": lambda _: do.both(
        do.zero_out(0, ".timeindex"), do.zero_out(12, ".timeindex")
    ),
    "sealed .timeindex: zeros": lambda _: do.zero_out(12, ".timeindex"),
    "all .timeindex: zeros": lambda base: do.both(
        *(do.zero_out(number, ".timeindex") for number in range(0, base + 1, 12))
    ),
    "active .timeindex: an entry of a later offset": lambda base: do.write(
        f"{base:020d}.timeindex", (EPOCH_MS - HOUR_MS).to_bytes(8, "big") + (5000).to_bytes(4, "big")
    ),
    "active .log: eight zeros after its end": lambda base: do.extend(base, bytes(8)),
    "active .log: a length of 5000 after its end": lambda base: do.extend(
        base, (base + 12).to_bytes(8, "big") + (5000).to_bytes(4, "big") + b"\0\0\0\0\2" + b"x" * 40
    ),
    "active .log: ten bytes missing": lambda base: do.cut(base, -10),
    "a copy of .log as .log.swap, an old one": lambda _: do.both(
        do.copy(0, f"{0:020d}.log.swap"), do.make_old(0, ".log.swap")
    ),
    "sealed .txnindex is garbage": lambda _: do.write(f"{12:020d}.txnindex", b"x" * 34),
    "active .txnindex is garbage": lambda base: do.write(f"{base:020d}.txnindex", b"x" * 34),
    "sealed batch fails its checksum": lambda _: do.batch(12, 2, do.flip),
    "sealed batch fails its checksum, its .index deleted": lambda _: do.both(
        do.batch(12, 2, do.flip), do.delete(f"{12:020d}.index")
    ),
    "active batch fails its checksum": lambda base: do.batch(base, 2, do.flip),
    "active batch fails its checksum, its .index deleted": lambda base: do.both(
        do.batch(base, 2, do.flip), do.delete(f"{base:020d}.index")
    ),
    "active .log torn": lambda base: do.cut(base, -30),
    "active .log with zeros behind": lambda base: do.extend(base, bytes(4096)),
    "active .log with garbage behind": lambda base: do.extend(base, b"hello world " * 20),
    "active .log empty": lambda base: do.cut(base, 0),
    "sealed .log cut in half": lambda _: do.cut(12, 700),
    "sealed .log empty": lambda _: do.cut(12, 0),
    "sealed segment deleted": lambda _: do.delete(f"{12:020d}.*"),
    "sealed .log deleted": lambda _: do.delete(f"{12:020d}.log"),
    "active .log deleted": lambda base: do.delete(f"{base:020d}.log"),
    "first .log deleted": lambda _: do.delete(f"{0:020d}.log"),
    "all .log but the active one deleted": lambda base: do.both(
        *(do.delete(f"{number:020d}.log") for number in range(0, base, 12))
    ),
    "all segments deleted": lambda _: do.delete("0*"),
    "sealed batch: zeros": lambda _: do.batch(12, 2, do.zero),
    "active batch: zeros": lambda base: do.batch(base, 2, do.zero),
    "sealed batch: negative size": lambda _: do.batch(12, 2, do.set_size),
    "active batch: negative size": lambda base: do.batch(base, 2, do.set_size),
    "active, last batch: negative size": lambda base: do.batch(base, 5, do.set_size),
    "sealed batch: unknown format": lambda _: do.batch(12, 2, do.set_magic),
    "active batch: unknown format": lambda base: do.batch(base, 2, do.set_magic),
    "active, last batch: unknown format": lambda base: do.batch(base, 5, do.set_magic),
    "sealed batch: wrong number of records": lambda _: do.batch(12, 2, do.set_count, checksum=True),
    "sealed batch: two records with one offset": lambda _: do.batch(12, 2, do.repeat_offsets, checksum=True),
    "sealed batch: invalid gzip": lambda _: do.batch(12, 2, do.claim_gzip, checksum=True),
    "active batch: wrong number of records": lambda base: do.batch(base, 2, do.set_count, checksum=True),
    "active, last batch: ends before its last record": lambda base: do.batch(base, 5, do.set_delta, checksum=True),
    "active, last batch: an open transaction": _transaction,
    "active batch: offset of an earlier one": lambda base: do.batch(base, 3, do.set_base(base + 1)),
    "active batch: offset of an earlier segment": lambda base: do.batch(base, 3, do.set_base(5)),
    "active batch: offset far ahead": lambda base: do.batch(base, 5, do.set_base(base + 1000)),
    "sealed batch: offset far ahead": lambda _: do.batch(12, 5, do.set_base(1000)),
    "active .log: the first batch of the log again at the end": lambda base: do.repeat_batch(0, 0, base),
    "active .log: its fourth batch again at the end": lambda base: do.repeat_batch(base, 3, base),
    "active .log: the first batch of the log again at the end, .index deleted": lambda base: do.both(
        do.repeat_batch(0, 0, base), do.delete(f"{base:020d}.index")
    ),
    "active batches: the last two more than 2**31 ahead": lambda base: do.spread(base, 4),
    "active batches: the last two more than 2**31 ahead, .index deleted": lambda base: do.both(
        do.spread(base, 4), do.delete(f"{base:020d}.index")
    ),
    "active batches: the last two more than 2**31 ahead, torn": lambda base: do.both(
        do.spread(base, 4), do.extend(base, b"torn" * 10)
    ),
    "active batches: the last two more than 2**31 ahead, the last one corrupt": lambda base: do.both(
        do.spread(base, 4), do.batch(base, 5, do.flip)
    ),
    "an overlapping copy of a segment": lambda _: do.copy(12, f"{18:020d}*", _ALL_FILES),
    "a copy of the active .log beyond the end": lambda base: do.copy(base, f"{500:020d}*"),
    "a segment renamed to .swap": lambda _: do.rename(12, ".swap"),
    "the first segment renamed to .swap": lambda _: do.rename(0, ".swap"),
    "a shorter .log.swap in place of a segment": lambda _: do.cut_swap(12, 478),
    "a torn .log.swap in place of a segment": lambda _: do.cut_swap(12, 700),
    "a copy of .log as .log.swap": lambda _: do.copy(12, f"{12:020d}.log.swap"),
    "the .log.swap of a corrupt segment": lambda _: do.both(
        do.batch(12, 2, do.flip), do.rename(12, ".swap", suffixes=_ALL_FILES)
    ),
    "the first segment's .log.swap has another segment's records": lambda _: do.copy(24, f"{0:020d}.log.swap"),
    "a segment renamed to .cleaned": lambda _: do.rename(12, ".cleaned"),
    "a segment renamed to .deleted": lambda _: do.rename(12, ".deleted"),
    "the active segment renamed to .deleted": lambda base: do.rename(base, ".deleted"),
    "foreign files": lambda _: do.both(
        do.write("README", "hello"), do.write("x.txt", "hello"), do.write("x.log.bak", "hello")
    ),
    "a directory named like a segment": lambda _: do.make_directory(f"{150:020d}.log"),
    "a directory named like an index": lambda _: do.make_directory(f"{150:020d}.index"),
    "a .log with a short name": lambda _: do.copy(12, "7.log"),
    "an index without a log": lambda _: do.write(f"{7:020d}.index", b"\0" * 8),
    "log start past the end": lambda _: do.set_offset("log-start-offset-checkpoint", 1000),
    "log start in the middle": lambda _: do.set_offset("log-start-offset-checkpoint", 15),
    "log start at the end": lambda base: do.set_offset("log-start-offset-checkpoint", base + 12),
    "recovery point past the end": lambda _: do.set_offset("recovery-point-offset-checkpoint", 1000),
    "recovery point missing": lambda _: do.set_offset("recovery-point-offset-checkpoint", None),
    "recovery point missing, sealed batch fails its checksum": lambda _: do.both(
        do.set_offset("recovery-point-offset-checkpoint", None), do.batch(12, 2, do.flip)
    ),
    "recovery point missing, a segment's offset of an earlier one": lambda _: do.both(
        do.set_offset("recovery-point-offset-checkpoint", None), do.batch(12, 3, do.set_base(13))
    ),
    "high watermark missing": lambda _: do.set_offset("replication-offset-checkpoint", None),
    "high watermark past the end": lambda _: do.set_offset("replication-offset-checkpoint", 1000),
    "partition.metadata deleted": lambda _: do.delete("partition.metadata"),
    "partition.metadata of another topic": lambda _: do.write(
        "partition.metadata", f"version: 0\ntopic_id: {do.OTHER_ID}"
    ),
    "moved to the other log directory": lambda _: do.move_to_the_other_log_dir,
    "the partition's directory deleted": lambda _: do.remove_partition,
    "the partition's directory deleted, and its recovery point": lambda _: do.both(
        do.set_offset("recovery-point-offset-checkpoint", None), do.remove_partition
    ),
    "renamed to -stray": lambda _: do.rename_partition(".0123456789abcdef0123456789abcdef-stray"),
    "renamed to -delete": lambda _: do.rename_partition(".0123456789abcdef0123456789abcdef-delete"),
}

_AFTER_KILL: Final[dict[str, Damage]] = {
    "unflushed sealed batch fails its checksum": do.batch(48, 2, do.flip),
    "unflushed sealed first batch fails its checksum": do.batch(60, 0, do.flip),
    "unflushed sealed .log empty": do.cut(48, 0),
    "unflushed sealed .log cut in half": do.cut(60, 700),
    "unflushed sealed segment deleted": do.delete(f"{60:020d}.*"),
    "unflushed sealed batch: zeros": do.batch(48, 2, do.zero),
    "unflushed sealed batch: negative size": do.batch(48, 2, do.set_size),
    "unflushed sealed batch: unknown format": do.batch(48, 2, do.set_magic),
    "unflushed sealed batch: offset of an earlier one": do.batch(48, 3, do.set_base(49)),
    "unflushed sealed batch: offset of an earlier segment": do.batch(60, 3, do.set_base(5)),
    "unflushed sealed batch: offset far ahead": do.batch(48, 5, do.set_base(1000)),
    "unflushed sealed batch: wrong number of records": do.batch(48, 2, do.set_count, checksum=True),
    "unflushed sealed batch: invalid gzip": do.batch(48, 2, do.claim_gzip, checksum=True),
    "unflushed .log with zeros behind": do.extend(48, bytes(4096)),
}

_ALONE: Final[dict[str, Damage]] = {
    "partition.metadata is garbage": do.write("partition.metadata", _GARBAGE),
    "partition.metadata empty": do.write("partition.metadata", ""),
    "partition.metadata: version 7": do.replace("partition.metadata", "version", "version: 7"),
    "partition.metadata: an invalid id": do.write("partition.metadata", "version: 0\ntopic_id: !!"),
    "partition.metadata: the id of no topic": do.write(
        "partition.metadata", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"
    ),
    "foo.log in a partition": do.write("foo.log", _GARBAGE),
    "foo.index in a partition": do.write("foo.index", _GARBAGE),
    "foo.timeindex in a partition": do.write("foo.timeindex", _GARBAGE),
    "foo.snapshot in a partition": do.write("foo.snapshot", _GARBAGE),
    "foo.log.swap in a partition": do.write("foo.log.swap", _GARBAGE),
    "foo.log.cleaned in a partition": do.write("foo.log.cleaned", _GARBAGE),
    "foo.log.deleted in a partition": do.write("foo.log.deleted", _GARBAGE),
    "leader-epoch-checkpoint is garbage": do.write("leader-epoch-checkpoint", _GARBAGE),
    "leader-epoch-checkpoint: wrong number of entries": do.write("leader-epoch-checkpoint", "0\n5\n0 0\n"),
    "leader-epoch-checkpoint: an epoch that is no number": do.write("leader-epoch-checkpoint", "0\n1\nx 0\n"),
    "leader-epoch-checkpoint: version 7": do.write("leader-epoch-checkpoint", "7\n1\n0 0\n"),
    "leader-epoch-checkpoint: a negative epoch": do.write("leader-epoch-checkpoint", "0\n1\n-3 0\n"),
    "replication-offset-checkpoint is garbage": do.in_log_dir("replication-offset-checkpoint", _GARBAGE),
    "replication-offset-checkpoint: wrong number of entries": do.in_log_dir(
        "replication-offset-checkpoint", "0\n9\ncorrupt 0 5\n"
    ),
    "replication-offset-checkpoint empty": do.in_log_dir("replication-offset-checkpoint", ""),
    "replication-offset-checkpoint deleted": do.in_log_dir("replication-offset-checkpoint", None),
    "replication-offset-checkpoint is garbage in both": do.both(
        do.in_log_dir("replication-offset-checkpoint", _GARBAGE),
        do.in_metadata_dir("replication-offset-checkpoint", _GARBAGE),
    ),
    "replication-offset-checkpoint is garbage next to KRaft's log": do.in_metadata_dir(
        "replication-offset-checkpoint", _GARBAGE
    ),
    "cleaner-offset-checkpoint is garbage": do.in_log_dir("cleaner-offset-checkpoint", _GARBAGE),
    "cleaner-offset-checkpoint deleted": do.in_log_dir("cleaner-offset-checkpoint", None),
    "recovery-point-offset-checkpoint is garbage": do.in_log_dir("recovery-point-offset-checkpoint", _GARBAGE),
    "recovery-point-offset-checkpoint deleted": do.in_log_dir("recovery-point-offset-checkpoint", None),
    "recovery-point-offset-checkpoint empty": do.in_log_dir("recovery-point-offset-checkpoint", ""),
    "log-start-offset-checkpoint empty": do.in_log_dir("log-start-offset-checkpoint", ""),
    "log-start-offset-checkpoint is garbage": do.in_log_dir("log-start-offset-checkpoint", _GARBAGE),
    "meta.properties is garbage": do.in_log_dir("meta.properties", _GARBAGE),
    "meta.properties deleted": do.in_log_dir("meta.properties", None),
    "meta.properties empty": do.in_log_dir("meta.properties", ""),
    "meta.properties of another cluster": do.replace_in_log_dir(
        "meta.properties", "cluster.id", "cluster.id=AAAAAAAAAAAAAAAAAAAAAB"
    ),
    "meta.properties of another node": do.replace_in_log_dir("meta.properties", "node.id", "node.id=7"),
    "meta.properties: version 7": do.replace_in_log_dir("meta.properties", "version", "version=7"),
    "meta.properties is garbage next to KRaft's log": do.in_metadata_dir("meta.properties", _GARBAGE),
    "meta.properties deleted next to KRaft's log": do.in_metadata_dir("meta.properties", None),
    "lost+found in a log directory": do.directory_in_log_dir("lost+found"),
    "a directory of no partition in a log directory": do.directory_in_log_dir("backup"),
    "a directory of no number in a log directory": do.directory_in_log_dir("orders-x"),
    "an empty directory named like a partition": do.directory_in_log_dir("orders-7"),
    "a foreign file in a log directory": do.in_log_dir("README", _GARBAGE),
    "meta.properties: directory.id of the other log directory": do.copy_directory_id,
    "a log directory emptied": do.empty_log_dir,
    "a partition in both log directories": do.copy_to_the_other_log_dir,
    "KRaft's newest snapshot: a bit flipped": do.flip_snapshot,
    "KRaft's newest snapshot cut": do.cut_snapshot,
    "KRaft's snapshots deleted": do.delete_snapshots,
    "KRaft's log: an early batch fails its checksum": do.flip_kraft_record(3),
    "KRaft's log: the last batch torn": do.in_kraft_log(do.cut(0, -10)),
    "KRaft's log: foo.log": do.in_kraft_log(do.write("foo.log", _GARBAGE)),
    "KRaft's log: partition.metadata is garbage": do.in_kraft_log(do.write("partition.metadata", _GARBAGE)),
    "KRaft's log: leader-epoch-checkpoint is garbage": do.in_kraft_log(do.write("leader-epoch-checkpoint", _GARBAGE)),
    "KRaft's log: quorum-state is garbage": do.in_kraft_log(do.write("quorum-state", _GARBAGE)),
    "KRaft's log: leader-epoch-checkpoint deleted": do.in_kraft_log(do.delete("leader-epoch-checkpoint")),
    "KRaft's log: quorum-state deleted": do.in_kraft_log(do.delete("quorum-state")),
    "bootstrap.checkpoint is garbage": do.in_metadata_dir("bootstrap.checkpoint", _GARBAGE),
    "bootstrap.checkpoint deleted": do.in_metadata_dir("bootstrap.checkpoint", None),
    "a -delete directory with foo.log": do.both(
        do.write("foo.log", _GARBAGE), do.rename_partition(".0123456789abcdef0123456789abcdef-delete")
    ),
}

_SHUTDOWNS: Final[tuple[Shutdown, ...]] = ("clean", "killed")

CASES: Final = (
    *(
        Case(name, shutdown, make(_ACTIVE[shutdown]))
        for shutdown in _SHUTDOWNS
        for name, make in _AFTER_BOTH_STOPS.items()
    ),
    *(Case(name, "killed", damage) for name, damage in _AFTER_KILL.items()),
    *(Case(name, shutdown, damage) for shutdown, some in OF_A_PARTITION.items() for name, damage in some.items()),
    *(Case(name, "clean", damage, alone=True) for name, damage in _ALONE.items()),
    *(
        Case(name, shutdown, damage, alone=True)
        for shutdown, some in OF_A_BROKER.items()
        for name, damage in some.items()
    ),
)
