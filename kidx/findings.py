"""Findings of a verification as one flat table, with the same rows from one machine and from a cluster.

A finding has the file, the clause, the severity, the position, and the expected and the actual content. The table is
the contract between ``kidx verify``, its writers and the fleet pipeline on Spark. Rows have the order of
:func:`in_order`, so that the tables of two runs can be compared directly.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from kidx.errors import ToolError
from kidx.files import replacing
from kidx.printable import encodable, json_text

if TYPE_CHECKING:
    import pyarrow as pa

Verdict = Literal["exact", "sound", "changing", "unreadable", "missing", "broken"]
"""Verdict on a file. *exact*: byte-identical with what a release writes for this log; *sound*: different, but every
lookup is right; *changing*: it changed during every read, or a broker has it open, so that nothing is certain;
*unreadable*: it cannot be read; *missing*: it should exist; *broken*: it can lead to a wrong result of a lookup."""

SEVERITY: Final[dict[str, int]] = {
    name: number for number, name in enumerate(("exact", "sound", "changing", "unreadable", "missing", "broken"))
}
"""The verdicts from best to worst."""

HARMLESS: Final = frozenset({"exact", "sound", "changing"})
"""Verdicts that need no action."""


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of some verdicts, or *exact* without verdicts."""
    return max(verdicts, key=SEVERITY.__getitem__, default="exact")


_UNREADABLE: Final = {
    "leader-epoch-checkpoint": "LG-4",
    ".leader_epoch_checkpoint": "LG-4",
    ".snapshot": "LG-32",
    "log-start-offset-checkpoint": "LG-12",
    "recovery-point-offset-checkpoint": "LG-16",
    "": "SEG-35",
}


class Fault(StrEnum):
    """Kind of a finding, with its clause, which may depend on a part of the file's name.

    Code decides by the kind; the clause is a reference for people.
    """

    _clause: str | dict[str, str]

    def __new__(cls, name: str, clause: str | dict[str, str] = "") -> Self:
        """Return a kind with the text that a table has for it."""
        self = str.__new__(cls, name)
        self._value_, self._clause = name, clause
        return self

    # index files
    ENTRY_ORDER = "entry-order", {".index": "OI-3", ".timeindex": "TI-3c", ".txnindex": "TX-10"}
    PARTIAL_ENTRY = "partial-entry", {".index": "OI-11", ".timeindex": "TI-11a", ".txnindex": "TX-23"}
    BELOW_BASE = "below-base", {".index": "AI-9", ".timeindex": "AI-9", ".txnindex": "TX-12a"}
    PAST_END = "past-end", {".index": "SEG-40", ".timeindex": "SEG-6"}
    NOT_AT_BATCH = "not-at-batch", "SEG-5"
    LATE_ENTRY = "late-entry", {".index": "SEG-50a", ".timeindex": "SEG-6"}  # it skips records before its position
    UNUSUAL_ENTRY = "unusual-entry", "SEG-4"
    TOO_MANY_ENTRIES = "too-many-entries", {".index": "SEG-5", ".timeindex": "SEG-3", ".txnindex": "TX-15"}
    LARGEST_TIMESTAMP = "largest-timestamp", "SEG-22"
    LARGEST_TIMESTAMP_OFFSET = "largest-timestamp-offset", "LO-9"
    UNTRIMMED = "untrimmed", "SEG-27"  # zeros after the entries, in the active segment after a clean stop
    PADDED = "padded", "SEG-37"  # zeros after the entries, in an earlier segment
    MISSING_INDEX = "missing-index", {".index": "SEG-35", ".timeindex": "SEG-36", ".txnindex": "TX-15"}
    TRANSACTION = "transaction", "TX-15"
    TRANSACTION_VERSION = "transaction-version", "TX-7b"
    PENDING_TRANSACTION = "pending-transaction", "TX-15"
    # logs
    CHECKSUM = "checksum", "RB-1"
    FORMAT = "format", "RB-1"
    BATCH_ORDER = "batch-order", "SEG-12"
    BATCH_OFFSETS = "batch-offsets", "RB-2"
    BATCH_TIMESTAMP = "batch-timestamp", "RB-3"  # the header has another largest timestamp than the records
    RECORDS = "records", "RB-2"
    OFFSET_RANGE = "offset-range", "SEG-2b"
    GAP = "gap", "RB-2"  # offsets in no batch
    MARKER = "marker", "SEG-42"  # a control batch of a producer that holds no marker
    OUTSIDE_TRANSACTION = "outside-transaction", "SEG-41"  # in a batch of a producer with an open transaction
    TAIL = "tail", "RB-4"  # bytes after the last whole batch
    SHRANK = "shrank", "SEG-38"
    MISPLACED = "misplaced", "SEG-35"
    # partitions
    SEGMENTS_OVERLAP = "segments-overlap", "SEG-12"
    LOST_OFFSETS = "lost-offsets", "LG-5"  # offsets in no segment
    LOST_BEGINNING = "lost-beginning", "LG-5"
    EXPLAINED_BEGINNING = "explained-beginning", "LG-12"
    ORPHAN = "orphan", "SEG-35"
    LEFTOVER = "leftover", "SEG-23"
    UNFINISHED_COMPACTION = "unfinished-compaction", "PF-16"
    EPOCHS = "epochs", "LG-4"
    LOG_START = "log-start", "LG-12"
    LOG_START_PAST_END = "log-start-past-end", "LG-17"
    END_BELOW_RECOVERY_POINT = "end-below-recovery-point", "LG-16"
    END_BELOW_HIGH_WATERMARK = "end-below-high-watermark", "LG-16"
    END_TRUNCATED = "end-truncated", "LG-16"  # below a checkpointed offset that another checkpoint contradicts
    EARLIER_TOPIC = "earlier-topic", "LG-12"
    LOOKUPS = "lookups", "LO-23"  # no file is wrong, and lookups by time answer badly
    RETENTION = "retention", "SEG-53"  # no file is wrong, and retention by time does not do what was meant
    OPEN_TRANSACTION = "open-transaction", "FE-2"  # no file is wrong, and consumers of committed records get nothing
    # remote storage
    REMOTE = "remote", "LO-19"
    PRODUCERS = "producers", "LG-32"
    # any file
    UNREADABLE = "unreadable", _UNREADABLE
    OTHER = "other", ""  # in a table of another version of kidx

    @classmethod
    def _missing_(cls, _value: object) -> Fault:
        return cls.OTHER

    def clause_of(self, file: str) -> str:
        """Return the id of the clause that a file with this fault violates, or that explains the finding."""
        if isinstance(self._clause, str):
            return self._clause
        return next(clause for part, clause in self._clause.items() if part in file)


