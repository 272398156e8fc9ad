"""Runtime of both command lines: exit codes, and one clear line for any error that ends the command.

Exit code 0: all conforms or is sound, 1: a divergence or a broken file was found, 2: the command could not do its work.
Another code is the ``exit_code`` of the ToolError that ends the command. The reader of standard output or of errors may
exit, as ``head`` does: the command then ends quietly.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
import traceback
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from kidx.commands.help import simplify
from kidx.errors import ToolError
from kidx.printable import json_text, printable, printable_lines
from kidx.signals import SignalledError, raised_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class ReaderGoneError(BaseException):
    """Write to a pipe whose reader has exited.

    It is not an OSError, which is an error of the files that a command reads, and is reported as such.
    """


class _Pipe(io.FileIO):
    """Pipe to the reader of standard output or of errors."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            # Python writes the rest of its buffer when it exits, so the pipe is replaced.
            with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 -- not a path of the user
                os.dup2(nowhere.fileno(), self.fileno())
            raise ReaderGoneError from None


@contextlib.contextmanager
def watched_output() -> Iterator[None]:
    """Raise :class:`ReaderGoneError` inside the block for writes to a pipe without a reader."""
    names = [name for name in ("stdout", "stderr") if _is_pipe(getattr(sys, name))]
    before = {name: getattr(sys, name) for name in names}
    for name, stream in before.items():
        stream.flush()
        setattr(sys, name, _watched(stream))
    try:
        yield
    finally:
        for name, stream in before.items():
            watched, now = getattr(sys, name), stream
            setattr(sys, name, now)
            with contextlib.suppress(ReaderGoneError):
                watched.flush()


def _watched(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    raw = _Pipe(stream.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        newline="\n",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _is_pipe(stream: object) -> bool:
    if not isinstance(stream, io.TextIOWrapper):
        return False
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


# typer contains a copy of click in some versions and depends on it in others; this is the class in either.
_UsageError: type[Exception] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def version_printer(name: str) -> Callable[[bool], None]:
    """Return the callback of a command line's ``--version``."""

    def show(requested: bool) -> None:
        if requested:
            from importlib.metadata import version  # noqa: PLC0415 -- only on request

            typer.echo(f"{name} {version('kidx')}")
            raise typer.Exit

    return show


def run_app(app: typer.Typer, name: str) -> NoReturn:
    """Run a command line and exit with its exit code; errors that a user can fix print no traceback.

    Args:
        app: the application; its commands return the exit code, None for 0, or raise ToolError.
        name: start of each line on stderr.
    """
    for stream in (sys.stdout, sys.stderr):
        # Characters that the terminal's encoding lacks are escaped, and never end the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with raised_signals(), watched_output():
            command: Any = typer.main.get_command(app)
            simplify(command)
            code = command(standalone_mode=False)
            sys.stdout.flush()
    except SignalledError as signalled:
        _complain(name, str(signalled))
        code = signalled.exit_code
    except ReaderGoneError:
        code = 141
    except ToolError as error:
        _complain(name, str(error))
        code = error.exit_code
    except _UsageError as error:
        code = _complain(name, _usage(error))
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    except Exception:  # noqa: BLE001 -- Python's own exit code 1 would report a divergence
        print(printable_lines(traceback.format_exc()), end="", file=sys.stderr)  # noqa: T201
        code = _complain(name, "this is a bug, please report the lines above")
    sys.exit(code if isinstance(code, int) else 0)


def say(*lines: str) -> None:
    """Print lines on stdout, escaping everything that could control a terminal or forge another line."""
    for line in lines:
        print(printable(line))  # noqa: T201


def complain(*lines: str) -> None:
    """Print lines on stderr, escaped as in :func:`say`."""
    for line in lines:
        print(printable(line), file=sys.stderr)  # noqa: T201


def say_json(value: Any) -> None:
    """Print a value as one line of JSON, by :func:`kidx.printable.json_text`."""
    print(json_text(value))  # noqa: T201


def _usage(error: Any) -> str:
    """Return the error in a command line as one line, with the option that was probably meant."""
    message = " ".join(error.format_message().split()).replace("Value error, ", "")
    if type(error).__name__ != "NoSuchOption" or error.ctx is None:
        return message
    known = [name for each in error.ctx.command.params for name in each.opts if name.startswith("--")]
    alike = [name for name in known if name.startswith(error.option_name)]
    alike = alike or get_close_matches(error.option_name, known, 1)
    return f"{error.message}; did you mean {' or '.join(alike)}?" if alike else str(error.message)


def _complain(name: str, message: str) -> int:
    if message:  # empty after the help that a command without arguments prints
        print(f"{name}: {printable(message)}", file=sys.stderr)  # noqa: T201
    return 2
