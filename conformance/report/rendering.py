"""Rendering of the pages: one file that loads nothing else, from the package's template, styles and scripts."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kidx.printable import printable, printable_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.resources.abc import Traversable


def render(template: str, *, styles: Sequence[str], scripts: Sequence[str], **context: Any) -> str:
    """Return a page.

    Args:
        template: name of the template in ``templates``.
        styles: names of files there, included after the styles shared with the page of ``kidx verify``.
        scripts: names of files there, included after the shared scripts.
        context: variables of the template.
    """
    environment = Environment(
        loader=PackageLoader("conformance.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_shown,
    )
    environment.filters["oneline"] = printable
    templates, shared = files("conformance.report") / "templates", files("kidx.report") / "templates"
    # All are the package's own files, without any data of a run.
    css = Markup(_joined(shared / "page.css", *(templates / name for name in styles)))  # noqa: S704
    js = Markup(_joined(shared / "page.js", *(templates / name for name in scripts)))  # noqa: S704
    return environment.get_template(template).render(css=css, js=js, **context)


def trace_text(directory: Path, path: str) -> str:
    """Return the trace's file content, also if the report directory has been moved; empty if the file is missing."""
    for file in (directory / "traces" / Path(path).name, Path(path)):
        try:
            text = file.read_text("utf-8") if path else ""
            json.loads(text)
        except (OSError, ValueError):
            continue
        return text
    return ""


def _shown(value: Any) -> Any:
    """Return a value of a run with control characters as escapes; applied before it is escaped for HTML."""
    return printable_lines(value) if type(value) is str else value


def _joined(*parts: Traversable) -> str:
    return "".join(part.read_text("utf-8") for part in parts)
