"""``kidx lookup``: the position of an offset or a time according to a partition's files, and the path of the search."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kidx.commands.line import complain, say, say_json
from kidx.commands.options import ReleaseOption, RemoteOption, date_ms, resolve_dialect
from kidx.discovery import parse_partition
from kidx.errors import KidxError, ToolError
from kidx.java_values import LONG_MAX, LONG_MIN
from kidx.log.lookup import LATEST, TARGETS, supports_target
from kidx.printable import shell_word

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.lookup import Explanation, ReadOnlyLog
    from kidx.segment import TimestampAndOffset


def lookup_command(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A partition, such as /data/orders-0, or one of its files.")
    ],
    release: ReleaseOption = None,
    remote: RemoteOption = None,
    offset: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="The record at this offset or the next one.")
    ] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(metavar="T", hidden=True, help="Former name of --time."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="T",
            help="The first record at or after this time: milliseconds, or a date, in UTC if it names no zone. Also "
            f"{', '.join(TARGETS)}.",
        ),
    ] = None,
    targets: Annotated[
        str | None, typer.Option("--targets", metavar="FILE|-", help="One time per line; - is standard input.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Print every step of the search.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> int:
    """Look up an offset or a time as the broker of these files would, and explain the search; files are only read.

    If a broker is writing, the result is a snapshot of this moment. The high watermark is not in these files: records
    between it and the end of the log are found here, and not yet by a consumer. Exit code 1: an index that led to the
    result points past its log, and results may be wrong. With --remote the older segments are searched in remote
    storage, as a broker with tiered storage does.

    Example: kidx lookup /data/orders-0 --kafka 3.9.2 --time 2023-11-14T22:13:20Z --explain
    """
    dialect = resolve_dialect(release)
    given = [
        name
        for name, value in zip(
            ("--offset", "--time", "--timestamp", "--targets"), (offset, time, timestamp, targets), strict=True
        )
        if value is not None
    ]
    if len(given) != 1:
        names = " and ".join(given) or "none"
        raise ToolError(f"exactly one of --offset, --time and --targets is required, not {names}")
    from kidx.lookup import ReadOnlyLog, TieredLog, explain_offset  # noqa: PLC0415 -- keeps --help quick

    requested = _requested(dialect, timestamp, time, targets)
    latest = "latest" in (time, timestamp) or str(LATEST) in (time, timestamp)
    directory = _partition_of(path)
    try:
        with TieredLog(directory, remote, dialect) if remote is not None else ReadOnlyLog(directory, dialect) as log:
            if remote is None and (latest or log.lacks_end):
                log.recovered_end = _recovered_end(directory, log)
            if offset is not None:
                _show(
                    offset,
                    (explanation := explain_offset(log, offset)).answer,
                    explanation if explain else None,
                    as_json=as_json,
                )
            for target in requested:
                result, steps = _result(log, target, explain=explain)
                _show(target, result, steps, as_json=as_json)
            wrong = log.indexes_past_log_end()
            if log.begins_before is not None:
                complain(_tiered(log.begins_before, log.segments[0].base_offset, directory))
    except KidxError as error:
        complain(f"kidx: {directory}: {error}")
        return 1
    except OSError as error:
        raise ToolError(f"{directory}: {error}") from error
    complain(
        *(
            f"kidx: warning: {path} points past the end of its log; run kidx verify {shell_word(directory)}"
            for path in wrong
        )
    )
    return int(bool(wrong))


def _recovered_end(directory: Path, log: ReadOnlyLog) -> int | None:
    """Return the end of a log after the start of a broker that was not stopped cleanly; None for any other log."""
    from kidx.startup import recovered_end  # noqa: PLC0415 -- numpy is only loaded to work

    end = recovered_end(directory, log.dialect)
    if end is not None and end != log.end_offset:
        complain(
            f"kidx: note: the broker was not stopped cleanly: {end} is the end of {directory} after the recovery "
            "of its next start"
        )
    return end


def _tiered(begins: int, first: int, directory: Path) -> str:
    return (
        f"kidx: note: the log of {directory} begins at offset {begins}, and its first local segment at {first}; "
        "the earlier records are in the remote tier, which kidx searches only with --remote"
    )


def _partition_of(path: Path) -> Path:
    """Return the partition directory that a path denotes: the directory itself, or the only one in it.

    Raises:
        ToolError: the path contains several partition directories.
    """
    if path.is_file():
        return path.absolute().parent if path.parent == Path() else path.parent
    try:
        below = sorted(each for each in path.iterdir() if parse_partition(each.name) and each.is_dir())
    except OSError:
        return path
    if len(below) > 1:
        raise ToolError(f"{path} contains {len(below)} partitions; choose one, such as {below[0]}")
    return below[0] if below else path


def _requested(dialect: Dialect, timestamp: str | None, time: str | None, targets: str | None) -> Iterator[int]:
    if timestamp is not None:
        return iter([_long(timestamp, "--timestamp")])
    if time is not None:
        return iter([_special(dialect, time)])
    return _read(targets) if targets is not None else iter(())


def _special(dialect: Dialect, time: str) -> int:
    if time not in TARGETS:
        try:
            return _long(time, "--time")
        except ToolError:
            raise ToolError(f"unknown time {time!r}; choose from {', '.join(TARGETS)}, or a timestamp") from None
    if not supports_target(dialect, TARGETS[time]):
        known = ", ".join(name for name, target in TARGETS.items() if supports_target(dialect, target))
        raise ToolError(f"Kafka {dialect.release} does not support the time {time!r}; choose from {known}")
    return TARGETS[time]


def _read(source: str) -> Iterator[int]:
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"cannot read {source}: {error}") from error
    lines = [line.strip() for line in text.splitlines()]
    return iter([_long(line, f"line {number} of {source}") for number, line in enumerate(lines, 1) if line])


def _long(text: str, where: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = date_ms(text)
    if not LONG_MIN <= value <= LONG_MAX:
        hint = ", nor a date such as 2026-11-22T10:30Z" if where.startswith("--") else ""
        raise ToolError(f"{where} is not a timestamp in milliseconds{hint}: {text!r}")
    return value


def _result(log: ReadOnlyLog, target: int, *, explain: bool) -> tuple[TimestampAndOffset | None, Explanation | None]:
    from kidx.lookup import TieredLog, explain_across_tiers, explain_timestamp  # noqa: PLC0415

    if explain and not supports_target(log.dialect, target):
        log.check_target(target)
        explanation = (
            explain_across_tiers(log, target) if isinstance(log, TieredLog) else explain_timestamp(log, target)
        )
        return explanation.answer, explanation
    return log.fetch_offset_by_timestamp(target), None


def _show(target: int, answer: TimestampAndOffset | None, explanation: Explanation | None, *, as_json: bool) -> None:
    from kidx.lookup.render import as_data, render  # noqa: PLC0415

    if as_json:
        found = answer is not None and answer.offset >= 0
        document = {
            "target": target,
            "offset": answer.offset if answer is not None and found else None,
            "timestamp": answer.timestamp if answer is not None and found and answer.timestamp != -1 else None,
            "leader_epoch": answer.leader_epoch if answer is not None and found else None,
        }
        if explanation is not None:
            document |= {"explanation": as_data(explanation)}  # type: ignore[dict-item]
        say_json(document)
    elif explanation is not None:
        say(*render(explanation))
    elif answer is None or answer.offset < 0:
        say(f"{target}: none")
    else:
        epoch = "none" if answer.leader_epoch is None else answer.leader_epoch
        say(f"{target}: offset {answer.offset}, timestamp {answer.timestamp}, leader epoch {epoch}")
