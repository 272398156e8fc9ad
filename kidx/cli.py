"""Command line ``kidx``, which reads, verifies and repairs log directories."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from kidx.commands import demo, dump, explain, lookup, manual, rebuild, repair, replicas, verify
from kidx.commands import replicas as trends
from kidx.commands.help import Panels, add_commands
from kidx.commands.line import run_app, version_printer

app = typer.Typer(
    name="kidx",
    help="Looks into, verifies and repairs Kafka's log directories; reading never changes them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_COMMANDS: Final[Panels] = {
    "Find out": {
        "verify": verify.verify_command,
        "lookup": lookup.lookup_command,
        "explain": explain.explain_command,
        "compare-replicas": replicas.replicas_command,
        "dump": dump.dump_command,
    },
    "Repair": {"repair": repair.repair_command, "rebuild": rebuild.rebuild_command},
    "More": {"demo": demo.demo_command, "compare": trends.trends_command, "man": manual.man_command},
}
add_commands(app, _COMMANDS)


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=version_printer("kidx"), is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Look into, verify and repair Kafka's log directories; reading never changes them."""


def main() -> None:
    """Run the command line and exit."""
    run_app(app, "kidx")


if __name__ == "__main__":
    main()
