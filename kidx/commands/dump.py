"""``kidx dump``: what ``kafka-dump-log`` prints, without Java, without writing, and with an exit code that tells."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from kidx.commands.line import complain, say, say_json
from kidx.commands.options import ReleaseOption, chosen_dialect
from kidx.discovery import parse_partition
from kidx.dump import Dump, Entry, Options
from kidx.dump.decoders import Decoder, decoder, decoder_names
from kidx.dump.indexes import IndexOptions
from kidx.dump.logs import LogOptions
from kidx.errors import KidxError, ToolError
from kidx.java_numbers import INT_MAX
from kidx.records import FileCutError

_FILE: Final = re.compile(r"\d{20}\.(?:log|index|timeindex|txnindex|snapshot)")


def dump_command(
    paths: Annotated[list[str] | None, typer.Argument(metavar="FILE ...", help="Files or directories.")] = None,
    *,
    files: Annotated[
        str | None, typer.Option("--files", metavar="FILE,FILE", help="The same, as kafka-dump-log takes them.")
    ] = None,
    release: ReleaseOption = None,
    sanity_only: Annotated[
        bool, typer.Option("--index-sanity-check", help="Only what a broker checks when it starts.")
    ] = False,
    verify_only: Annotated[
        bool, typer.Option("--verify-index-only", help="Check indexes against the log, without printing them.")
    ] = False,
    deep: Annotated[bool, typer.Option("--deep-iteration", help="A line for every record.")] = False,
    print_data: Annotated[
        bool, typer.Option("--print-data-log", help="Key and value of every record; implies --deep-iteration.")
    ] = False,
    skip_metadata: Annotated[
        bool, typer.Option("--skip-record-metadata", help="Of a record, only key and value.")
    ] = False,
    key_decoder: Annotated[
        str | None,
        typer.Option("--key-decoder-class", metavar="CLASS", help="Kafka's String-, Long- or IntegerDecoder."),
    ] = None,
    value_decoder: Annotated[
        str | None, typer.Option("--value-decoder-class", metavar="CLASS", help="The same for values.")
    ] = None,
    max_message_size: Annotated[
        int, typer.Option(min=1, metavar="BYTES", help="Largest batch that an index entry may point at.")
    ] = 5 << 20,
    max_bytes: Annotated[
        int, typer.Option(min=0, max=INT_MAX, metavar="BYTES", help="Bytes to read of each log.")
    ] = INT_MAX,
    format_name: Annotated[
        str, typer.Option("--format", metavar="text|json", help="Kafka's text, or one JSON object a line.")
    ] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only what is wrong.")] = False,
) -> int:
    """Print what a release's kafka-dump-log prints of .log, .index, .timeindex, .txnindex and .snapshot files.

    Unlike Kafka's own tool it never creates or changes a file, and it exits with 1 when it found a mismatch.

    Example: kidx dump --kafka 3.9.2 --deep-iteration /data/orders-0/00000000000000000000.log
    """
    given = [*(paths or ()), *(name for name in (files or "").split(",") if name)]
    names = [name for each in given for name in _files_at(each)]
    if not given:
        raise ToolError("no file was given: kidx dump FILE ..., or --files FILE,FILE")
    if format_name not in ("text", "json"):
        raise ToolError(f"there is no format {format_name!r}; there are text and json")
    prints = print_data or key_decoder is not None or value_decoder is not None
    options = Options(
        IndexOptions(sanity_only, verify_only, max_message_size),
        LogOptions(deep or prints, prints, skip_metadata, _decoder(key_decoder), _decoder(value_decoder), max_bytes),
    )
    dump = Dump(chosen_dialect(release), options)
    show = _show_nothing if quiet else _show_json if as_json or format_name == "json" else _show_text
    return _run(dump, names, show)


def _files_at(name: str) -> list[str]:
    """The files that a name stands for: itself, or those of a partition or of a log directory, in order.

    Raises:
        ToolError: a directory that holds none.
    """
    place = Path(name)
    if not place.is_dir():
        return [name]
    try:
        names = _segment_files(place)
        if not names:
            below = (each for each in sorted(place.iterdir()) if parse_partition(each.name) and each.is_dir())
            names = [file for each in below for file in _segment_files(each)]
    except OSError as error:
        raise ToolError(f"{name} cannot be read: {error.strerror}") from error
    if not names:
        raise ToolError(f"{name} is not a file, nor a directory with segments or partitions in it")
    return names


def _segment_files(directory: Path) -> list[str]:
    return [str(path) for path in sorted(directory.iterdir()) if _FILE.fullmatch(path.name) and path.is_file()]


def _run(dump: Dump, names: list[str], show: Any) -> int:
    complaints = 0
    for name in names:
        if not Path(name).is_file():
            raise ToolError(f"{name} is {'not a file' if Path(name).exists() else 'missing'}")
        try:
            for entry in dump.file(name):
                complaints += entry.kind == "corrupt"
                show(name, entry)
        except FileCutError as error:
            sys.stdout.flush()
            raise ToolError(_naming(name, error)) from error
        except KidxError as error:
            # Kafka ends here as well, with a stack trace.
            sys.stdout.flush()
            complain(f"kidx: {_naming(name, error)}")
            return 1
        except OSError as error:
            sys.stdout.flush()
            raise ToolError(_naming(name, error)) from error
    sys.stdout.flush()
    if show is _show_json:
        for mismatch in dump.mismatches.found:
            fields = {"found": mismatch.found, "expected": mismatch.expected, "false_alarm": mismatch.is_false_alarm}
            say_json({"file": mismatch.path, "kind": mismatch.kind} | fields)
    else:
        for line in dump.mismatch_lines():
            complain(line)
    return int(bool(dump.mismatches) or complaints > 0)


def _naming(name: str, error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if Path(name).name in text else f"{name}: {text}"


def _decoder(name: str | None) -> Decoder:
    found = decoder(name or "StringDecoder")
    if found is None:
        raise ToolError(f"there is no decoder {name!r} without Java; there are {', '.join(decoder_names())}")
    return found


def _show_text(_name: str, entry: Entry) -> None:
    line = entry.line()
    if entry.is_complaint:
        complain(line)
    elif entry.kind != "record" or sys.stdout.isatty():
        say(line)
    else:
        print(line)  # noqa: T201 -- keys and values letter for letter, as kafka-dump-log has them, for a program


def _show_json(name: str, entry: Entry) -> None:
    if entry.kind != "file":
        say_json({"file": name, "kind": entry.kind} | entry.fields)


def _show_nothing(_name: str, entry: Entry) -> None:
    if entry.is_complaint:
        complain(entry.line())
