"""Options that several commands of ``kidx`` share."""

from __future__ import annotations

from typing import Annotated

import typer

from kidx.dialect import DIALECTS, NEWEST, Dialect
from kidx.dialect.release_range import did_you_mean
from kidx.errors import ToolError

ReleaseOption = Annotated[
    str | None,
    typer.Option("--kafka", metavar="RELEASE", help=f"Kafka release whose rules apply; {NEWEST} if not given."),
]

RemoteOption = Annotated[
    str | None,
    typer.Option(
        "--remote", metavar="DIR|URL", help="Remote storage, as LocalTieredStorage or Aiven's plugin stores it."
    ),
]


def resolve_dialect(release: str | None) -> Dialect:
    """Return the dialect of ``--kafka``, by default the newest.

    Raises:
        ToolError: kidx does not know the release.
    """
    if release is not None and release not in DIALECTS:
        raise ToolError(unknown_release(release))
    return DIALECTS[release or NEWEST]


def unknown_release(release: str) -> str:
    """Return the message for an unknown release: similar releases, or the first and the last."""
    hint = did_you_mean(release, list(DIALECTS)) or f"kidx knows {next(iter(DIALECTS))} to {NEWEST}"
    return f"unknown Kafka release {release!r}; {hint}"
