"""``kidx rebuild``: the index files that a release's recovery writes, from the log alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kidx.commands.line import complain, say, say_json
from kidx.commands.options import WrittenReleaseOption, required_dialect
from kidx.discovery import INDEX_SUFFIXES, discover
from kidx.errors import KidxError, ToolError
from kidx.java_values import INT_MAX
from kidx.printable import counted

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.rebuild import Rebuilt


def rebuild_command(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH ...", help=".log files, partition directories or log directories.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Directory of the index files, as DIR/TOPIC-PARTITION; created if missing."
        ),
    ] = None,
    *,
    in_place: Annotated[
        bool,
        typer.Option("--in-place", help="Next to the log, keeping the old files as .old. The broker must be down."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="With --out: overwrite existing index files.")] = False,
    release: WrittenReleaseOption = None,
    index_interval_bytes: Annotated[
        int | None,
        typer.Option(min=0, max=INT_MAX, metavar="N", help="The topic's index.interval.bytes; inferred if not given."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per segment.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing.")] = False,
) -> int:
    """Write the .index, .timeindex and .txnindex of a log as a release's recovery writes them, byte for byte.

    Bytes after the last complete valid batch are not indexed, and the log is not truncated. Transactions that began in
    earlier segments are taken from the other logs of the partition. With --in-place each new file replaces the old one
    in one step and is synced, and nothing is done while a broker holds the log directory's lock.

    Example: kidx rebuild /data/orders-0 --out /tmp/rebuilt --kafka 3.9.2
    """
    if (out is None) == (not in_place):
        raise ToolError("either --out DIR or --in-place is required, not both")
    dialect = required_dialect(release, "rebuild")
    if force and in_place:
        raise ToolError("--force requires --out; --in-place keeps the old files")
    logs = _logs(paths)
    targets = {} if out is None else _targets(logs, out, force=force)
    intervals = _intervals(logs, index_interval_bytes)
    for log in logs:
        try:
            rebuilt, backups = _rebuild(log, targets.get(log), dialect, intervals[log])
        except KidxError as error:
            complain(f"kidx: {log}: {error}")
            return 1 if log.name.partition(".")[0].isdecimal() else 2  # 2: the name is wrong, 1: the log is corrupt
        except OSError as error:
            raise ToolError(f"cannot rebuild the indexes of {log}: {error.strerror or error}") from error
        if not quiet:
            _show(log, rebuilt, backups, as_json=as_json)
    return 0


def _intervals(logs: list[Path], given: int | None) -> dict[Path, int]:
    """Return the interval of each log: the given one, or one inferred from indexes and topic settings."""
    if given is not None:
        return dict.fromkeys(logs, given)
    from kidx.repair.interval import (  # noqa: PLC0415 -- numpy is only loaded to work
        Intervals,
        intervals_of_topics,
        warning_of,
    )
    from kidx.verify import verify_segment  # noqa: PLC0415

    directories = list(dict.fromkeys(log.absolute().parent for log in logs))
    found = discover(directories)
    files = [file for segment in found.segments for file in verify_segment(segment).files]
    known = Intervals(files, settings=intervals_of_topics(directory.parent for directory in directories))
    chosen = {log: known.of(log.absolute()) for log in logs}
    complain(*(f"kidx: warning: {warning}" for warning in warning_of(choice.guess for choice in chosen.values())))
    return {log: choice.value for log, choice in chosen.items()}


def _logs(paths: list[Path]) -> list[Path]:
    """Return the logs that the paths denote.

    Raises:
        ToolError: a path is neither a log nor a directory that contains one.
    """
    logs: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = discover([path])
            if found.problems:
                raise ToolError(f"{found.problems[0].path}: {found.problems[0].message}")
            logs += [segment.log for segment in found.segments]
        elif path.suffix != ".log" and path.is_file():
            raise ToolError(f"{path} is not the .log file of a segment")
        else:
            logs.append(path)
    for log in logs:
        if not log.is_file():
            raise ToolError(f"{log} is {'not a file' if log.exists() else 'missing'}")
    if not logs:
        raise ToolError(f"{', '.join(map(str, paths))} contains no .log file")
    return list(dict.fromkeys(logs))


def _targets(logs: list[Path], out: Path, *, force: bool) -> dict[Path, Path]:
    """Return the directory for the index files of each log, which has the name of the log's directory.

    Raises:
        ToolError: the directory is the log's own, two logs would have the same files, or existing files would be
            overwritten.
    """
    targets: dict[Path, Path] = {}
    owners: dict[Path, Path] = {}
    for log in logs:
        own = log.resolve().parent
        target = targets[log] = out / own.name
        if own in (out.resolve(), target.resolve()):
            raise ToolError(f"{own} holds the log itself; --in-place replaces its indexes and keeps the old ones")
        other = owners.setdefault(target / log.name, own)
        if other != own:
            raise ToolError(f"{other} and {own} have the same name: rebuild them into different directories")
        existing = [
            path for path in (target / log.with_suffix(suffix).name for suffix in INDEX_SUFFIXES) if path.exists()
        ]
        if existing and not force:
            raise ToolError(f"{existing[0]} exists already; --force overwrites it")
    return targets


def _rebuild(log: Path, out: Path | None, dialect: Dialect, interval: int) -> tuple[Rebuilt, list[Path]]:
    from kidx.producers.manager import load_producers_before  # noqa: PLC0415
    from kidx.rebuild import rebuild  # noqa: PLC0415
    from kidx.rebuild.in_place import rebuild_in_place  # noqa: PLC0415 -- keeps --help quick

    producers = load_producers_before(log, dialect)
    if out is None:
        return rebuild_in_place(log, dialect, interval, producers)
    done = rebuild(log, out, dialect=dialect, index_interval_bytes=interval, producer_state=producers)
    return done, []


def _show(log: Path, rebuilt: Rebuilt, backups: list[Path], *, as_json: bool) -> None:
    written = [path for path in (rebuilt.offset_index, rebuilt.time_index, rebuilt.txn_index) if path is not None]
    if as_json:
        say_json(
            {
                "log": str(log),
                "written": [str(path) for path in written],
                "kept": [str(path) for path in backups],
                "valid_bytes": rebuilt.valid_bytes,
                "invalid_bytes": rebuilt.invalid_bytes,
            }
        )
        return
    say(
        *(f"{path}: {counted(path.stat().st_size, 'byte')}" for path in written),
        *(f"{path}: backup of the old file" for path in backups),
    )
    if rebuilt.invalid_bytes:
        size = counted(rebuilt.invalid_bytes, "byte")
        say(f"{log}: a recovery would truncate {size} after byte {rebuilt.valid_bytes:,}")
