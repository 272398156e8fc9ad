"""The page of ``kidx verify --html``."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jinja2
from markupsafe import Markup

from kidx.errors import ToolError
from kidx.files import replacing
from kidx.findings import HARMLESS, SEVERITY, Finding, Verdict, worst
from kidx.printable import printable
from kidx.report.pictures import SegmentPicture, strip

if TYPE_CHECKING:
    import os

    from kidx.verify import FileVerdict, Verification

_PICTURES: Final = 200
_ROWS: Final = 2000


@dataclass(frozen=True, slots=True)
class _PartitionPart:
    """A partition directory on the page."""

    directory: str
    verdict: Verdict
    strip: str
    counts: str


def write_page(result: Verification, path: str | os.PathLike[str]) -> None:
    """Writes the page; replaces the file in one step.

    Raises:
        ToolError: it cannot be written.
    """
    target = Path(path)
    try:
        with replacing(target) as partial:
            partial.write_text(render(result), "utf-8")
    except OSError as error:
        raise ToolError(f"{target} cannot be written: {error.strerror or error}") from error


def shown(value: Any) -> Any:
    """What a page shows of a value: text of files and names without what could command it or has no UTF-8."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def render(result: Verification) -> str:
    """The page as HTML, with nothing fetched from elsewhere."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, finalize=shown)
    template = resources.files(__package__).joinpath("templates", "verify.html.j2").read_text("utf-8")
    return environment.from_string(template).render(**_content(result))


def _content(result: Verification) -> dict[str, Any]:
    by_segment: dict[str, dict[str, FileVerdict]] = defaultdict(dict)
    for file in result.files:
        stem, dot, suffix = file.path.rpartition(".")
        if Path(stem).name.isdecimal():
            by_segment[stem][dot + suffix] = file
    findings: dict[str, list[Finding]] = defaultdict(list)
    for finding in result.findings:
        findings[finding.path.rpartition(".")[0]].append(finding)
    stems = sorted(
        (stem for stem in by_segment if findings[stem]),
        key=lambda stem: (-SEVERITY[worst(f.verdict for f in findings[stem])], stem),
    )
    pictures = [SegmentPicture(_short(stem), by_segment[stem], findings[stem]) for stem in stems[:_PICTURES]]
    ranked = sorted(result.findings, key=lambda finding: -SEVERITY[finding.verdict])
    return {
        "result": result,
        "harmless": HARMLESS,
        "counts": Counter(file.verdict for file in result.files),
        "order": sorted(SEVERITY, key=lambda name: -SEVERITY[name]),
        "partitions": _partitions(by_segment),
        "pictures": pictures,
        "more_pictures": len(stems) - len(pictures),
        "findings": ranked[:_ROWS],
        "more_findings": max(0, len(ranked) - _ROWS),
    }


def _short(stem: str) -> str:
    path = Path(stem)
    return f"{path.parent.name}/{path.name}"


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
