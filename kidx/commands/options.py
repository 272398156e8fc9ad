"""Options that several commands of ``kidx`` share."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer

from kidx.dialect import DIALECTS, NEWEST, Dialect
from kidx.errors import ToolError

ReleaseOption = Annotated[
    str | None,
    typer.Option("--kafka", metavar="RELEASE", help=f"Kafka release whose rules count; {NEWEST} if not given."),
]


def chosen_dialect(release: str | None) -> Dialect:
    """The dialect of ``--kafka``, the newest by default.

    Raises:
        ToolError: kidx does not know the release.
    """
    if release is not None and release not in DIALECTS:
        raise ToolError(unknown_release(release))
    return DIALECTS[release or NEWEST]


def unknown_release(release: str) -> str:
    """What to say of a release that kidx does not know: those that may be meant, or the first and the last."""
    meant = [name for name in DIALECTS if name.startswith(f"{release}.")][-1:]
    meant += difflib.get_close_matches(release, [name for name in reversed(DIALECTS) if name not in meant], 3, 0.75)
    hint = f"did you mean {' or '.join(meant[:3])}?" if meant else f"kidx knows {next(iter(DIALECTS))} to {NEWEST}"
    return f"unknown Kafka release {release!r}; {hint}"