LOSSES: Final = frozenset({Fault.LOST_BEGINNING, Fault.END_BELOW_RECOVERY_POINT, Fault.END_BELOW_HIGH_WATERMARK})
"""Kinds of remarks about records that are lost."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Row of the table: a fault of a file, or a remark.

    Attributes:
        topic: name of the topic; None outside a partition.
        partition: number of the partition; None outside one.
        base_offset: base offset of the segment; None outside one.
        file: name of the file, the last part of ``path``.
        clause: id of the clause that is violated, or that explains the finding.
        verdict: severity; *sound* is a remark.
        slot: number of the index entry, from 0.
        position: byte position in the ``.log``.
        offset: offset of a record.
        timestamp: milliseconds since the epoch.
        expected: content that the clause requires.
        actual: content of the file.
        message: full description, with the effect on a consumer.
        release: release whose rules were requested; None for any release.
        kind: kind of the fault or remark.
    """

    path: str
    topic: str | None
    partition: int | None
    base_offset: int | None
    file: str
    clause: str
    verdict: Verdict
    slot: int | None = None
    position: int | None = None
    offset: int | None = None
    timestamp: int | None = None
    expected: str = ""
    actual: str = ""
    message: str = ""
    release: str | None = None
    kind: Fault = Fault.OTHER

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", Fault(self.kind or ""))  # a table has it as text

    @classmethod
    def about(
        cls,
        path: str | Path,
        place: tuple[str | None, int | None, int | None],
        kind: Fault,
        verdict: Verdict,
        message: str,
        **rest: Any,
    ) -> Finding:
        """Return a finding about a file.

        Args:
            path: path of the file; also its name within an object store.
            place: topic, partition, and base offset of the segment.
            kind: kind of the fault or remark, which has the clause.
            verdict: severity.
            message: full description.
            **rest: further columns.
        """
        name = str(path)
        file = name.rpartition("/")[2]
        return cls(name, *place, file, kind.clause_of(file), verdict, message=message, kind=kind, **rest)

    def to_json(self) -> dict[str, Any]:
        """Return an object of ``kidx verify --json``."""
        values = ((name, getattr(self, name)) for name in COLUMNS)
        return {name: encodable(str(value)) if isinstance(value, str) else value for name, value in values}

    def __str__(self) -> str:
        where = "".join(
            f" {name} {value}"
            for name, value in (("slot", self.slot), ("position", self.position), ("offset", self.offset))
            if value is not None
        )
        return f"{self.path}:{where and where + ':'} {self.message} [{self.clause}, {self.verdict}]"


