"""Listing of the roots in the workers: one row per partition directory, with all inputs of its segments' verdicts.

The driver counts the partitions directly below each root only; tasks list parts of a large root.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from kidx import __version__
from kidx.dialect import Dialect, dialect_of
from kidx.discovery import (
    EPOCHS,
    LOG,
    META_PROPERTIES,
    METADATA_TOPIC,
    SEGMENT_SUFFIXES,
    Found,
    Leftover,
    Partition,
    Problem,
    Segment,
    discover,
    parse_partition,
    swaps_in,
)
from kidx.files import read_text
from kidx.spark.fleet.places import FileFacts, Mirror, Place, local_facts, reason_of
from kidx.spark.fleet.tables import LISTING, to_table
from kidx.storage import Store
from kidx.verify.identity import identified, topic_id_in
from kidx.verify.run import without_marked

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
Facts = Callable[[Path], FileFacts | None]

SEGMENT_COST: Final = 1 << 20
"""Cost of reading a segment in addition to its bytes, in bytes."""
_ROWS_AT_ONCE: Final = 100
_PARTITIONS_AT_ONCE: Final = 64
_MOST_PARTS: Final = 16
"""Most tasks of one root: each lists all its names, and reads its checkpoints and KRaft's metadata."""
_FORMAT: Final = 4
"""Version of the tables: a verdict of another version is not used again."""


@dataclass(frozen=True)
class Request:
    """Options of the verification of every segment.

    Attributes:
        release, interval: options of :func:`kidx.verify.verify_segment`.
        options: options of fsspec, for the stores with the segments.
        marked: True to verify directories of deleted topics and strays, too.
    """

    release: str | None = None
    interval: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    marked: bool = False

    @property
    def dialect(self) -> Dialect | None:
        """Requested release; None for any."""
        return None if self.release is None else dialect_of(self.release)


