"""Collection of findings about the files of a segment or a partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kidx.dialect import DIALECTS
from kidx.dialect.release_range import range_of
from kidx.discovery import Partition, Segment
from kidx.findings import Fault, Finding, Verdict, worst
from kidx.verify.facts import MAX_LISTED_BATCHES

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.verify.verdicts import FileVerdict

Where = TypeVar("Where", Segment, Partition)


class Reporter(Generic[Where]):
    """Collector of findings; of many similar findings about a file it keeps the first ones, and counts the rest.

    Args:
        where: segment or partition that the findings are about.
        release: release whose rules were requested; None for any release.

    Attributes:
        releases: releases that the rules are about: the requested one, or all.
        files: verdicts on files that only the rules of a partition consider.
    """

    def __init__(self, where: Where, release: Dialect | None = None) -> None:
        self.where: Where = where
        self.releases = tuple(DIALECTS.values()) if release is None else (release,)
        self.files: list[FileVerdict] = []
        self._release = None if release is None else release.release
        self._findings: list[Finding] = []
        self._counts: Counter[tuple[str, Fault, Verdict, int | None]] = Counter()

    def add(
        self, path: str | Path, kind: Fault, verdict: Verdict, message: str, base: int | None = None, **place: Any
    ) -> None:
        """Add a finding about a file.

        Args:
            path: path of the file; also its name within an object store.
            kind: kind of the fault or remark.
            verdict: severity.
            message: full description.
            base: base offset of the segment, if the collector is about a partition.
            **place: further columns of the finding.
        """
        key = (str(path), kind, verdict, base)
        self._counts[key] += 1
        if self._counts[key] <= MAX_LISTED_BATCHES:
            plain: dict[str, Any] = {
                name: str(value) if name in {"expected", "actual"} else value for name, value in place.items()
            }
            self._findings.append(self._row(*key, message, **plain))

    def add_entry(
        self,
        suffix: str,
        entries: Any,
        slot: Any,
        kind: Fault,
        message: str,
        expected: str,
        verdict: Verdict = "broken",
    ) -> None:
        """Add a finding about the entry in a slot of a segment's index; ``expected`` describes a right entry."""
        assert isinstance(self.where, Segment)
        columns = {name: int(entries[slot][name]) for name in entries.dtype.names}
        key, value = columns.values()
        path, actual = self.where.path(suffix), f"{key} at {value}"
        self.add(path, kind, verdict, message, slot=int(slot), expected=expected, actual=actual, **columns)

    def add_where(
        self, is_wrong: Callable[[Dialect], bool], path: str | Path, kind: Fault, message: str, **place: Any
    ) -> None:
        """Add a finding about a file that some releases take for right.

        It is *broken* if it is wrong in the requested release. If no release was requested, it is *broken* if it is
        wrong in all releases; if it is wrong in some of them, a remark names these.
        """
        wrong = [each.release for each in self.releases if is_wrong(each)]
        if len(wrong) == len(self.releases):
            self.add(path, kind, "broken", message, **place)
        elif wrong:
            self.add(path, kind, "sound", f"{message} (Kafka {range_of(wrong, list(DIALECTS))} only)", **place)

    def _row(self, path: str, kind: Fault, verdict: Verdict, base: int | None, message: str, **place: Any) -> Finding:
        where = self.where
        if isinstance(where, Segment):
            base = where.base_offset
        at = where.topic, where.partition, base
        return Finding.about(path, at, kind, verdict, message, release=self._release, **place)

    def verdict(self, path: str | Path) -> Verdict:
        """Return the worst verdict on a file; *exact* without a finding."""
        name = str(path)
        return worst(verdict for known, _, verdict, _ in self._counts if known == name)

    def findings(self) -> list[Finding]:
        """Return the kept findings, and one finding with the number of the others for each kind."""
        return self._findings + [
            self._row(*key, f"{count - MAX_LISTED_BATCHES} more of this kind")
            for key, count in self._counts.items()
            if count > MAX_LISTED_BATCHES
        ]
