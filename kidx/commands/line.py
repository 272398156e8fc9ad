"""Runtime of both command lines: exit codes, and one clear line for any error that ends the command.

Exit code 0: all conforms or is sound, 1: a divergence or a broken file was found, 2: the command could not do its work.
Another code is the ``exit_code`` of the ToolError that ends the command.
"""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, NoReturn

import typer

from kidx.commands.output import ReaderGoneError, watched_output
from kidx.errors import ToolError
from kidx.printable import json_text, printable, printable_lines
from kidx.signals import SignalledError, raised_signals

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
            code = app(standalone_mode=False)
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
