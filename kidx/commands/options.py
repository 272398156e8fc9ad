"""Options that several commands of ``kidx`` share."""

from __future__ import annotations

from typing import Annotated

import typer

from kidx.dialect import DIALECTS, NEWEST, Dialect
from kidx.dialect.spelling import meant
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
    hint = meant(release, list(DIALECTS)) or f"kidx knows {next(iter(DIALECTS))} to {NEWEST}"
    return f"unknown Kafka release {release!r}; {hint}"
