"""Checks of kidx with a golden corpus, the recorded files and lookup results of a real broker.

There is one function per property, which returns the findings.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.experiments.golden.corpus import CORPUS_FILE, RUNNING, sha256_of
from conformance.experiments.golden.replay import EPOCHS, Clock, opened, replayed
from conformance.experiments.golden.soundness import Finding
from conformance.experiments.golden.verdicts import judge, read_segments, segment_findings
from conformance.kafka.client import Isolation, OffsetResult
from kidx import OffsetIndex, TimeIndex, TransactionIndex, dialect_of
from kidx.errors import KidxError
from kidx.log import UnifiedLog, UnsupportedTargetError, list_offset, read_epochs
from kidx.producers import ProducerStateManager
from kidx.producers.manager import SNAPSHOT_SUFFIX
from kidx.records import file_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from conformance.experiments.golden.corpus import Corpus, Partition


_UNSUPPORTED: Final = "UNSUPPORTED_VERSION"
_ORDINARY_CLAUSE: Final = "LO-6"
_SPECIAL_CLAUSES: Final = {-1: "LO-2", -2: "LO-1", -3: "LO-10", -4: "LO-3", -5: "LO-4", -6: "LO-5", -7: "LO-15"}
"""Clauses of lookups, by the special timestamp that ListOffsets uses as the target."""


def check_files(corpus: Corpus) -> list[Finding]:
    """Check that every listed file exists with its SHA-256, and that there is no other file."""
    expected = {f"{p.name}/{name}": digest for p in corpus.partitions for name, digest in p.files.items()}
    expected |= {f"{RUNNING}/{p.name}/{name}": digest for p in corpus.partitions for name, digest in p.running.items()}
    found = {
        str(path.relative_to(corpus.directory)): sha256_of(path)
        for path in corpus.directory.rglob("*")
        if path.is_file() and path.name != CORPUS_FILE
    }
    return [
        Finding("corpus", name, f"SHA-256 {found.get(name, 'of no file')}, listed as {expected.get(name, 'no file')}")
        for name in sorted(expected.keys() | found)
        if expected.get(name) != found.get(name)
    ]


def check_batches(corpus: Corpus) -> list[Finding]:
    """Check that every batch is valid, every record readable, and neither bytes nor offsets have gaps."""
    return [finding for partition in corpus.partitions for finding in _batch_findings(corpus, partition)]


def _batch_findings(corpus: Corpus, partition: Partition) -> Iterator[Finding]:
    following = 0
    for path in partition.logs(corpus.directory):
        name = f"{partition.name}/{path.name}"
        if int(path.stem) != following:
            yield Finding("SEG-23", name, f"the log before it ends at {following}")
        position = 0
        for batch in file_batches(path):
            try:
                batch.ensure_valid()
                records = list(batch)
            except KidxError as error:
                yield Finding("RB-1", name, f"the batch at {batch.position}: {error}")
                return
            if (batch.position, batch.base_offset) != (position, following):
                yield Finding("RB-2", name, f"{batch} does not begin at {position} with offset {following}")
            if [record.offset for record in records] != list(range(batch.base_offset, batch.next_offset)):
                yield Finding("RB-1", name, f"{batch} has other offsets than its records")
            if max(record.timestamp for record in records) != batch.max_timestamp:
                yield Finding("RB-3", name, f"the largest timestamp of {batch} is not the timestamp of a record")
            position, following = batch.position + batch.size_in_bytes, batch.next_offset
        if position != path.stat().st_size:
            yield Finding("RB-4", name, f"the batches end at {position}")


def check_entries(corpus: Corpus) -> list[Finding]:
    """Check that every index file is sound, even if recovery would write different bytes.

    See :mod:`conformance.experiments.golden.soundness`.
    """
    return [
        finding
        for partition in corpus.partitions
        for segment in read_segments(corpus, partition)
        for finding in segment_findings(segment)
    ]


def check_indexes(corpus: Corpus) -> list[Finding]:
    """Check that every index opens read-only, passes the sanity check, and that a lookup finds every entry."""
    found: list[Finding] = []
    for partition in corpus.partitions:
        with _copied(corpus, partition) as directory:
            for log in sorted(directory.glob("*.log")):
                try:
                    found += _index_findings(log, f"{partition.name}/{log.stem}", corpus.release)
                except (KidxError, OSError) as error:
                    found.append(Finding("SEG-35", f"{partition.name}/{log.stem}", f"kidx rejects an index: {error!r}"))
    return found


def _index_findings(log: Path, name: str, release: str) -> Iterator[Finding]:
    base = int(log.stem)
    with OffsetIndex(log.with_suffix(".index"), base, writable=False, dialect=release) as offsets:
        offsets.sanity_check()
        for entry in offsets:
            if offsets.lookup(entry.offset) != entry:
                yield Finding("OI-7", f"{name}.index", f"{entry} is looked up as {offsets.lookup(entry.offset)}")
    with TimeIndex(log.with_suffix(".timeindex"), base, writable=False, dialect=release) as times:
        times.sanity_check()
        for pair in times:
            if times.lookup(pair.timestamp) != pair:
                yield Finding("TI-7", f"{name}.timeindex", f"{pair} is looked up as {times.lookup(pair.timestamp)}")
    path = log.with_suffix(".txnindex")
    if path.exists():
        with TransactionIndex(base, path, writable=False, dialect=release) as transactions:
            transactions.sanity_check()
            for txn in transactions.all_aborted_txns():
                if txn not in transactions.collect_aborted_txns(txn.first_offset, txn.last_offset).aborted_transactions:
                    yield Finding("TX-9", f"{name}.txnindex", f"{txn} is not collected")


def check_rebuilds(corpus: Corpus) -> list[Finding]:
    """Check that recovery writes the broker's bytes if the log determines them, and otherwise sound bytes."""
    return [finding for verdict in judge(corpus) for finding in verdict.findings]


