"""Places in the class files of Kafka's log layer that an operator can change."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.implementations.jvm.bytecode import asm_jars, kafkas_classes
from conformance.implementations.jvm.driver import compiled_classes
from conformance.implementations.jvm.virtual_machine import class_loader, java_bytes, start_jvm

if TYPE_CHECKING:
    from pathlib import Path

OPERATORS: Final = ("negated", "call", "constant", "boundary", "arithmetic", "return", "increment")
_LOG: Final = "(?:kafka/log|org/apache/kafka/storage/internals/log)/"
_RECORDS: Final = "org/apache/kafka/common/record/(?:internal/)?"
_CLASSES: Final = re.compile(
    rf"(?:{_LOG}(?:AbstractIndex|OffsetIndex|TimeIndex|TransactionIndex|LazyIndex|LogSegment|LogSegments|LocalLog|Log"
    r"|UnifiedLog|LogLoader|LogFileUtils|ProducerStateManager|ProducerAppendInfo|ProducerStateEntry"
    r"|VerificationStateEntry|Cleaner|CleanedTransactionMetadata|CleanerStats|SkimpyOffsetMap|LogValidator"
    r"|RemoteIndexCache|LogAppendInfo|LogOffsetMetadata|AbortedTxn|BatchMetadata|CompletedTxn|TxnMetadata|RollParams"
    r"|OffsetPosition|TimestampOffset|TxnIndexSearchResult|LogReadInfo|FetchDataInfo|SegmentDeletionReason"
    r"|LogToClean|LastRecord|EpochEntry|CorruptSnapshotException)"
    r"|(?:kafka/server/epoch|org/apache/kafka/storage/internals/epoch)/LeaderEpochFileCache"
    r"|(?:kafka/server/checkpoints|org/apache/kafka/storage/internals/checkpoint|org/apache/kafka/server/common)/"
    r"\w*Checkpoint\w*|org/apache/kafka/storage/internals/checkpoint/PartitionMetadataFile"
    rf"|{_RECORDS}(?:FileRecords|FileLogInputStream|DefaultRecordBatch|MemoryRecords|ControlRecordType))(?:\$.*)?\.class"
)
_METHODS: Final = {
    "DefaultRecordBatch": re.compile(
        r"(?!writeHeader|writeEmptyHeader|set|estimate|increment|sizeInBytesUpper|writeTo|iterator|decrement).*"
    ),
    "MemoryRecords": re.compile("filterTo|firstBatch.*|validBytes|.*[fF]ilter.*"),
}
"""Methods of classes that belong to the log layer in part: reading batches, and the filter of the cleaner."""


def class_of(site: str) -> str:
    """Return the class in the name of a site, without its package; inner classes belong to the outer one."""
    return site.partition(".")[0].partition("$")[0]


class Site(NamedTuple):
    """Place that an operator can change.

    Attributes:
        name: name that a later release's class files have too, unless the code near the place differs: class, method,
            names before the place on its line, operator, and a number if several are equal.
        file: name of the class file.
        number: number in the class file, from 0.
        operator: one of :data:`OPERATORS`.
        change: the instruction and its replacement.
        line: number of the source line.
    """

    name: str
    file: str
    number: int
    operator: str
    change: str
    line: int

    @property
    def class_name(self) -> str:
        """Name of the class; see :func:`class_of`."""
        return class_of(self.name)


class Layer:
    """Class files of the log layer of one build.

    Args:
        jars: its jars.

    Attributes:
        sites: places that can be changed, class by class.
    """

    def __init__(self, jars: Sequence[Path]) -> None:
        self._files: dict[str, Any] = {}
        self._numbers: dict[str, list[int]] = defaultdict(list)
        self.sites: list[Site] = []
        known: Counter[str] = Counter()
        for file, data in kafkas_classes(jars, _CLASSES):
            if file in self._files:
                continue
            self._files[file] = _sites_class()(java_bytes(data))
            simple = file.removesuffix(".class").rpartition("/")[2]
            wanted = _METHODS.get(simple)
            for number, row in enumerate(self._files[file].rows()):
                method, _, operator, change, context, line = str(row).split("\t")
                if wanted is None or wanted.fullmatch(method):
                    base = f"{simple}.{method}({context}) {operator}"
                    known[base] += 1
                    name = base if known[base] == 1 else f"{base} #{known[base]}"
                    self.sites.append(Site(name, file, number, operator, change, int(line)))

    def changed(self, site: Site) -> dict[str, bytes]:
        """Return the class file with a site changed, by its name."""
        return {site.file: bytes(self._files[site.file].changed(site.number))}

    def watched(self) -> tuple[dict[str, bytes], list[Site | None]]:
        """Return all class files with a mark before each site, and the site of each mark; None for one out of scope."""
        sites = {(site.file, site.number): site for site in self.sites}
        marks, files = list[Site | None](), dict[str, bytes]()
        for file, found in self._files.items():
            files[file] = bytes(found.watched(len(marks)))
            marks += [sites.get((file, number)) for number in range(len(found.rows()))]
        return files, marks


@cache
def _sites_class() -> Any:
    """Return ``Sites`` from a loader that also has ASM."""
    return start_jvm().JClass("conformance.Sites", loader=class_loader([compiled_classes(), *asm_jars()]))


def drawn(sites: Sequence[Site], number: int | None, seed: int) -> list[Site]:
    """Return a sample of sites in which each class has its share, in the order of the sites; None for all."""
    if number is None or number >= len(sites):
        return list(sites)
    # A random order within each class, and then the classes merged evenly: each has its share of every beginning.
    draw = random.Random(seed)  # noqa: S311 -- a reproducible sample
    by_class: dict[str, list[Site]] = defaultdict(list)
    for site in sites:
        by_class[site.class_name].append(site)
    placed = []
    for group in by_class.values():
        draw.shuffle(group)
        offset = draw.random()
        placed += [((place + offset) / len(group), site) for place, site in enumerate(group)]
    chosen = {site.name for _, site in sorted(placed, key=lambda each: (each[0], each[1].name))[:number]}
    return [site for site in sites if site.name in chosen]