@dataclass(frozen=True)
class Root:
    """Input of one listing task: a directory or a part of it, files of one directory, or a URL or a part of it.

    Attributes:
        given: the given paths.
        paths: the same paths, absolute.
        store: store of a URL; None on this machine.
        part, parts: which of how many parts the task lists.
    """

    given: tuple[str, ...]
    paths: tuple[str, ...]
    store: Store | None = None
    part: int = 0
    parts: int = 1

    def has(self, name: str) -> bool:
        """Return True if a directory directly below the root is in this part; the first has all but partitions."""
        number = crc32(os.fsencode(name)) % self.parts if parse_partition(name) else 0
        return number == self.part

    @property
    def wanted(self) -> Callable[[str], bool] | None:
        """Predicate of the names directly below the root to search: KRaft's metadata are about all parts."""
        return None if self.parts == 1 else lambda name: name.startswith(METADATA_TOPIC) or self.has(name)

    def in_parts(self) -> list[Root]:
        """Return the root in parts for tasks of about :data:`_PARTITIONS_AT_ONCE` partitions; one if unknown here."""
        try:
            if self.store is None:
                names = os.listdir(self.paths[0])  # noqa: PTH208
            else:
                names = [each.name for each in self.store.list(self.store.root) if each.is_directory]
        except Exception:  # noqa: BLE001 -- each store has different errors; the task reports it
            return [self]
        parts = min(_MOST_PARTS, -(-sum(map(bool, map(parse_partition, names))) // _PARTITIONS_AT_ONCE))
        return [replace(self, part=part, parts=parts) for part in range(parts)] if parts > 1 else [self]


def roots_of(paths: Iterable[str | os.PathLike[str]], options: dict[str, Any]) -> list[Root]:
    """Return the paths as inputs of tasks; files of one directory are one input.

    Raises:
        ToolError: the package for a URL's protocol is missing, or the URL is wrong.
    """
    found: dict[object, list[str]] = {}
    stores: dict[object, Store] = {}
    for number, each in enumerate(os.fspath(path) for path in paths):
        store = Store(each, options)
        if not store.is_local:
            assert store.root is not None  # the property opens the store: a wrong URL is reported here
            stores[number] = store
        path = each.removeprefix("file://") if store.is_local else each
        is_file = store.is_local and not os.path.isdir(path)  # noqa: PTH112
        found.setdefault(os.path.dirname(path) if is_file else number, []).append(path)  # noqa: PTH120
    here = os.getcwd()  # noqa: PTH109
    return [
        part
        for name, given in found.items()
        for part in Root(
            tuple(given),
            tuple(os.path.join(here, path) for path in given),  # noqa: PTH118
            stores.get(name),
        ).in_parts()
    ]


def list_roots(roots: Sequence[Root], request: Request, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Map the numbers of roots to rows of :data:`~kidx.spark.fleet.tables.LISTING`, for ``mapInArrow``."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            rows = []
            for row in _rows_of(roots[number], request):
                rows.append(row | {"number": number})
                if len(rows) >= _ROWS_AT_ONCE:
                    yield from to_table(rows, LISTING).to_batches()
                    rows = []
            yield from to_table(rows, LISTING).to_batches()


def _rows_of(root: Root, request: Request) -> Iterator[Row]:
    about = cache(_about_broker)
    if root.store is None:
        found = identified(_found(root.paths, request, root.wanted))
        name_of = _names(root)
        for partition in found.partitions:
            if root.parts > 1 and not root.has(partition.directory.relative_to(root.paths[0]).parts[0]):
                continue
            place = Place(name_of(partition.directory), str(partition.directory))
            broker, cluster = about(partition.directory.parent)
            broker = broker or name_of(partition.directory.parent)
            yield _row(partition, place, local_facts, request) | {"broker": broker, "cluster": cluster}
        yield from (_problem_row(problem, name_of(problem.path)) for problem in found.problems)
        yield from (_problem_row(each, name_of(each.path)) | {"left_out": True} for each in found.left_out)
        return
    with tempfile.TemporaryDirectory(prefix="kidx-") as temporary:
        try:
            mirror = Mirror(root.store, Path(temporary), None if root.parts == 1 else root.has)
        except Exception as error:  # noqa: BLE001 -- each store has different errors
            yield _problem_row(Problem(Path(), reason_of(error)), root.given[0])
            return
        found = _found([] if mirror.problems and not mirror.partitions else [mirror.root], request, root.wanted)
        for partition in found.partitions:
            inner = mirror.paths[partition.directory]
            place = Place(root.store.name_of(inner), inner, root.store)
            broker, cluster = about(partition.directory.parent)
            broker = broker or place.name.rpartition("/")[0]
            yield _row(partition, place, mirror.facts.get, request) | {"broker": broker, "cluster": cluster}
        for problem in [*found.problems, *mirror.problems, *found.left_out]:
            path = mirror.paths.get(problem.path) or mirror.paths.get(problem.path.parent)
            name = root.given[0] if path is None else root.store.name_of(path)
            below = problem.path not in mirror.paths and path is not None
            row = _problem_row(problem, f"{name}/{problem.path.name}" if below else name)
            yield row | {"left_out": problem in found.left_out}


def _found(paths: Iterable[str | Path], request: Request, wanted: Callable[[str], bool] | None) -> Found:
    found = discover(paths, wanted)
    return found if request.marked else without_marked(found)


def _names(root: Root) -> Callable[[Path], str]:
    """Return a function that returns the name of a path below a root, relative if the root was given so."""
    pairs = [(Path(path), Path(given)) for path, given in zip(root.paths, root.given, strict=True)]
    pairs += [(path.parent, given.parent) for path, given in pairs]

    def name_of(path: Path) -> str:
        return next(
            (str(given / path.relative_to(above)) for above, given in pairs if path.is_relative_to(above)), str(path)
        )

    return name_of


def _about_broker(directory: Path) -> tuple[str, str]:
    """Return the ids of broker and cluster in a log directory's ``meta.properties``; empty if they are unknown."""
    try:
        text = read_text(directory / META_PROPERTIES, errors="replace")
    except OSError:
        return "", ""
    broker = re.search(r"^(?:node|broker)\.id=(\d+)\s*$", text, re.MULTILINE)
    cluster = re.search(r"^cluster\.id=(\S+)\s*$", text, re.MULTILINE)
    return broker[1] if broker else "", cluster[1] if cluster else ""


def _row(partition: Partition, place: Place, facts_of: Facts, request: Request) -> Row:
    directory = partition.directory
    others = [*partition.orphans, *([] if partition.epochs is None else [partition.epochs])]
    known = {path: facts_of(path) for path in others}
    segments = []
    for segment in partition.segments:
        paths = {suffix: segment.path(suffix) for suffix in SEGMENT_SUFFIXES if suffix in segment.existing}
        own = {suffix: facts_of(path) for suffix, path in paths.items()}
        known |= {path: own[suffix] for suffix, path in paths.items()}
        log = own.get(LOG)
        segments.append({
            "base_offset": segment.base_offset,
            "next_base_offset": segment.next_base_offset,
            "log": segment.log.name,
            "existing": sorted(segment.existing),
            "bytes": SEGMENT_COST + (0 if log is None else log.size),
            "key": _key(segment, place, own, request),
        })  # fmt: skip
    is_replica = partition.topic is not None and not partition.state
    return {
        "place": place.name,
        "together": f"{partition.topic}-{partition.partition}" if is_replica else f"/{place.name}",
        "raw": os.fsencode(place.path),
        "root": None if place.store is None else place.store.url,
        "resolved": place.name if place.store is not None else str(directory.resolve()),
        "topic": partition.topic,
        "partition": partition.partition,
        "state": partition.state,
        "clean": any(segment.clean for segment in partition.segments),
        "complete": partition.complete,
        "start_offset": partition.start_offset,
        "recovery_point": partition.recovery_point,
        "cleaned_to": partition.cleaned_to,
        "high_watermark": partition.high_watermark,
        "earlier": list(partition.earlier),
        "may_have_gaps": partition.may_have_gaps,
        "is_tiered": partition.is_tiered,
        "topic_id": topic_id_in(directory),
        "epochs": partition.epochs is not None,
        "orphans": [os.fsencode(path.name) for path in partition.orphans],
        "leftovers": [os.fsencode(leftover.path.name) for leftover in partition.leftovers],
        "modified": [(path.name, facts.modified) for path, facts in known.items() if facts is not None],
        "segments": segments,
    }


def _key(segment: Segment, place: Place, files: Mapping[Any, FileFacts | None], request: Request) -> str:
    """Return a key of all inputs of a segment's verdict; a random key if a file may have changed without a trace."""
    tags = {suffix: facts and facts.tag for suffix, facts in files.items()}
    if None in tags.values():
        return uuid.uuid4().hex
    about: list[object] = [_FORMAT, __version__, request.release, request.interval, place.name, segment.topic]
    about += [
        segment.partition,
        segment.base_offset,
        segment.next_base_offset,
        segment.is_last,
        segment.clean,
        sorted(segment.existing),
    ]
    return hashlib.sha256(repr([*about, sorted(tags.items())]).encode()).hexdigest()


def _problem_row(problem: Problem, name: str) -> Row:
    return {"place": name, "problem": problem.message, "clause": problem.clause}


def place_of(row: Row, request: Request) -> Place:
    """Return the place of a row, in any worker."""
    store = None if row["root"] is None else Store(row["root"], request.options)
    return Place(row["place"], os.fsdecode(row["raw"]), store)


def segments_of(row: Row, directory: Path) -> tuple[Segment, ...]:
    """Return the segments of a row, as discovery found them, in a directory."""
    return tuple(
        Segment(
            directory / each["log"],
            each["base_offset"],
            row["topic"],
            row["partition"],
            frozenset(each["existing"]),
            is_last=each["next_base_offset"] is None,
            next_base_offset=each["next_base_offset"],
            clean=row["clean"],
        )
        for each in row["segments"]
    )


def partition_of(row: Row, directory: Path) -> Partition:
    """Return the partition of a row, as discovery found it, in a directory."""
    return Partition(
        directory,
        row["topic"],
        row["partition"],
        row["state"],
        segments_of(row, directory),
        tuple(directory / os.fsdecode(name) for name in row["orphans"]),
        tuple(Leftover(directory / os.fsdecode(n), "." + os.fsdecode(n).rpartition(".")[2]) for n in row["leftovers"]),
        directory / EPOCHS if row["epochs"] else None,
        row["start_offset"],
        row["recovery_point"],
        row["cleaned_to"],
        row["high_watermark"],
        row["complete"],
        # Files in a store are fetched segment by segment. Swap files are no segments yet, so they are not fetched.
        ()
        if row["root"]
        else tuple(swaps_in(directory, map(os.fsdecode, row["leftovers"]), row["topic"], row["partition"])),
        tuple(map(tuple, row["earlier"])),
        row["may_have_gaps"],
        row["is_tiered"],
    )
