"""Verification of remote storage: its files are sound, and remote and local segments together have all offsets.

The files of a remote segment are verified like local files. A broker reads only the remote segments whose leader
epochs belong to the log (:mod:`kidx.remote.stored`); remote storage may have others after an election, or after a
copy that failed. A remote segment also has a producer snapshot, and the leader epochs.
"""

from __future__ import annotations

import dataclasses
import tempfile
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kidx.dialect import dialect_of
from kidx.discovery import Found, Partition, Problem, Segment, discover
from kidx.errors import ToolError
from kidx.findings import HARMLESS, Fault, Finding, Verdict, in_order
from kidx.log.epochs import read_epochs
from kidx.producers.snapshot import entries_of, problem_of
from kidx.remote.directory import RemoteDirectory, StoredPartition, add_metadata, read_remote, without_local
from kidx.remote.metadata import TOPIC, read_metadata
from kidx.remote.stored import EPOCHS, LOG, StoredSegment, epochs_of, is_within, topic_id_in, with_records
from kidx.storage import Store
from kidx.verify.guarded import guarded_segment, unreadable_segment
from kidx.verify.reporter import Reporter
from kidx.verify.run import Verification, verdicts_on, without_marked
from kidx.verify.transactions import OpenTransactions, check_transactions, cleaned_to
from kidx.verify.verdicts import FileVerdict, PartitionVerdict, SegmentVerdict

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from kidx.dialect import Dialect

SNAPSHOT = "snapshot"


def segment_of(stored: StoredSegment, topic: str, partition: int) -> Segment:
    """Return a remote segment in the form of a local one, with paths within the store."""
    existing = frozenset(f".{suffix}" for suffix in stored.suffixes)
    log = Path(stored.path(LOG))
    return Segment(log, stored.base_offset, topic, partition, existing, is_last=False, clean=True)


@dataclass(frozen=True)
class RemoteVerifier:
    """Verifier of remote segments; picklable.

    Attributes:
        store: the remote storage.
        release: release for the verdict *exact*; any release if None.
        index_interval_bytes: the topics' setting, or None.
        records: True to read every record.
    """

    store: Store
    release: Dialect | None = None
    index_interval_bytes: int | None = None
    records: bool = False

    def __call__(self, segment: Segment) -> SegmentVerdict:
        """Return the verdict on a remote segment; every exception becomes a finding about the segment."""
        try:
            if self.store.has_files:
                return self._verify(segment)
            with tempfile.TemporaryDirectory(prefix="kidx-remote-") as scratch:
                local = dataclasses.replace(segment, log=Path(scratch) / segment.log.name)
                for suffix in segment.existing:
                    self.store.fetch(str(segment.path(suffix)), local.path(suffix))
                return self._renamed(self._verify(local), segment)
        except Exception as error:  # noqa: BLE001 -- one file of a million must not stop the others
            verdict = unreadable_segment(segment, f"cannot be fetched: {type(error).__name__}: {error}")
            return self._renamed(verdict, segment)

    def _verify(self, local: Segment) -> SegmentVerdict:
        if f".{LOG}" not in local.existing:
            return SegmentVerdict(local, readable=False)
        verdict = guarded_segment(
            local, release=self.release, index_interval_bytes=self.index_interval_bytes, records=self.records
        )
        if verdict.gone or not verdict.readable:
            return verdict
        checks = _Checks(verdict, Reporter(local, self.release))
        if f".{SNAPSHOT}" in local.existing:
            checks.snapshot(local.log.with_suffix(f".{SNAPSHOT}"))
        if f".{EPOCHS}" in local.existing:
            checks.epochs(local.log.with_suffix(f".{EPOCHS}"))
        # A missing index means something else than in a local segment; verify_remote reports it.
        files = [file for file in verdict.files if file.verdict != "missing"]
        findings = [finding for finding in verdict.findings if finding.verdict != "missing"]
        return dataclasses.replace(
            verdict, files=(*files, *checks.reporter.files), findings=(*findings, *checks.reporter.findings())
        )

    def _renamed(self, verdict: SegmentVerdict, segment: Segment) -> SegmentVerdict:
        """Return the verdict with the names that the files have in remote storage."""

        def name(path: str) -> str:
            return self.store.name_of(f"{segment.log.parent}/{path.rpartition('/')[2]}")

        return dataclasses.replace(
            verdict,
            segment=segment,
            files=tuple(dataclasses.replace(file, path=name(file.path)) for file in verdict.files),
            findings=tuple(dataclasses.replace(each, path=name(each.path)) for each in verdict.findings),
        )


