"""Verification of one remote segment: log and indexes as of a local segment, producer snapshot, and leader epochs."""

from __future__ import annotations

import dataclasses
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kidx.discovery import Segment
from kidx.findings import Fault, Verdict
from kidx.log.epochs import read_epochs
from kidx.producers.snapshot import entries_of, problem_of
from kidx.remote.stored import EPOCHS, LOG
from kidx.verify.guarded import guarded_segment, unreadable_segment
from kidx.verify.reporter import Reporter
from kidx.verify.verdicts import FileVerdict, SegmentVerdict

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.remote.stored import StoredSegment
    from kidx.storage import Store

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
