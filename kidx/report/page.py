"""Page of ``kidx verify --html``: one HTML file that loads no other file."""

from __future__ import annotations

import platform
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html import escape
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jinja2
from markupsafe import Markup

from kidx.discovery import SEGMENT_SUFFIXES, parse_partition, parse_segment_file
from kidx.errors import ToolError
from kidx.files import replacing
from kidx.findings import HARMLESS, SEVERITY, Finding, Verdict, worst
from kidx.printable import counted, printable
from kidx.verify.verdicts import Cause, causes_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from kidx.repair import Advice
    from kidx.verify import FileVerdict, Verification

# Lengths in units of the viewBox.
_WIDTH: Final = 900
_LEFT: Final = 12
_LENGTH: Final = _WIDTH - 2 * _LEFT
_ROW: Final = 62
_LABEL: Final = 32
"""Height of a label; its bar is below it, so that a narrow window still shows the text."""
_BAR: Final = 18
_PARTS: Final = 200
"""Maximum number of faults on the page, each with the findings that follow from it."""
_ROWS: Final = 2000
"""Maximum number of findings, of topics, and of partitions per topic."""
_REMARKS: Final = 200
"""Maximum number of remarks."""
_REASONS: Final = 5
"""Number of obstacles to a start that are visible without unfolding the others."""


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


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class About:
    """Description of the verification itself on the page.

    Attributes:
        release: release whose rules were requested; empty for any.
        paths: the verified paths.
        start: one-line result of "may I start the broker?"; empty if it was not requested.
        harmful: True if that result is no.
        reasons: lines with the obstacles to a start, and with advice.
        host, time, version: name of this machine, current time, version of this package.
    """

    release: str = ""
    paths: Sequence[str] = ()
    start: str = ""
    harmful: bool = False
    reasons: Sequence[str] = ()
    host: str = field(default_factory=platform.node)
    time: str = field(default_factory=_now)
    version: str = field(default_factory=lambda: metadata.version("kidx"))


@dataclass(frozen=True, slots=True)
class _Reason:
    """Obstacle to a start, with its remedy, and the files that the remedy names."""

    text: str
    remedies: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Segments:
    """Segments of a partition directory, or of a whole topic, on the page."""

    name: str
    verdict: Verdict
    strip: str
    counts: str
    partitions: Sequence[_Segments] = ()


@dataclass(frozen=True, slots=True)
class _CausePart:
    """Fault or remark, with a drawing if it is about a segment, and with the findings that follow from it."""

    name: str
    directory: str
    finding: Finding
    svg: str
    followers: Sequence[Finding]

    @staticmethod
    def location(finding: Finding) -> str:
        """Return the location of a finding in its file."""
        locations = (("slot", finding.slot), ("position", finding.position), ("offset", finding.offset))
        parts = [f"{name} {value:,}" for name, value in locations if value is not None]
        parts += [f"{name} {text}" for name, text in (("expected", finding.expected), ("is", finding.actual)) if text]
        return ", ".join(parts)


def write_page(
    result: Verification, path: str | os.PathLike[str], about: About | None = None, advice: Advice | None = None
) -> None:
    """Write the page; the file is replaced in one step.

    Raises:
        ToolError: the file cannot be written.
    """
    target = Path(path)
    try:
        with replacing(target) as partial:
            partial.write_text(render(result, about, advice), "utf-8")
    except OSError as error:
        raise ToolError(f"cannot write {target}: {error.strerror or error}") from error


def displayed(value: Any) -> Any:
    """Return a value as a page shows it: texts of files and names without control characters and invalid UTF-8."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def render(result: Verification, about: About | None = None, advice: Advice | None = None) -> str:
    """Return the page as HTML that loads no other file.

    Args:
        result: result of :func:`kidx.verify.verify_paths`.
        about: description of the verification; by default this machine and time.
        advice: advice on the next steps.
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, finalize=displayed, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_text("verify.html.j2"))
    reasons, closing = _reasons(about.reasons if about else ())
    return template.render(
        **_content(result),
        reasons=reasons[:_REASONS],
        more_reasons=reasons[_REASONS:],
        closing=closing,
        about=about or About(),
        advice=advice,
        counted=counted,
        # These are this package's own files; neither contains anything from a verified file.
        css=Markup(_text("page.css") + _text("palette.css") + _text("verify.css")),  # noqa: S704
        js=Markup(_text("page.js")),  # noqa: S704
    )


