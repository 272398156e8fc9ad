"""The command line ``conformance``: arguments in, exit code out (0 conforms, 1 diverges, 2 could not do the work)."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from conformance.commands import kafka, listing, replaying, running
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
app.command("replay")(replaying.replay_command)
app.command("list")(listing.list_command)
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
    except ToolError as error:
        code = _complain(str(error))
    except _UsageError as error:
        code = _complain(" ".join(error.format_message().split()))  # type: ignore[attr-defined]
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> int:
    print(f"conformance: {message}", file=sys.stderr)  # noqa: T201
    return 2
