"""Command line ``kidx``, which reads, verifies and repairs log directories."""

from __future__ import annotations

from typing import Annotated

import typer

from kidx.commands import demo, dump, explain, lookup, manual, rebuild, repair, replicas, verify
from kidx.commands import replicas as trends
from kidx.commands.line import run_app, version_printer

app = typer.Typer(
    name="kidx",
    help="Looks into, verifies and repairs Kafka's log directories; reading never changes them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("demo")(demo.demo_command)
app.command("dump")(dump.dump_command)
app.command("lookup")(lookup.lookup_command)
app.command("rebuild")(rebuild.rebuild_command)
app.command("verify")(verify.verify_command)
app.command("repair")(repair.repair_command)
app.command("explain")(explain.explain_command)
app.command("compare-replicas")(replicas.replicas_command)
app.command("compare")(trends.trends_command)
app.command("man")(manual.man_command)


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