def _text(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text("utf-8")


def _content(result: Verification) -> dict[str, Any]:
    by_segment: dict[str, dict[str, FileVerdict]] = defaultdict(dict)
    for file in result.files:
        if (parsed := parse_segment_file(Path(file.path).name)) is not None:
            by_segment[file.path.removesuffix(parsed[1])][parsed[1]] = file
    faults = causes_of(result.faults())
    faults.sort(key=lambda cause: -SEVERITY[cause.finding.verdict])
    shown_rows, parts = 0, []
    for cause in faults[:_PARTS]:
        parts.append(_part(cause, by_segment))
        shown_rows += 1 + len(cause.followers)
        if shown_rows >= _ROWS:
            break
    remarks = [finding for finding in result.findings if finding.verdict in HARMLESS]
    return {
        "result": result,
        "harmless": HARMLESS,
        "counts": Counter(file.verdict for file in result.files),
        "order": sorted(SEVERITY, key=lambda name: -SEVERITY[name]),
        "topics": _topics(by_segment),
        "parts": parts,
        "remarks": [_part(Cause(finding), by_segment) for finding in remarks[:_REMARKS]],
        "remark_count": len(remarks),
        "more_findings": len(result.findings) - len(remarks) - shown_rows,
    }


def _reasons(lines: Iterable[str]) -> tuple[list[_Reason], str]:
    """Parse the lines of obstacles by their indentation; return them, and the remedy for all of them or ``""``."""
    reasons: list[_Reason] = []
    closing = ""
    for line in lines:
        if not line.startswith("  ") or not reasons:
            reasons.append(_Reason(line))
        elif line.startswith("    "):
            reasons[-1].files.append(line.strip())
        elif reasons[-1].files:  # a remedy that follows the files of another remedy
            closing = line.strip()
        else:
            reasons[-1].remedies.append(line.strip())
    return reasons, closing


def _part(cause: Cause, by_segment: dict[str, dict[str, FileVerdict]]) -> _CausePart:
    finding = cause.finding
    path = Path(finding.path)
    name, stem, svg = f"{path.parent.name}/{path.name}", _segment_of(finding), ""
    if stem in by_segment:
        own = [each for each in (finding, *cause.followers) if _segment_of(each) == stem]
        svg = SegmentPicture(name, by_segment[stem], own).svg
    return _CausePart(name, str(path.parent), finding, svg, cause.followers)


def _segment_of(finding: Finding) -> str | None:
    """Return the common prefix of the files of the finding's segment; None if it is not about a segment."""
    return None if finding.base_offset is None else finding.path.partition(finding.file)[0] + finding.file.split(".")[0]


def _topics(by_segment: dict[str, dict[str, FileVerdict]]) -> list[_Segments]:
    """Return the overview: topics with their partitions, the worst first."""
    directories: dict[str, list[tuple[str, Verdict]]] = defaultdict(list)
    for stem, files in sorted(by_segment.items()):
        directories[str(Path(stem).parent)].append((Path(stem).name, worst(file.verdict for file in files.values())))
    topics: dict[str, dict[str, list[tuple[str, Verdict]]]] = defaultdict(dict)
    for directory, verdicts in directories.items():
        name = Path(directory).name
        parsed = parse_partition(name)
        topics[name if parsed is None else parsed[0]][directory] = verdicts
    parts = []
    for topic, own in topics.items():
        partitions = _worst_first(_segments(directory, verdicts) for directory, verdicts in own.items())
        every = [
            (f"{Path(directory).name}/{name}", verdict) for directory, group in own.items() for name, verdict in group
        ]
        parts.append(replace(_segments(topic, every), partitions=partitions[:_ROWS]))
    return _worst_first(parts)[:_ROWS]


def _segments(name: str, verdicts: Sequence[tuple[str, Verdict]]) -> _Segments:
    counts: Counter[str] = Counter(verdict for _, verdict in verdicts)
    text = ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in reversed(SEVERITY) if counts[verdict])
    return _Segments(name, worst(verdict for _, verdict in verdicts), segment_strip(verdicts), text)


def _worst_first(parts: Iterable[_Segments]) -> list[_Segments]:
    return sorted(parts, key=lambda part: (-SEVERITY[part.verdict], part.name))
