"""Inline SVG drawings that show the location of findings in a segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from kidx.discovery import SEGMENT_SUFFIXES
from kidx.findings import SEVERITY, Finding, Verdict
from kidx.printable import counted, printable

if TYPE_CHECKING:
    from kidx.verify.verdicts import FileVerdict

# Lengths in units of the viewBox.
_WIDTH: Final = 900
_LEFT: Final = 12
_LENGTH: Final = _WIDTH - 2 * _LEFT
_ROW: Final = 62
_LABEL: Final = 32
"""Height of a label; its bar is below it, so that a narrow window still shows the text."""
_BAR: Final = 18


@dataclass(frozen=True, slots=True)
class SegmentPicture:
    """Drawing of the files of a segment that has findings.

    Attributes:
        name: ``topic-partition/base offset``.
        files: verdicts by file suffix.
        findings: findings about the files.
    """

    name: str
    files: dict[str, FileVerdict]
    findings: Sequence[Finding]

    @property
    def svg(self) -> str:
        """One bar per file, scaled to its size, with marks at findings and lines from an entry to its batch."""
        rows = [suffix for suffix in SEGMENT_SUFFIXES if suffix in self.files]
        height = _ROW * len(rows) + 8
        name = escape(printable(self.name))
        parts = [f'<svg class="segment" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{name}">']
        for number, suffix in enumerate(rows):
            file, top = self.files[suffix], number * _ROW + _LABEL
            size = counted(file.size or 0, "byte")
            parts += [
                f'<text x="{_LEFT}" y="{top - 8}">{suffix} · {file.verdict} · {size}</text>',
                f'<rect class="bar {file.verdict}" x="{_LEFT}" y="{top}" width="{_LENGTH}" height="{_BAR}">',
                f"<title>{file.verdict}, {size}</title></rect>",
            ]
        for finding in self.findings:
            parts += self._marks(finding, rows)
        return "".join([*parts, "</svg>"])

    def _marks(self, finding: Finding, rows: Sequence[str]) -> list[str]:
        suffix = finding.file[finding.file.rfind(".") :]
        if suffix not in rows:
            return []
        title = f"<title>{escape(printable(finding.message))}</title>"
        top = rows.index(suffix) * _ROW + _LABEL
        own = self._location(suffix, finding)
        marks = [] if own is None else [self._mark(own, top, finding.verdict, title)]
        log = self._fraction(finding.position, self.files[".log"].size) if ".log" in rows else None
        if own is not None and log is not None and suffix != ".log":
            bottom = rows.index(".log") * _ROW + _LABEL + _BAR
            marks.append(f'<line class="{finding.verdict}" x1="{own:.1f}" y1="{top}" x2="{log:.1f}" y2="{bottom}"/>')
            marks.append(self._mark(log, bottom - _BAR, finding.verdict, title))
        return marks

    def _location(self, suffix: str, finding: Finding) -> float | None:
        if suffix == ".log":
            return self._fraction(finding.position, self.files[suffix].size)
        return self._fraction(finding.slot, self.files[suffix].entries)

    @staticmethod
    def _fraction(value: int | None, whole: int | None) -> float | None:
        if value is None:
            return None
        share = min(1.0, max(0.0, value / whole)) if whole else 0.0
        return _LEFT + share * _LENGTH

    @staticmethod
    def _mark(x: float, top: float, verdict: Verdict, title: str) -> str:
        return f'<circle class="{verdict}" cx="{x:.1f}" cy="{top + _BAR / 2}" r="7">{title}</circle>'


def segment_strip(verdicts: Sequence[tuple[str, Verdict]]) -> str:
    """Return the segments of a partition as a row of cells, coloured by their worst file.

    With more than 300 segments, neighbours share a cell, which has the colour of the worst verdict.

    Args:
        verdicts: name and verdict of each segment.
    """
    cells = min(len(verdicts), 300)
    if not cells:
        return ""
    width = min(24.0, _WIDTH / cells)
    shape = f'viewBox="0 0 {_WIDTH} 16" preserveAspectRatio="none"'
    parts = [f'<svg class="strip" {shape} role="img" aria-label="Segments by verdict">']
    for cell in range(cells):
        group = verdicts[cell * len(verdicts) // cells : (cell + 1) * len(verdicts) // cells]
        name, verdict = max(group, key=lambda pair: SEVERITY[pair[1]])
        parts.append(
            f'<rect class="bar {verdict}" x="{cell * width:.2f}" y="1" width="{max(width - 1, 0.8):.2f}" height="14">'
            f"<title>{escape(printable(name))}: {verdict}</title></rect>"
        )
    return "".join([*parts, "</svg>"])
