"""Reference of the tiered machine: kidx's log of two tiers in the dialect of one release."""

from __future__ import annotations

import zlib
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.kidx.log import ReferenceLog
from conformance.operations.tiered import (
    BY_FILE_TIME,
    TIERED_OPS,
    RemoteSegmentState,
    TieredObservation,
    TieredState,
)
from kidx.tiers import CopiedSegment, RemoteMetadata, RemoteReader, RemoteTasks, TieredConfig, TieredLog

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.operations import Operation

_SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".leader_epoch_checkpoint")


class LogWithTasks(TieredLog):
    """Log with its tasks and its reader, so that a mutant replaces one class."""

    remote_tasks: type[RemoteTasks] = RemoteTasks
    remote_reader: type[RemoteReader] = RemoteReader


class ReferenceTiered(ReferenceLog):
    """Reference with kidx's own log of two tiers; mutants replace the class of the log."""

    operations = TIERED_OPS
    tiered_log: type[LogWithTasks] = LogWithTasks

    def __init__(self, release: str) -> None:
        super().__init__(release)
        self.log: LogWithTasks | None = None
        self.remote = RemoteMetadata()
        self.tasks: RemoteTasks | None = None
        self._contents: dict[int, int] = {}  # checksums of the copied segments, by their numbers
        self._calls |= {
            "open_tiers": self._open,
            "copy_segments": partial(self._run, "copy"),
            "expire_remote": partial(self._run, "expire"),
            "follow_remote": partial(self._run, "follow"),
            "fetch_remote": self._fetch_remote,
            "fail_storage": self._fail,
            "renew_tasks": self._renew,
        }

    def _run(self, task: str) -> None:
        if self.tasks is None:
            raise ValueError("no log is open")
        getattr(self.tasks, task)()

    def _fetch_remote(self, offset: int, max_bytes: int, at_least_one: bool, committed: bool) -> tuple[int, ...]:
        if self.log is None:
            raise ValueError("no log is open")
        reader = self.log.remote_reader(self.log)
        found = reader.fetch(offset, max_bytes, at_least_one=at_least_one, committed=committed)
        aborted = (-1,) if found.aborted is None else (len(found.aborted), *chain.from_iterable(found.aborted))
        content = found.records
        return (found.offset, found.segment_base, found.position, len(content), zlib.crc32(content), *aborted)

    def _fail(self, what: str) -> None:
        self.remote.failing = frozenset(what.split(" and "))

    def begin(self, directory: Any) -> None:
        """Begin an example; see the protocol."""
        super().begin(directory)
        self.remote = RemoteMetadata()
        self._contents.clear()

    def end(self) -> None:
        """End the example; see the protocol."""
        if self.log is not None:
            self.log.lookup.close()
        super().end()

    def perform(self, operation: Operation) -> TieredObservation:  # type: ignore[override]
        """Execute an operation; see the protocol."""
        outcome, state = super().perform(operation)
        if state is None or self.log is None:
            return TieredObservation(outcome, None)
        log = self.log
        remote = tuple([self._segment(segment) for segment in self.remote.segments.values()])
        return TieredObservation(outcome, TieredState(state, log.local_start_offset, log.highest_remote_offset, remote))

    def _open(self, settings: dict[str, Any], start: int, recovery_point: int, clean: bool, now: int) -> None:
        super()._open(settings, start, recovery_point, clean, now)
        self._renew()

    def _new_log(self, directory: Path, settings: dict[str, Any], **options: Any) -> LogWithTasks:
        return self.tiered_log(directory, TieredConfig.of_topic(settings), self.remote, **options)

    def _renew(self) -> None:
        if self.log is not None:
            self.tasks = self.log.remote_tasks(self.log)

    def _close(self, prepared: bool) -> None:
        log = self.log
        super()._close(prepared)
        if log is not None:
            log.lookup.close()

    def _list_offsets(self, targets: list[int]) -> tuple[Any, ...]:
        # Not cached: the results also depend on the remote segments.
        answers, self._answers = self._listed(targets)
        return answers

    def _segment(self, segment: CopiedSegment) -> RemoteSegmentState:
        known = self._contents.get(segment.number) if segment.files else 0
        content = checksum(segment) if known is None else known
        if content:
            self._contents[segment.number] = content
        latest = segment.max_timestamp
        return RemoteSegmentState(
            segment.number,
            segment.start_offset,
            segment.end_offset,
            segment.state,
            -1 if latest > BY_FILE_TIME else latest,
            segment.size,
            segment.has_no_transactions,
            tuple(segment.epochs.items()),
            content,
        )


def checksum(segment: CopiedSegment) -> int:
    """Return a checksum of all copied files of a segment."""
    found = 0
    for suffix in _SUFFIXES:
        content = segment.files.get(suffix)
        size = -1 if content is None else len(content)
        found = zlib.crc32(content or b"", zlib.crc32(size.to_bytes(8, signed=True), found))
    return found