COLUMNS: Final = tuple(field.name for field in dataclasses.fields(Finding))
"""Names of the columns, in order."""

_NUMBERS: Final = ("partition", "base_offset", "slot", "position", "offset", "timestamp")


def _order(finding: Finding) -> tuple[Any, ...]:
    """Return the sort key of a finding: its file, then its location in the file; None before any number."""
    numbers = (finding.slot, finding.position, finding.offset, finding.timestamp)
    places = tuple((number is not None, number or 0) for number in numbers)
    return finding.path, places, finding.clause, finding.verdict, finding.message, finding.expected, finding.actual


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings in the order of the table: by path, slot, position, offset, timestamp, clause."""
    return sorted(findings, key=_order)


def arrow_schema() -> pa.Schema:
    """Return the Arrow schema of the table.

    Raises:
        ToolError: pyarrow is not installed.
    """
    arrow = _pyarrow()
    types = {
        **dict.fromkeys(COLUMNS, arrow.string()),
        **dict.fromkeys(_NUMBERS, arrow.int64()),
        "partition": arrow.int32(),
    }
    required = {"path", "file", "clause", "verdict", "expected", "actual", "message"}
    return arrow.schema([arrow.field(name, types[name], nullable=name not in required) for name in COLUMNS])


def to_arrow(findings: Iterable[Finding]) -> pa.Table:
    """Return the findings as an Arrow table, in the given order.

    Raises:
        ToolError: pyarrow is not installed.
    """
    return _pyarrow().Table.from_pylist([finding.to_json() for finding in findings], schema=arrow_schema())


def read_findings(path: str | os.PathLike[str]) -> list[Finding]:
    """Return the findings in a file of :func:`write_findings`.

    Raises:
        ToolError: the suffix is neither ``.parquet`` nor ``.ndjson``, or pyarrow is not installed.
        OSError: the file cannot be read.
    """
    source = Path(path)
    _check_suffix(source)
    if source.suffix == ".ndjson":
        rows = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    else:
        _pyarrow()
        from pyarrow import parquet  # noqa: PLC0415 -- an extra

        rows = parquet.read_table(source).to_pylist()
    return [Finding(**row) for row in rows]


def write_findings(findings: Iterable[Finding], path: str | os.PathLike[str]) -> None:
    """Write a table of findings: ``.parquet`` or ``.ndjson``, by the suffix. Replace the file in one step.

    Raises:
        ToolError: the suffix is unknown, the file cannot be written, or pyarrow is not installed.
    """
    target = Path(path)
    _check_suffix(target)
    try:
        with replacing(target) as partial:
            if target.suffix == ".ndjson":
                with partial.open("w", encoding="utf-8") as file:
                    file.writelines(ndjson_lines(findings))
            else:
                table = to_arrow(findings)
                from pyarrow import parquet  # noqa: PLC0415 -- an extra

                parquet.write_table(table, partial)
    except OSError as error:
        raise ToolError(f"cannot write {target}: {error.strerror or error}") from error


def check_writable(path: str | os.PathLike[str]) -> None:
    """Check that :func:`write_findings` can write a file with this suffix.

    Raises:
        ToolError: the suffix is unknown, or pyarrow is not installed.
    """
    _check_suffix(Path(path))
    if Path(path).suffix == ".parquet":
        _pyarrow()


def ndjson_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield each finding as one line of JSON."""
    for finding in findings:
        yield json_text(finding.to_json()) + "\n"


def _check_suffix(path: Path) -> None:
    if path.suffix not in {".parquet", ".ndjson"}:
        raise ToolError(f"unknown suffix of the findings {path}; choose from .parquet, .ndjson")


def _pyarrow() -> Any:
    try:
        import pyarrow  # noqa: PLC0415, ICN001 -- an extra
    except ImportError as error:
        raise ToolError("findings as Parquet require pyarrow; install with: pip install 'kidx[scan]'") from error
    return pyarrow