class _Checks:
    """Checks of the two files that only a remote segment has: the producer snapshot and the leader epochs."""

    def __init__(self, verdict: SegmentVerdict, reporter: Reporter[Segment]) -> None:
        self.reporter, self._verdict = reporter, verdict

    def snapshot(self, path: Path) -> None:
        """Check the producer snapshot (LG-32)."""
        try:
            data = path.read_bytes()
        except OSError as error:
            self._add(path, Fault.UNREADABLE, "unreadable", f"cannot be read: {error.strerror or error}")
            return
        problem = problem_of(data)
        end = self._verdict.last_offset + 1
        if not problem and self._verdict.batches:
            late = [entry for entry in entries_of(data) if entry.last_offset >= end]
            if late:
                problem = (
                    f"producer {late[0].producer_id} has its last batch at offset {late[0].last_offset}, "
                    f"and the segment ends before {end}"
                )
        if problem:
            self._add(path, Fault.PRODUCERS, "broken", f"{problem}: a broker that restores the log from it fails")
        else:
            self.reporter.files.append(FileVerdict(str(path), "exact", size=len(data)))

    def epochs(self, path: Path) -> None:
        """Check the leader epochs against the epochs of the batches (LG-4)."""
        try:
            entries = read_epochs(path)
        except OSError as error:
            self._add(path, Fault.UNREADABLE, "unreadable", f"cannot be read: {error.strerror or error}")
            return
        effect = "a broker that restores the log from it truncates at wrong offsets"
        for epoch, offset in self._verdict.epochs:
            noted = next((entry.epoch for entry in reversed(entries) if entry.start_offset <= offset), None)
            if noted != epoch:
                has = "no epoch" if noted is None else f"epoch {noted}"
                self._add(
                    path,
                    Fault.EPOCHS,
                    "broken",
                    f"offset {offset} has leader epoch {epoch} in the log and {has} here: {effect}",
                    offset=offset,
                    expected=f"epoch {epoch}",
                    actual=has,
                )
                return
        end = self._verdict.last_offset
        late = next((entry for entry in entries if self._verdict.batches and entry.start_offset > end), None)
        if late is not None:
            self._add(
                path,
                Fault.EPOCHS,
                "broken",
                f"epoch {late.epoch} begins at offset {late.start_offset}, after the end of the segment: {effect}",
                offset=late.start_offset,
            )
            return
        self.reporter.files.append(FileVerdict(str(path), "exact", entries=len(entries)))

    def _add(self, path: Path, kind: Fault, verdict: Verdict, message: str, **place: Any) -> None:
        self.reporter.files.append(FileVerdict(str(path), verdict))
        self.reporter.add(path, kind, verdict, message, **place)


_LOG_END_UNKNOWN = (1 << 63) - 1
"""End of a local log that limits no epoch."""


