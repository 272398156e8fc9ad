"""``kidx rebuild``: the index files that a release's recovery writes, from the log alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kidx.commands.options import ReleaseOption, chosen_dialect
from kidx.errors import KidxError, ToolError
from kidx.java_numbers import INT_MAX

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.rebuild import Rebuilt


def rebuild_command(
    logs: Annotated[list[Path], typer.Argument(metavar="SEGMENT.log ...", help="Logs of one partition or several.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where the index files go; made if it is missing.")
    ] = None,
    *,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Beside the log, keeping the old files as .old. The broker must be down.")
    ] = False,
    release: ReleaseOption = None,
    index_interval_bytes: Annotated[
        int, typer.Option(min=0, max=INT_MAX, metavar="N", help="The topic's index.interval.bytes.")
    ] = 4096,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a segment.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing.")] = False,
) -> int:
    """Write the .index, .timeindex and .txnindex of a log as a release's recovery writes them, byte for byte.

    Bytes behind the last whole and sound batch are not indexed, and the log is not cut. Transactions that began in
    earlier segments are taken from the logs beside it. With --in-place each new file takes its place at once and is
    synced, and nothing is done while a broker holds the log directory's lock.

    Example: kidx rebuild /data/orders-0/00000000000000000000.log --out /tmp/rebuilt --kafka 3.9.2
    """
    if (out is None) == (not in_place):
        raise ToolError("either --out DIR or --in-place is needed, not both and not none")
    dialect = chosen_dialect(release)
    for log in logs:
        if not log.is_file():
            raise ToolError(f"{log} is {'not a file' if log.exists() else 'missing'}")
        if log.suffix != ".log":
            raise ToolError(f"{log} is not the .log file of a segment")
        if out is not None and out.resolve() == log.resolve().parent:
            raise ToolError(f"{out} holds the log itself; --in-place replaces its indexes and keeps the old ones")
    for log in logs:
        try:
            rebuilt, kept = _rebuild(log, out, dialect, index_interval_bytes)
        except KidxError as error:
            print(f"kidx: {log}: {error}", file=sys.stderr)  # noqa: T201
            return 1 if log.name.partition(".")[0].isdecimal() else 2  # a name is the user's, what is in it the log's
        except OSError as error:
            raise ToolError(f"{log}: {error}") from error
        if not quiet:
            _show(log, rebuilt, kept, as_json=as_json)
    return 0


def _rebuild(log: Path, out: Path | None, dialect: Dialect, interval: int) -> tuple[Rebuilt, list[Path]]:
    from kidx.rebuild import rebuild  # noqa: PLC0415
    from kidx.rebuild.in_place import rebuild_in_place  # noqa: PLC0415 -- keeps --help quick
    from kidx.segment.history import producers_before  # noqa: PLC0415

    producers = producers_before(log, dialect)
    if out is None:
        return rebuild_in_place(log, dialect, interval, producers)
    done = rebuild(log, out, dialect=dialect, index_interval_bytes=interval, producer_state=producers)
    return done, []


def _show(log: Path, rebuilt: Rebuilt, kept: list[Path], *, as_json: bool) -> None:
    written = [path for path in (rebuilt.offset_index, rebuilt.time_index, rebuilt.txn_index) if path is not None]
    if as_json:
        document = {
            "log": str(log),
            "written": [str(path) for path in written],
            "kept": [str(path) for path in kept],
            "valid_bytes": rebuilt.valid_bytes,
            "invalid_bytes": rebuilt.invalid_bytes,
        }
        print(json.dumps(document))  # noqa: T201
        return
    for path in written:
        print(f"{path}: {path.stat().st_size:,} bytes")  # noqa: T201
    for path in kept:
        print(f"{path}: the old file")  # noqa: T201
    if rebuilt.invalid_bytes:
        print(  # noqa: T201
            f"{log}: a recovery would cut {rebuilt.invalid_bytes:,} bytes behind byte {rebuilt.valid_bytes:,}"
        )