def check_replay(corpus: Corpus) -> list[Finding]:
    """Check that kidx, with the same appends and restarts, writes the broker's bytes, before and after the clean stop.

    The lookup results of the running log must be the same, too.
    """
    return [finding for partition in corpus.partitions for finding in _replay_findings(corpus, partition)]


def _replay_findings(corpus: Corpus, partition: Partition) -> Iterator[Finding]:
    with tempfile.TemporaryDirectory(prefix="kidx-replay-") as scratch:
        directory = Path(scratch) / partition.name
        try:
            with replayed(corpus, partition, directory) as log:
                before = corpus.directory / RUNNING / partition.name
                yield from _differences(before, partition.running, directory, f"{RUNNING}/{partition.name}")
                yield from _answer_findings(partition, log, "replayed")
        except (KidxError, OSError, ValueError) as error:
            yield Finding("replay", partition.name, f"kidx cannot replay the broker's operations: {error!r}")
            return
        yield from _differences(corpus.directory / partition.name, partition.files, directory, partition.name)
        left = {path.name for path in directory.iterdir()} - partition.files.keys() - {EPOCHS}
        if not _has_snapshots(partition):
            left = {name for name in left if not name.endswith(SNAPSHOT_SUFFIX)}
        yield from (Finding("replay", f"{partition.name}/{name}", "the broker has no such file") for name in left)


def _differences(recorded: Path, names: Iterable[str], replayed: Path, label: str) -> Iterator[Finding]:
    for name in names:
        path, subject = replayed / name, f"{label}/{name}"
        if not path.exists():
            yield Finding("replay", subject, "kidx has no such file")
        elif name == EPOCHS:
            if read_epochs(path) != read_epochs(recorded / name):
                yield Finding("replay", subject, f"{read_epochs(path)}, the broker {read_epochs(recorded / name)}")
        elif (ours := path.read_bytes()) != (brokers := (recorded / name).read_bytes()):
            pairs = enumerate(zip(ours, brokers, strict=False))
            at = next((place for place, (one, other) in pairs if one != other), min(len(ours), len(brokers)))
            yield Finding("replay", subject, f"{len(ours)} bytes, the broker {len(brokers)}; they differ from {at} on")


def check_answers(corpus: Corpus) -> list[Finding]:
    """Check that a log loaded from the files has the broker's lookup results."""
    found: list[Finding] = []
    for partition in corpus.partitions:
        with _copied(corpus, partition) as directory:
            log = opened(corpus, partition, directory, Clock())
            try:
                found += _answer_findings(partition, log, "loaded")
            finally:
                log.release_handles()
    return found


def _answer_findings(partition: Partition, log: UnifiedLog, how: str) -> Iterator[Finding]:
    for level, answers in partition.answers.items():
        for answer in answers:
            replayed = _answer(log, answer.target, level, partition.leader_epoch)
            if replayed != answer:
                clause = _SPECIAL_CLAUSES.get(answer.target, _ORDINARY_CLAUSE)
                message = (
                    f"target {answer.target}, {level}: {replayed.to_json()[1:]}, the broker {answer.to_json()[1:]}"
                )
                yield Finding(clause, f"{partition.name} {how}", message)


def _answer(log: UnifiedLog, target: int, level: Isolation, leader_epoch: int) -> OffsetResult:
    try:
        found = list_offset(log, target, isolation_level=level, leader_epoch=leader_epoch)
    except UnsupportedTargetError:
        return OffsetResult(target, error=_UNSUPPORTED)
    if found is None or found.offset < 0:
        return OffsetResult(target)
    return OffsetResult(target, found.offset, found.timestamp, found.leader_epoch)


@contextmanager
def _copied(corpus: Corpus, partition: Partition) -> Iterator[Path]:
    """Yield a copy of the partition's directory, because a corpus must not be changed."""
    with tempfile.TemporaryDirectory(prefix="kidx-corpus-") as scratch:
        directory = Path(shutil.copytree(corpus.directory / partition.name, Path(scratch) / partition.name))
        if not _has_snapshots(partition):
            _take_snapshot(directory, corpus.release)
        yield directory


def _has_snapshots(partition: Partition) -> bool:
    """Return True if the corpus has producer snapshots; the oldest corpora have none."""
    return any(name.endswith(SNAPSHOT_SUFFIX) for name in partition.files)


def _take_snapshot(directory: Path, release: str) -> None:
    """Write the producer snapshot of a clean stop, which a load needs to know the open transactions (LG-30)."""
    producers = ProducerStateManager(directory, dialect_of(release))
    for log in sorted(directory.glob("*.log")):
        for batch in file_batches(log):
            completed = producers.update(batch)
            if completed is not None:
                producers.complete(completed)
            producers.map_end_offset = batch.next_offset
    producers.take_snapshot()


CHECKS: Final[dict[str, Callable[[Corpus], list[Finding]]]] = {
    "files": check_files,
    "batches": check_batches,
    "entries": check_entries,
    "indexes": check_indexes,
    "rebuilds": check_rebuilds,
    "replay": check_replay,
    "answers": check_answers,
}
"""All checks by name; none of them needs Java or writes to the corpus."""
