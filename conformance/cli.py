"""The command line ``conformance``: arguments in, exit code out (0 conforms, 1 diverges, 2 could not do the work)."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated

import typer

from conformance.commands import differing, kafka, listing, recording, replaying, running, smoking
from conformance.commands.options import print_version
from conformance.errors import ToolError

# typer carries a copy of click in some versions and depends on it in others; this is the class in either.
_UsageError: type[Exception] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

app = typer.Typer(
    name="conformance",
    help="Proves whether an implementation of Kafka's log indexes is Kafka's: byte for byte, answer for answer.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command("run")(running.run_command)
app.command("smoke")(smoking.smoke_command)
app.command("replay")(replaying.replay_command)
app.command("list")(listing.list_command)
app.command("record")(recording.record_command)
app.command("diff")(differing.diff_command)
app.add_typer(kafka.app, name="kafka")


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Proves whether an implementation of Kafka's log indexes is Kafka's: byte for byte, answer for answer."""


def main() -> None:
    """Entry point: every way of not being able to do the work is one line on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except ToolError as error:
        code = _complain(str(error))
    except _UsageError as error:
        code = _complain(" ".join(error.format_message().split()))  # type: ignore[attr-defined]
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    except BrokenPipeError:
        # Whoever reads has had enough, as `head` has; Python must not try to write the rest on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except Exception:  # noqa: BLE001 -- exit code 1, which Python itself would give, says that something diverges
        traceback.print_exc()
        code = _complain("this is a bug, please report the lines above")
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> int:
    if message:  # none after the help that a command without arguments prints
        print(f"conformance: {message}", file=sys.stderr)  # noqa: T201
    return 2
