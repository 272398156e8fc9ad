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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

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


@dataclass(frozen=True, slots=True)
class Finding:
    """Row of the table: a fault of a file, or a remark.

    Attributes:
        path: path of the file.
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

    @classmethod
    def about(
        cls,
        path: str | Path,
        place: tuple[str | None, int | None, int | None],
        clause: str,
        verdict: Verdict,
        message: str,
        **rest: Any,
    ) -> Finding:
        """Return a finding about a file.

        Args:
            path: path of the file; also its name within an object store.
            place: topic, partition, and base offset of the segment.
            clause: id of the clause.
            verdict: severity.
            message: full description.
            **rest: further columns.
        """
        name = str(path)
        return cls(name, *place, name.rpartition("/")[2], clause, verdict, message=message, **rest)

    def to_json(self) -> dict[str, Any]:
        """Return an object of ``kidx verify --json``."""
        values = ((name, getattr(self, name)) for name in COLUMNS)
        return {name: encodable(value) if isinstance(value, str) else value for name, value in values}

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
