"""Verification in which an exception in one file becomes a finding, and all other files are still verified."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kidx.findings import Fault, Finding
from kidx.verify.looking_again import verify_living
from kidx.verify.partition import verify_partition
from kidx.verify.segment import verify_segment
from kidx.verify.verdicts import FileVerdict, PartitionVerdict, SegmentVerdict

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.discovery import Partition, Segment


def guarded_segment(
    segment: Segment,
    *,
    release: Dialect | None = None,
    index_interval_bytes: int | None = None,
    records: bool = False,
) -> SegmentVerdict:
    """Call :func:`kidx.verify.verify_segment`; an exception, such as a MemoryError, becomes a finding."""
    try:
        return verify_segment(segment, release=release, index_interval_bytes=index_interval_bytes, records=records)
    except Exception as error:  # noqa: BLE001 -- one file of a million must not stop the others
        return unreadable_segment(segment, f"the verifier failed: {_words(error)}")


def unreadable_segment(segment: Segment, why: str) -> SegmentVerdict:
    """Return the verdict on a segment that could not be verified; ``why`` is the message of its finding."""
    path = segment.log
    at = segment.topic, segment.partition, segment.base_offset
    finding = Finding.about(path, at, Fault.UNREADABLE, "unreadable", why)
    return SegmentVerdict(segment, (FileVerdict(str(path), "unreadable", why=why),), (finding,), readable=False)


def guarded_partition(
    partition: Partition,
    verdicts: Sequence[SegmentVerdict],
    *,
    release: Dialect | None = None,
    index_interval_bytes: int | None = None,
    records: bool = False,
    living: bool = True,
) -> PartitionVerdict:
    """Call :func:`kidx.verify.verify_partition`; an exception becomes a finding about the directory.

    Args:
        partition: partition to verify.
        verdicts: verdicts on its segments.
        release: release for the verdict *exact*.
        index_interval_bytes: the topic's setting; inferred if None.
        records: True to read every record when a segment is verified again.
        living: True to read files again that a broker may be writing to.
    """
    options: dict[str, Any] = {"release": release, "index_interval_bytes": index_interval_bytes}
    try:
        if living:
            return verify_living(
                partition, verdicts, verify_one=partial(guarded_segment, records=records, **options), **options
            )
        return verify_partition(partition, verdicts, **options)
    except Exception as error:  # noqa: BLE001 -- as above
        at = partition.topic, partition.partition, None
        why = f"the verifier failed: {_words(error)}"
        finding = Finding.about(partition.directory, at, Fault.UNREADABLE, "unreadable", why)
        return PartitionVerdict(
            partition.directory,
            partition.name,
            tuple(file for verdict in verdicts for file in verdict.files),
            (*(finding for verdict in verdicts for finding in verdict.findings), finding),
            len(verdicts),
            sum(verdict.batches for verdict in verdicts),
            sum(verdict.bytes_read for verdict in verdicts),
        )


def _words(error: Exception) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
