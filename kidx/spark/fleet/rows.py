"""Outcomes as rows of the tables; runs in the workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kidx.printable import encodable
from kidx.spark.fleet.work import Kept, Outcome, settle_shared
from kidx.verify.findings import Finding

if TYPE_CHECKING:
    from kidx.dialect import Dialect

Row = dict[str, Any]
Groups = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Rows:
    """Makes rows of what was kept.

    Attributes:
        kept: the outcomes.
        release, interval: that they were asked for.
        problems: paths that could not be looked at, and why.
    """

    kept: Kept
    release: Dialect | None
    interval: int | None
    problems: tuple[tuple[str, str], ...]

    def _outcomes(self, groups: Groups) -> Iterator[Outcome]:
        """One for each partition: a group of several portions is a partition that was shared out."""
        for names in groups:
            outcomes: list[Outcome] = [outcome for name in names for outcome in self.kept.kept(name)]
            if len(names) == 1:
                yield from outcomes
            else:
                yield settle_shared(outcomes, self.release, self.interval)

    def findings(self, groups: Groups | None) -> Iterator[Row]:
        """Findings about the partitions of some portions; about paths if None."""
        if groups is None:
            for path, message in self.problems:
                name = Path(path).name
                finding = Finding(path, None, None, None, name, "SEG-35", "unreadable", message=message)
                yield finding.to_json()
            return
        for outcome in self._outcomes(groups):
            if outcome.partition is not None:
                yield from (finding.to_json() for finding in outcome.partition.findings)

    def files(self, groups: Groups) -> Iterator[Row]:
        """A verdict on every file."""
        for outcome in self._outcomes(groups):
            for file in () if outcome.partition is None else outcome.partition.files:
                row = file.to_json() | _place(outcome, Path(file.path))
                least, most = row.pop("index_interval_bytes") or (None, None)
                yield row | {"interval_least": least, "interval_most": most}

    def partitions(self, groups: Groups) -> Iterator[Row]:
        """What was read of every partition."""
        for outcome in self._outcomes(groups):
            if outcome.partition is not None:
                found = outcome.share.partition
                yield {
                    "topic": found.topic and encodable(found.topic),
                    "partition": found.partition,
                    "path": encodable(str(found.directory)),
                    "broker": encodable(outcome.share.broker),
                    "segments": outcome.partition.segments,
                    "batches": outcome.partition.batches,
                    "bytes_read": outcome.partition.bytes_read,
                }

    def replicas(self, names: Sequence[str]) -> Iterator[Row]:
        """Where replicas differ."""
        for name in names:
            yield from (difference.to_json() for difference in self.kept.kept(name))


def _place(outcome: Outcome, path: Path) -> Row:
    digits = path.name.partition(".")[0]
    try:
        modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        modified = None
    partition = outcome.share.partition
    return {
        "topic": partition.topic and encodable(partition.topic),
        "partition": partition.partition,
        "base_offset": int(digits) if digits.isdecimal() else None,
        "file": encodable(path.name),
        "broker": encodable(outcome.share.broker),
        "modified": modified,
    }
