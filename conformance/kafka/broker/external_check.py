"""Check of a running broker: its lookups by time are compared with a scan of its logs, its index files are verified.

The broker keeps running, so a log may grow while it is read. Results about records appended in the meantime are
ignored. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.kafka.broker.mismatch import Mismatch
from kidx.discovery import discover
from kidx.errors import KidxError
from kidx.records import file_batches
from kidx.verify import verify_paths

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.kafka.broker.external import ExternalBroker
    from conformance.kafka.client import Client, OffsetResult
    from kidx.records import RecordBatch

TARGETS: Final = 150
"""Maximum number of timestamps looked up per partition."""
NOT_LEADER: Final = "NOT_LEADER_FOR_PARTITION"
_LATEST: Final = -1
_EARLIEST: Final = -2
_TRIES: Final = 3


@dataclass(slots=True)
class ExternalCheckResult:
    """Numbers of checked partitions, responses and index files; reasons for skipped partitions; and mismatches."""

    partitions: int = 0
    answers: int = 0
    index_files: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    mismatches: list[Mismatch] = field(default_factory=list)


def check_external(broker: ExternalBroker) -> ExternalCheckResult:
    """Check all partitions in the broker's log directory that it leads.

    Raises:
        ClientError: the broker no longer answers.
    """
    checked = ExternalCheckResult()
    verification = verify_paths([broker.log_dir], release=broker.release)
    for finding in verification.findings:
        if finding.verdict not in {"exact", "sound"}:
            checked.mismatches.append(Mismatch(finding.clause, finding.path, "a sound index", finding.message))
    checked.index_files = sum(not file.path.endswith(".log") for file in verification.files)
    with broker.connect() as client:
        for partition in discover([broker.log_dir]).partitions:
            if partition.topic is None or partition.partition is None or not partition.segments:
                continue
            logs = [segment.log for segment in partition.segments]
            _check_partition(client, partition.topic, partition.partition, logs, checked)
    return checked


def _check_partition(client: Client, topic: str, number: int, logs: list[Path], checked: ExternalCheckResult) -> None:
    name = f"{topic}-{number}"

    def look_up(target: int) -> OffsetResult:
        return client.list_offset(topic, target, partition=number)

    for _ in range(_TRIES):
        start, end = (look_up(special) for special in (_EARLIEST, _LATEST))
        if start.error or end.error or start.offset is None or end.offset is None:
            led = (start.error or end.error) == NOT_LEADER
            checked.skipped[name] = "led by another broker" if led else f"rejected: {start.error or end.error}"
            return
        try:
            log = [list(file_batches(path)) for path in logs]
            targets = _targets(log)
            expected = [_first(log, start.offset, target) for target in targets]
        except (OSError, KidxError) as error:
            checked.skipped[name] = f"cannot read its log: {error}"
            continue  # the broker is deleting or writing a segment
        answers = [look_up(target) for target in targets]
        if look_up(_EARLIEST).offset != start.offset:
            checked.skipped[name] = "its log start offset keeps changing"
            continue
        checked.skipped.pop(name, None)
        checked.partitions += 1
        for answer, record in zip(answers, expected, strict=True):
            found = None if answer.offset is None else (answer.offset, answer.timestamp)
            known = record if record is not None and record[0] < end.offset else None
            if found == known or (known is None and found is not None and found[0] >= end.offset):
                checked.answers += 1
            else:
                subject = f"{name} at {answer.target}"
                checked.mismatches.append(Mismatch("LO-6", subject, f"{known} (its log)", f"{answer} (the broker)"))
        return


def _targets(log: Sequence[Sequence[RecordBatch]]) -> list[int]:
    largest = sorted({batch.max_timestamp for batches in log for batch in batches if batch.max_timestamp >= 0})
    some = largest[:: max(1, 3 * len(largest) // TARGETS)]
    around = {timestamp + step for timestamp in some for step in (-1, 0, 1)}
    return sorted(target for target in around | {0} if target >= 0)


def _first(log: Sequence[Sequence[RecordBatch]], start: int, target: int) -> tuple[int, int] | None:
    """Return offset and timestamp that a lookup has to find (LO-6, FR-1), or None.

    This is the first record at or after the target, in the first segment whose largest timestamp reaches the target.
    """
    for batches in log:
        if any(batch.max_timestamp >= target for batch in batches):
            return next(_reaching(batches, start, target), None)
    return None


def _reaching(batches: Sequence[RecordBatch], start: int, target: int) -> Iterator[tuple[int, int]]:
    for batch in batches:
        if batch.max_timestamp >= target and batch.last_offset >= start:
            for record in batch:
                if record.timestamp >= target and record.offset >= start:
                    yield record.offset, record.timestamp
