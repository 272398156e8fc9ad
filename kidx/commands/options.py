"""Options that several commands of ``kidx`` share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from kidx.dialect import DIALECTS, NEWEST, Dialect
from kidx.dialect.release_range import did_you_mean
from kidx.errors import ToolError
from kidx.java_values import LONG_MAX

ReleaseOption = Annotated[
    str | None,
    typer.Option("--kafka", metavar="RELEASE", help=f"Kafka release whose rules apply; {NEWEST} if not given."),
]

WrittenReleaseOption = Annotated[
    str | None,
    typer.Option("--kafka", metavar="RELEASE", help="The broker's release; files are written as its recovery does."),
]

RemoteOption = Annotated[
    str | None,
    typer.Option(
        "--remote", metavar="DIR|URL", help="Remote storage, as LocalTieredStorage or Aiven's plugin stores it."
    ),
]


def date_ms(text: str) -> int:
    """Return an ISO 8601 date or time, in UTC by default, in milliseconds: rounded up, because it is a lower bound.

    The result is above all timestamps if the text is not a date.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return LONG_MAX + 1
    since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return -(-since // timedelta(milliseconds=1))


def resolve_dialect(release: str | None) -> Dialect:
    """Return the dialect of ``--kafka``, by default the newest.

    Raises:
        ToolError: kidx does not know the release.
    """
    if release is not None and release not in DIALECTS:
        raise ToolError(unknown_release(release))
    return DIALECTS[release or NEWEST]


def required_dialect(release: str | None, command: str) -> Dialect:
    """Return the dialect of ``--kafka`` for a command that writes.

    Raises:
        ToolError: no release was given, or an unknown one.
    """
    if release is None:
        raise ToolError(
            f"{command} requires --kafka RELEASE, the broker's release: it writes files as that release does, and "
            "no file of a log directory names the release"
        )
    return resolve_dialect(release)


def unknown_release(release: str) -> str:
    """Return the message for an unknown release: similar releases, or the first and the last."""
    hint = did_you_mean(release, list(DIALECTS)) or f"kidx knows {next(iter(DIALECTS))} to {NEWEST}"
    return f"unknown Kafka release {release!r}; {hint}"
