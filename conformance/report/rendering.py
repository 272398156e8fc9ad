"""Rendering of HTML pages, each one file that loads nothing else, from templates, styles and scripts."""

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
        styles: names of style sheets in ``templates``, included after those shared with the page of ``kidx verify``.
        scripts: names of scripts in ``templates``, included after the shared scripts.
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
    # Not escaped: these are files of the package, without any data of a run.
    css = Markup(_joined(shared / "page.css", *(templates / name for name in styles)))  # noqa: S704
    js = Markup(_joined(shared / "page.js", *(templates / name for name in scripts)))  # noqa: S704
    return environment.get_template(template).render(css=css, js=js, **context)


def trace_text(directory: Path, path: str) -> str:
    """Return the content of a trace file; empty if the file is missing or invalid.

    Args:
        directory: report directory, which may have been moved since the run.
        path: path of the trace during the run.
    """
    for file in (directory / "traces" / Path(path).name, Path(path)):
        try:
            text = file.read_text("utf-8") if path else ""
            json.loads(text)
        except (OSError, ValueError):
            continue
        return text
    return ""


def _shown(value: Any) -> Any:
    """Return a value of the template with its control characters escaped; jinja2 then escapes it for HTML."""
    return printable_lines(value) if type(value) is str else value


def _joined(*parts: Traversable) -> str:
    return "".join(part.read_text("utf-8") for part in parts)