def verify_remote(
    paths: Iterable[str | os.PathLike[str]] | Found,
    remote: str | os.PathLike[str] | Store,
    *,
    release: str | Dialect | None = None,
    index_interval_bytes: int | None = None,
    processes: int | None = None,
    records: bool = False,
) -> Verification:
    """Verify the remote segments of the partitions under some paths.

    Remote partitions without a replica under the paths are skipped, and so are files that belong to no segment.

    Args:
        paths: log directories; or what :func:`kidx.discovery.discover` found there.
        remote: remote storage in a layout of :mod:`kidx.remote.directory`: a path or a URL of fsspec.
        release: see :func:`kidx.verify.verify_paths`, also for the other parameters.
        index_interval_bytes: the topics' setting; inferred if None.
        records: True to read every record.

    Raises:
        ToolError: remote storage cannot be read, or has another layout.
        ValueError: the release is unknown.
    """
    dialect = None if release is None else dialect_of(release)
    local = without_marked(paths if isinstance(paths, Found) else discover(paths))
    found = read_remote(remote)
    parents = sorted({str(each.directory.parent) for each in local.partitions})
    notes = partial(
        read_metadata, [(Store(path), path) for path in parents], None if dialect is None else dialect.release
    )
    add_metadata(found, notes())
    if any(each.is_absent for partition in found.partitions for each in partition.segments):
        # A broker that runs may have begun to delete it before its files were listed.
        add_metadata(found, notes())
    result = Verification(left_out=[Problem(Path(path), "belongs to no remote partition") for path in found.strays])
    pairs = list(_pairs(local, found, result))
    used = [stored for _, stored in pairs]
    result.left_out += [
        Problem(Path(found.store.name_of(each.directory)), "the given paths have no replica of this remote partition")
        for each in without_local(found, used)
    ]
    look = RemoteVerifier(found.store, dialect, index_interval_bytes, records)
    partitions = [_partition_of(stored) for stored in used]
    with closing(verdicts_on(Found(partitions), look, processes)) as verdicts:
        for (here, stored), partition in zip(pairs, partitions, strict=True):
            own = {each: next(verdicts) for each in stored.read_segments}
            result.add(_verdict_on(here, stored, partition, own, dialect))
            result.left_out += [
                Problem(Path(found.store.name_of(f"{stored.directory}/{name}")), "is no file of a remote segment")
                for name in stored.strays
            ]
    result.files.sort(key=lambda file: file.path)
    result.findings = in_order(result.findings)
    return result


def _pairs(local: Found, remote: RemoteDirectory, result: Verification) -> Iterable[tuple[Partition, StoredPartition]]:
    for partition in local.partitions:
        if partition.state:
            continue
        try:
            stored = remote.of(partition.topic, partition.partition, topic_id_in(partition.directory))
        except (OSError, ToolError) as error:
            message = f"its remote segments cannot be found: {error}"
            where = partition.topic, partition.partition, None
            result.findings.append(Finding.about(partition.directory, where, Fault.REMOTE, "unreadable", message))
            continue
        if stored is not None:
            yield partition, stored
        elif (checks := _PartitionChecks(partition, None)).needs_remote_segments:
            result.findings.append(checks.without_remote_segments(remote.store.url))


def _partition_of(stored: StoredPartition) -> Partition:
    segments = tuple(segment_of(each, stored.topic, stored.partition) for each in stored.read_segments)
    return Partition(Path(stored.directory), stored.topic, stored.partition, segments=segments, complete=False)


def _verdict_on(
    here: Partition,
    stored: StoredPartition,
    partition: Partition,
    verdicts: Mapping[StoredSegment, SegmentVerdict],
    release: Dialect | None,
) -> PartitionVerdict:
    """Return the verdict on a remote partition: the verdicts on its segments, and on all of them together.

    Args:
        here: local partition.
        stored: remote partition.
        partition: remote partition in the form of a local one, whose name and directory the verdict has.
        verdicts: verdicts on the remote segments.
        release: release whose rules were requested.
    """
    checks = _PartitionChecks(here, release)
    checks.add_unread(stored)
    whole = [each for each in verdicts if checks.is_complete(each, stored)]
    lineage = checks.lineage()
    own = [each for each in whole if checks.is_own(each, verdicts[each], lineage)]
    checks.check_metadata([(each, verdicts[each]) for each in own])
    checks.check_offsets(stored, [(each, verdicts[each]) for each in own])
    files = [file for verdict in verdicts.values() for file in verdict.files]
    findings = [finding for verdict in verdicts.values() for finding in verdict.findings]
    for file, finding in checks.transactions([(each, verdicts[each]) for each in own]):
        files += file
        findings += finding
    return PartitionVerdict(
        partition.directory,
        partition.name,
        (*files, *checks.reporter.files),
        (*findings, *checks.reporter.findings()),
        len(verdicts),
        sum(verdict.batches for verdict in verdicts.values()),
        sum(verdict.bytes_read for verdict in verdicts.values()),
    )


