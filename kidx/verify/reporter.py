"""Collection of findings about a segment's files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kidx.findings import Finding, Verdict, worst
from kidx.verify.facts import MAX_LISTED_BATCHES

if TYPE_CHECKING:
    from kidx.discovery import Segment


class Reporter:
    """Collector of findings about one segment; of many similar findings it keeps the first ones, and counts the rest.

    Args:
        segment: the segment.
        release: release whose rules were requested.
    """

    def __init__(self, segment: Segment, release: str | None = None) -> None:
        self.segment = segment
        self.release = release
        self._findings: dict[str, list[Finding]] = {}
        self._counts: Counter[tuple[str, str, Verdict]] = Counter()

    def add(self, suffix: str, clause: str, verdict: Verdict, message: str, **place: Any) -> None:
        """Add a finding about the file with a suffix; ``place`` has further fields of the finding."""
        key = (suffix, clause, verdict)
        self._counts[key] += 1
        if self._counts[key] <= MAX_LISTED_BATCHES:
            self._findings.setdefault(suffix, []).append(self._row(suffix, clause, verdict, message, **place))

    def _row(self, suffix: str, clause: str, verdict: Verdict, message: str, **place: Any) -> Finding:
        segment = self.segment
        path: Path = segment.path(suffix)
        plain: dict[str, Any] = {
            name: str(value) if name in {"expected", "actual"} else value for name, value in place.items()
        }
        at = segment.topic, segment.partition, segment.base_offset
        return Finding.about(path, at, clause, verdict, message, release=self.release, **plain)

    def verdict(self, suffix: str) -> Verdict:
        """Return the worst verdict on a file; *exact* without a finding."""
        return worst(verdict for known, _, verdict in self._counts if known == suffix)

    def findings(self) -> tuple[Finding, ...]:
        """Return the kept findings, and one finding with the number of the others for each kind."""
        rows = [finding for findings in self._findings.values() for finding in findings]
        for (suffix, clause, verdict), count in self._counts.items():
            if count > MAX_LISTED_BATCHES:
                rows.append(self._row(suffix, clause, verdict, f"{count - MAX_LISTED_BATCHES} more of this kind"))
        return tuple(rows)
