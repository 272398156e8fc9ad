"""``kidx dump``: the output of ``kafka-dump-log``, without Java, without writing, and with a meaningful exit code."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from kidx.commands.line import complain, say, say_json
from kidx.commands.options import ReleaseOption, date_ms, resolve_dialect
from kidx.discovery import LOG, parse_partition
from kidx.dump import Dump, Entry, Options
from kidx.dump.indexes import IndexOptions
from kidx.dump.internal import TOPICS, Decoder, decoder, decoder_names, parser_of
from kidx.dump.logs import LogOptions, Part
from kidx.errors import KidxError, ToolError
from kidx.java_values import INT_MAX, LONG_MAX, LONG_MIN, parse_java
from kidx.printable import counted
from kidx.records import TruncatedFileError
from kidx.remote.directory import parse_remote_partition

_FILE: Final = re.compile(r"\d{20}(?:-[A-Za-z0-9_-]{22})?\.(?:log|index|timeindex|txnindex|snapshot)", re.ASCII)
"""File of a local or remote segment."""


def dump_command(
    paths: Annotated[list[str] | None, typer.Argument(metavar="FILE ...", help="Files or directories.")] = None,
    *,
    files: Annotated[
        str | None, typer.Option("--files", metavar="FILE,FILE", help="Files in the syntax of kafka-dump-log.")
    ] = None,
    release: ReleaseOption = None,
    sanity_only: Annotated[
        bool, typer.Option("--index-sanity-check", help="Only the checks of a starting broker.")
    ] = False,
    verify_only: Annotated[
        bool, typer.Option("--verify-index-only", help="Check indexes against the log, without printing them.")
    ] = False,
    deep: Annotated[bool, typer.Option("--deep-iteration", help="One line per record.")] = False,
    print_data: Annotated[
        bool, typer.Option("--print-data-log", help="Key and value of every record; implies --deep-iteration.")
    ] = False,
    skip_metadata: Annotated[
        bool, typer.Option("--skip-record-metadata", help="Only key and value of each record.")
    ] = False,
    key_decoder: Annotated[
        str | None,
        typer.Option("--key-decoder-class", metavar="CLASS", help="Kafka's String-, Long- or IntegerDecoder."),
    ] = None,
    value_decoder: Annotated[
        str | None, typer.Option("--value-decoder-class", metavar="CLASS", help="Kafka's decoder for values.")
    ] = None,
    offsets: Annotated[
        bool, typer.Option("--offsets-decoder", help="Decode the records of __consumer_offsets.")
    ] = False,
    transactions: Annotated[
        bool, typer.Option("--transaction-log-decoder", help="Decode the records of __transaction_state.")
    ] = False,
    metadata: Annotated[
        bool, typer.Option("--cluster-metadata-decoder", help="Decode the records of KRaft's log and its snapshots.")
    ] = False,
    remote: Annotated[
        bool, typer.Option("--remote-log-metadata-decoder", help="Decode the records of __remote_log_metadata.")
    ] = False,
    offset_range: Annotated[
        str | None, typer.Option("--offsets", metavar="A:B", help="Records from offset A up to, excluding, B.")
    ] = None,
    time_range: Annotated[
        str | None,
        typer.Option("--times", metavar="A:B", help="Records from time A up to, excluding, B: milliseconds or dates."),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="NAME", help="Records of __consumer_offsets about this group.")
    ] = None,
    transactional_id: Annotated[
        str | None,
        typer.Option("--transactional-id", metavar="NAME", help="Records of __transaction_state about this id."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="First N records, or batches without records.")
    ] = None,
    max_message_size: Annotated[
        int, typer.Option(min=1, metavar="BYTES", help="Largest batch that an index entry may point at.")
    ] = 5 << 20,
    max_bytes: Annotated[
        int, typer.Option(min=0, max=INT_MAX, metavar="BYTES", help="Maximum number of bytes to read from each log.")
    ] = INT_MAX,
    format_name: Annotated[
        str, typer.Option("--format", metavar="text|json", help="Kafka's text, or one JSON object per line.")
    ] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print errors only.")] = False,
) -> int:
    """Print the dump of .log, .index, .timeindex, .txnindex and .snapshot files, as a release's kafka-dump-log does.

    Unlike Kafka's own tool it never creates or changes a file, and it exits with 1 if it finds a mismatch or a
    batch with isvalid: false. Of a part (--offsets, --times, --group, --transactional-id, --limit) only logs are
    printed: each batch that has a record of the part.

    Example: kidx dump --kafka 3.9.2 --deep-iteration /data/orders-0/00000000000000000000.log
    """
    given = [*(paths or ()), *(name for name in (files or "").split(",") if name)]
    names = [name for each in given for name in _files_at(each)]
    if not given:
        raise ToolError("missing file; use kidx dump FILE ..., or --files FILE,FILE")
    if format_name not in ("text", "json"):
        raise ToolError(f"unknown format {format_name!r}; choose from text, json")
    dialect = resolve_dialect(release)
    part = _part(offset_range, time_range, group, transactional_id, limit)
    if part is not None:
        names = [name for name in names if name.endswith(LOG)]
    offsets, transactions = offsets or group is not None, transactions or transactional_id is not None
    requested = zip(TOPICS, (offsets, transactions, metadata, remote), strict=True)
    internal = next((parser_of(name, dialect.release) for name, is_requested in requested if is_requested), None)
    prints = print_data or key_decoder is not None or value_decoder is not None or internal is not None
    log_options = LogOptions(
        deep=deep or prints,
        print_data=prints,
        skip_metadata=skip_metadata,
        key_decoder=_decoder(key_decoder),
        value_decoder=_decoder(value_decoder),
        internal=internal,
        max_bytes=max_bytes,
        part=part,
    )
    dump = Dump(dialect, Options(IndexOptions(sanity_only, verify_only, max_message_size), log_options))
    show = _show_nothing if quiet else _show_json if as_json or format_name == "json" else _show_text
    return _run(dump, names, show)


def _part(
    offsets: str | None, times: str | None, group: str | None, transactional_id: str | None, limit: int | None
) -> Part | None:
    if group is not None and transactional_id is not None:
        raise ToolError("--group and --transactional-id are of different topics; give one of them")
    part = Part()
    if offsets is not None:
        part.offsets = _range("--offsets", offsets, lambda text: parse_java(text, LONG_MAX))
    if times is not None:
        part.times = _range("--times", times, _time)
    part.name = group if group is not None else transactional_id
    part.remaining = LONG_MAX if limit is None else limit
    return None if part == Part() else part


def _range(option: str, text: str, parse: Callable[[str], int | None]) -> tuple[int, int]:
    """Return both ends of ``A:B``; a date may contain colons, so that every colon may be the one between them."""
    found = []
    for place in (place for place, char in enumerate(text) if char == ":"):
        ends = [
            default if not part else parse(part)
            for part, default in ((text[:place], LONG_MIN), (text[place + 1 :], LONG_MAX))
        ]
        if ends[0] is not None and ends[1] is not None:
            found.append((ends[0], ends[1]))
    if len(found) != 1:
        raise ToolError(f"{option} requires A:B, A: or :B, such as 1700000000000:1700000060000, not {text!r}")
    if found[0][0] >= found[0][1]:
        raise ToolError(f"{option} {text!r} is empty: its end is not after its beginning")
    return found[0]


def _time(text: str) -> int | None:
    number = parse_java(text, LONG_MAX)
    found = date_ms(text) if number is None else number
    return found if found <= LONG_MAX else None


def _files_at(name: str) -> list[str]:
    """Return the files that a path denotes: itself, or the files of a partition or log directory, in order.

    Raises:
        ToolError: a directory contains none.
    """
    path = Path(name)
    if not path.is_dir():
        return [name]
    try:
        names = _segment_files(path)
        if not names:
            below = (each for each in sorted(path.iterdir()) if _is_partition(each.name) and each.is_dir())
            names = [file for each in below for file in _segment_files(each)]
    except OSError as error:
        raise ToolError(f"cannot read {name}: {error.strerror}") from error
    if not names:
        raise ToolError(f"{name} is neither a file nor a directory with segments or partitions")
    return names


def _is_partition(name: str) -> bool:
    return parse_partition(name) is not None or parse_remote_partition(name) is not None


def _segment_files(directory: Path) -> list[str]:
    return [str(path) for path in sorted(directory.iterdir()) if _FILE.fullmatch(path.name) and path.is_file()]


def _run(dump: Dump, names: list[str], show: Any) -> int:
    errors = 0
    for name in names:
        if not Path(name).is_file():
            raise ToolError(f"{name} is {'not a file' if Path(name).exists() else 'missing'}")
        try:
            errors += _run_file(dump, name, show)
        except TruncatedFileError as error:
            sys.stdout.flush()
            raise ToolError(_with_name(name, error)) from error
        except KidxError as error:
            # Kafka ends here as well, with a stack trace.
            sys.stdout.flush()
            complain(f"kidx: {_with_name(name, error)}")
            return 1
        except OSError as error:
            sys.stdout.flush()
            raise ToolError(_with_name(name, error)) from error
    sys.stdout.flush()
    if show is _show_json:
        for mismatch in dump.mismatches.found:
            fields = {"found": mismatch.found, "expected": mismatch.expected, "false_alarm": mismatch.is_false_alarm}
            say_json({"file": mismatch.path, "kind": mismatch.kind} | fields)
    else:
        for line in dump.mismatch_lines():
            complain(line)
    return int(bool(dump.mismatches) or errors > 0)


def _run_file(dump: Dump, name: str, show: Any) -> int:
    """Print the dump of a file; return its number of errors: Kafka's own, and batches with ``isvalid: false``."""
    errors, invalid = 0, []
    for entry in dump.file(name):
        errors += entry.kind == "corrupt"
        if entry.kind == "batch" and not entry.fields["isvalid"]:
            invalid.append(entry.fields["position"])
        show(name, entry)
    if invalid:
        sys.stdout.flush()
        complain(f"kidx: {name}: {counted(len(invalid), 'batch')} with isvalid: false, from position {invalid[0]}")
    return errors + len(invalid)


def _with_name(name: str, error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if Path(name).name in text else f"{name}: {text}"


def _decoder(name: str | None) -> Decoder:
    found = decoder(name or "StringDecoder")
    if found is None:
        raise ToolError(f"unknown decoder {name!r}; choose from {', '.join(decoder_names())}")
    return found


def _show_text(_name: str, entry: Entry) -> None:
    line = entry.line()
    if entry.is_error:
        complain(line)
    elif entry.kind != "record" or sys.stdout.isatty():
        say(line)
    else:
        print(line)  # noqa: T201 -- keys and values unescaped, as in kafka-dump-log, for a program


def _show_json(name: str, entry: Entry) -> None:
    if entry.kind != "file":
        say_json({"file": name, "kind": entry.kind} | entry.fields)


def _show_nothing(_name: str, entry: Entry) -> None:
    if entry.is_error:
        complain(entry.line())