class _PartitionChecks:
    """Checks of the remote segments of one partition together with its local log."""

    def __init__(self, here: Partition, release: Dialect | None) -> None:
        self.here, self.release = here, release
        self.reporter = Reporter(here, release)
        self.local_start = here.segments[0].base_offset if here.segments else None
        self.stopped = any(segment.clean for segment in here.segments)
        self.start = max(here.start_offset or 0, min(self.lineage().values(), default=0))

    @property
    def needs_remote_segments(self) -> bool:
        """True if the log begins before its first local segment."""
        return self.here.start_offset is not None and self.local_start is not None and self.start < self.local_start

    def without_remote_segments(self, url: str) -> Finding:
        """Return the finding about a partition without remote segments; ``url`` is the place of remote storage."""
        here, first = self.here, self.start
        message = (
            f"the log begins with offset {first} and its first local segment with {self.local_start}, and {url} has no "
            "remote segment of this partition: a consumer never gets the records between"
        )
        where = here.topic, here.partition, first
        return Finding.about(here.directory, where, Fault.REMOTE, "missing", message, offset=first)

    def lineage(self) -> dict[int, int]:
        """Return the start offset of each leader epoch of the local log; empty if the checkpoint cannot be read."""
        try:
            entries = read_epochs(self.here.epochs) if self.here.epochs else []
        except OSError:  # the verification of the local log reports the error
            entries = []
        return with_records({entry.epoch: entry.start_offset for entry in entries})

    def is_complete(self, segment: StoredSegment, partition: StoredPartition) -> bool:
        """Return True if a broker counts the segment as copied; report the files that it lacks."""
        if segment.is_absent:
            message = (
                f"{TOPIC} says that this segment was copied, but remote storage has no file of it: a consumer never "
                "gets its records"
            )
            self._add(segment, LOG, "missing", message)
            return True
        if not segment.missing:
            return True
        is_local = self.local_start is not None and segment.base_offset >= self.local_start
        is_local &= segment.noted is None  # a segment with metadata was copied completely
        again = [
            each
            for each in partition.segments
            if each is not segment and each.base_offset == segment.base_offset and not each.missing and not each.noted
        ]
        for suffix in segment.missing:
            lacks = f"remote storage has no .{suffix} of this segment"
            if again:
                why = f"{lacks}: a copy that failed; a complete copy exists, {again[0].id}"
                self._add(segment, suffix, "sound", why)
            elif is_local and not self.stopped:
                self._add(segment, suffix, "changing", f"{lacks} yet: the local log still has it")
            else:
                effect = "a consumer gets none of its records" if suffix == LOG else "a broker cannot fetch it"
                self._add(segment, suffix, "missing", f"{lacks}: {effect}")
        return not again and not (is_local and not self.stopped)

    def add_unread(self, partition: StoredPartition) -> None:
        """Report the segments that no broker reads, by their metadata: copies that failed, and deleted segments."""
        for segment in partition.segments:
            if why := partition.why_unread(segment):
                self._add(segment, min(segment.suffixes, default=LOG), "sound", f"{why}: no broker reads the segment")

    def check_metadata(self, segments: Sequence[tuple[StoredSegment, SegmentVerdict]]) -> None:
        """Report segments whose log has another last offset than their metadata."""
        for segment, verdict in segments:
            noted = segment.noted
            if noted is None or not verdict.batches or noted.last_offset == verdict.last_offset:
                continue
            expected, actual = f"offset {noted.last_offset}", f"offset {verdict.last_offset}"
            message = (
                f"{TOPIC} has {expected} as the segment's last one, but its log ends with {actual}: a broker misses "
                "records"
            )
            self._add(segment, LOG, "broken", message, expected=expected, actual=actual)

    def is_own(self, segment: StoredSegment, verdict: SegmentVerdict, lineage: Mapping[int, int]) -> bool:
        """Return True if the segment belongs to the local log; report a segment of a diverged log."""
        if not lineage or not verdict.batches:
            return True
        try:
            epochs = epochs_of(segment, lineage)
        except OSError:
            return True
        # If the checkpoint is wrong, which is a finding, the batches are not.
        for each in (epochs, dict(reversed(verdict.epochs))):
            if is_within(each, verdict.last_offset + 1, lineage, _LOG_END_UNKNOWN, dialect_of(self.release)):
                return True
        message = "its leader epochs differ from the local log: it is from a diverged log, and no broker reads it"
        self._add(segment, LOG, "sound", message)
        return False

    def check_offsets(
        self, partition: StoredPartition, segments: Sequence[tuple[StoredSegment, SegmentVerdict]]
    ) -> None:
        """Report offsets from the log start on that are in neither tier, and segments that overlap."""
        end: int | None = self.start
        for segment, verdict in sorted(segments, key=lambda each: (each[0].base_offset, -each[1].last_offset)):
            base = segment.base_offset
            if end is not None and base > end:
                self._report_gap(partition, end, base)
            elif end is not None and self.start < base < end:
                message = f"the previous segment reaches offset {end - 1}: a broker reads this segment from {base} on"
                self._add(segment, LOG, "sound", message, offset=base)
            if verdict.readable and not verdict.batches:
                message = "it has no batch, and a broker copies no such segment: a consumer gets none of its records"
                self._add(segment, LOG, "broken", message, offset=base)
            end = max(end or 0, verdict.last_offset + 1) if verdict.batches else None
        if end is not None and self.local_start is not None and end < self.local_start:
            self._report_gap(partition, end, self.local_start)

    def _report_gap(self, partition: StoredPartition, first: int, end: int) -> None:
        offsets = f"offsets {first} to {end - 1}"
        self.reporter.add(
            partition.store.name_of(partition.directory),
            Fault.REMOTE,
            "missing",
            f"{offsets} are in no remote segment, and the local log begins with {self.local_start}: a consumer "
            "never gets their records",
            first,
            offset=first,
            expected=offsets,
            actual="none of them",
        )

    def transactions(
        self, segments: Sequence[tuple[StoredSegment, SegmentVerdict]]
    ) -> Iterable[tuple[list[FileVerdict], list[Finding]]]:
        """Yield the verdicts on the transaction indexes of segments, with the findings."""
        ordered = [verdict for _, verdict in segments]
        # A topic with remote storage is not compacted, but it may have been before.
        cleaned = cleaned_to(ordered, 0) if any(verdict.compacted for verdict in ordered) else 0
        open_: OpenTransactions | None = None
        end = -1
        for segment, verdict in segments:
            base = segment.base_offset
            if open_ is None or base != end:  # transactions that began earlier are unknown
                open_ = OpenTransactions(base == 0, max(base, self.start), cleaned)
            if not verdict.readable:
                open_ = None
                continue
            named = _with_store_paths(segment, verdict)
            own = Reporter(named.segment, self.release)
            files = check_transactions(named, open_, own)
            end = verdict.last_offset + 1
            if any(file.verdict not in HARMLESS for file in verdict.files if file.path.endswith(f".{LOG}")):
                open_ = None
            yield (
                [dataclasses.replace(file, path=segment.name("txnindex")) for file in files],
                [dataclasses.replace(finding, path=segment.name("txnindex")) for finding in own.findings()],
            )

    def _add(self, segment: StoredSegment, suffix: str, verdict: Verdict, message: str, **place: Any) -> None:
        path = segment.name(suffix)
        if suffix not in segment.suffixes:
            self.reporter.files.append(FileVerdict(path, verdict))
        self.reporter.add(path, Fault.REMOTE, verdict, message, segment.base_offset, **place)


def _with_store_paths(segment: StoredSegment, verdict: SegmentVerdict) -> SegmentVerdict:
    """Return the verdict with paths within the store."""
    return dataclasses.replace(
        verdict,
        files=tuple(
            dataclasses.replace(file, path=f"{segment.directory}/{file.path.rpartition('/')[2]}")
            for file in verdict.files
        ),
        findings=tuple(
            dataclasses.replace(each, path=f"{segment.directory}/{each.path.rpartition('/')[2]}")
            for each in verdict.findings
        ),
    )
