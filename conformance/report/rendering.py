"""What the pages have in common: one file that loads nothing else, from a template, styles and scripts of ours."""

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
    """A page.

    Args:
        template: its name, in ``templates``.
        styles: names of files there, behind what the page shares with that of ``kidx verify``.
        scripts: the same.
        context: what the template asks for.
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
    # All are ours, and none holds anything that came from a run.
    css = Markup(_joined(shared / "page.css", *(templates / name for name in styles)))  # noqa: S704
    js = Markup(_joined(shared / "page.js", *(templates / name for name in scripts)))  # noqa: S704
    return environment.get_template(template).render(css=css, js=js, **context)


def trace_text(directory: Path, path: str) -> str:
    """The trace as it stands in its file, wherever the report directory has been moved to; empty if it is gone."""
    for file in (directory / "traces" / Path(path).name, Path(path)):
        try:
            text = file.read_text("utf-8") if path else ""
            json.loads(text)
        except (OSError, ValueError):
            continue
        return text
    return ""


def _shown(value: Any) -> Any:
    """What comes from a run, with what a page should not obey as escapes; before it is escaped for HTML."""
    return printable_lines(value) if type(value) is str else value


def _joined(*parts: Traversable) -> str:
    return "".join(part.read_text("utf-8") for part in parts)
