"""What both command lines share: exit codes, and one clear line for whatever stops the work.

Exit code 0: all conforms or is sound, 1: a divergence or a broken file was found, 2: the work could not be done.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import typer

from kidx.errors import ToolError
from kidx.printable import json_text, printable, printable_lines
from kidx.signals import SignalledError, raised_signals

# typer carries a copy of click in some versions and depends on it in others; this is the class in either.
_UsageError: type[Exception] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def version_printer(name: str) -> Callable[[bool], None]:
    """The callback of a command line's ``--version``."""

    def show(wanted: bool) -> None:
        if wanted:
            from importlib.metadata import version  # noqa: PLC0415 -- only when asked

            typer.echo(f"{name} {version('kidx')}")
            raise typer.Exit

    return show


def run_app(app: typer.Typer, name: str) -> NoReturn:
    """Runs a command line and leaves with its exit code: no traceback for what a user can put right.

    Args:
        app: a command returns its exit code, None for 0, or raises ToolError.
        name: what the line on stderr begins with.
    """
    for stream in (sys.stdout, sys.stderr):
        # What the terminal's encoding does not have is shown escaped, and never ends the work.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with raised_signals():
            code = app(standalone_mode=False)
        sys.stdout.flush()
    except SignalledError as signalled:
        code = signalled.exit_code
    except ToolError as error:
        code = _complain(name, str(error))
    except _UsageError as error:
        code = _complain(name, " ".join(error.format_message().split()))  # type: ignore[attr-defined]
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does; Python must not try to write the rest on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except Exception:  # noqa: BLE001 -- exit code 1, which Python itself would give, says that something diverges
        print(printable_lines(traceback.format_exc()), end="", file=sys.stderr)  # noqa: T201
        code = _complain(name, "this is a bug, please report the lines above")
    sys.exit(code if isinstance(code, int) else 0)


def say(*lines: str) -> None:
    """Prints lines on stdout, each with everything escaped that could command a terminal or forge another line."""
    for line in lines:
        print(printable(line))  # noqa: T201


def complain(*lines: str) -> None:
    """The same on stderr."""
    for line in lines:
        print(printable(line), file=sys.stderr)  # noqa: T201


def say_json(value: Any) -> None:
    """Prints a value as one line of JSON, by :func:`kidx.printable.json_text`."""
    print(json_text(value))  # noqa: T201


def _complain(name: str, message: str) -> int:
    if message:  # none after the help that a command without arguments prints
        print(f"{name}: {printable(message)}", file=sys.stderr)  # noqa: T201
    return 2
