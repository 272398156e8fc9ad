"""The page of ``kidx verify --html``: one file that fetches nothing."""

from __future__ import annotations

import platform
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jinja2
from markupsafe import Markup

from kidx.errors import ToolError
from kidx.files import replacing
from kidx.findings import HARMLESS, SEVERITY, Finding, Verdict, worst
from kidx.printable import counted, printable
from kidx.report.pictures import SegmentPicture, strip

if TYPE_CHECKING:
    import os

    from kidx.repair import Advice
    from kidx.verify import FileVerdict, Verification

_PARTS: Final = 200
_ROWS: Final = 2000


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class About:
    """What the page says of the verification itself.

    Attributes:
        release: whose rules were asked for; empty for any.
        paths: that were looked at.
        host, time, version: of this machine, now, of this package.
    """

    release: str = ""
    paths: Sequence[str] = ()
    host: str = field(default_factory=platform.node)
    time: str = field(default_factory=_now)
    version: str = field(default_factory=lambda: metadata.version("kidx"))


@dataclass(frozen=True, slots=True)
class _PartitionPart:
    """A partition directory on the page."""

    directory: str
    verdict: Verdict
    strip: str
    counts: str


@dataclass(frozen=True, slots=True)
class _FindingsPart:
    """What was found of a segment, or of another file: with a picture if it is a segment."""

    name: str
    directory: str
    verdict: Verdict
    svg: str
    findings: Sequence[Finding]

    @staticmethod
    def place(finding: Finding) -> str:
        """Where in the files it is."""
        places = (("slot", finding.slot), ("position", finding.position), ("offset", finding.offset))
        said = [f"{name} {value:,}" for name, value in places if value is not None]
        said += [f"{name} {text}" for name, text in (("expected", finding.expected), ("is", finding.actual)) if text]
        return ", ".join(said)


def write_page(
    result: Verification, path: str | os.PathLike[str], about: About | None = None, advice: Advice | None = None
) -> None:
    """Writes the page; replaces the file in one step.

    Raises:
        ToolError: it cannot be written.
    """
    target = Path(path)
    try:
        with replacing(target) as partial:
            partial.write_text(render(result, about, advice), "utf-8")
    except OSError as error:
        raise ToolError(f"{target} cannot be written: {error.strerror or error}") from error


def shown(value: Any) -> Any:
    """What a page shows of a value: text of files and names without what could command it or has no UTF-8."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def render(result: Verification, about: About | None = None, advice: Advice | None = None) -> str:
    """The page as HTML, with nothing fetched from elsewhere.

    Args:
        result: of :func:`kidx.verify.verify_paths`.
        about: the verification; this machine and moment by default.
        advice: what to do next.
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, finalize=shown, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_text("verify.html.j2"))
    return template.render(
        **_content(result),
        about=about or About(),
        advice=advice,
        counted=counted,
        # Ours; neither holds anything from a file.
        css=Markup(_text("page.css") + _text("verify.css")),  # noqa: S704
        js=Markup(_text("page.js")),  # noqa: S704
    )


def _text(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text("utf-8")


def _content(result: Verification) -> dict[str, Any]:
    by_segment: dict[str, dict[str, FileVerdict]] = defaultdict(dict)
    for file in result.files:
        stem, dot, suffix = file.path.rpartition(".")
        if Path(stem).name.isdecimal():
            by_segment[stem][dot + suffix] = file
    parts = _findings(result, by_segment)
    shown_rows, kept = 0, []
    for part in parts[:_PARTS]:
        kept.append(part)
        shown_rows += len(part.findings)
        if shown_rows >= _ROWS:
            break
    return {
        "result": result,
        "harmless": HARMLESS,
        "counts": Counter(file.verdict for file in result.files),
        "order": sorted(SEVERITY, key=lambda name: -SEVERITY[name]),
        "partitions": _partitions(by_segment),
        "parts": kept,
        "more_findings": len(result.findings) - shown_rows,
    }


def _findings(result: Verification, by_segment: dict[str, dict[str, FileVerdict]]) -> list[_FindingsPart]:
    """Each finding once, with its segment or its file, the worst first."""
    grouped: dict[str, list[Finding]] = defaultdict(list)
    for finding in result.findings:
        stem = finding.path.rpartition(".")[0]
        grouped[stem if stem in by_segment else finding.path].append(finding)
    parts = []
    for place, found in grouped.items():
        path, ranked = Path(place), sorted(found, key=lambda finding: -SEVERITY[finding.verdict])
        name = f"{path.parent.name}/{path.name}"
        svg = SegmentPicture(name, by_segment[place], ranked).svg if place in by_segment else ""
        parts.append(_FindingsPart(name, str(path.parent), ranked[0].verdict, svg, ranked))
    return sorted(parts, key=lambda part: (-SEVERITY[part.verdict], part.directory, part.name))


def _partitions(by_segment: dict[str, dict[str, FileVerdict]]) -> list[_PartitionPart]:
    segments: dict[str, list[tuple[str, Verdict]]] = defaultdict(list)
    for stem, files in sorted(by_segment.items()):
        segments[str(Path(stem).parent)].append((Path(stem).name, worst(file.verdict for file in files.values())))
    parts = []
    for directory, verdicts in segments.items():
        counts: Counter[str] = Counter(verdict for _, verdict in verdicts)
        text = ", ".join(f"{counts[name]} {name}" for name in SEVERITY if counts[name])
        parts.append(_PartitionPart(directory, worst(verdict for _, verdict in verdicts), strip(verdicts), text))
    return sorted(parts, key=lambda part: (-SEVERITY[part.verdict], part.directory))[:_ROWS]
