"""The command line ``conformance``: arguments in, exit code out (0 conforms, 1 diverges, 2 could not do the work)."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.commands import (
    clustering,
    differing,
    file_damage,
    fuzzing,
    interleave,
    kafka,
    listing,
    power,
    power_historical,
    power_loss,
    power_small_world,
    recording,
    replaying,
    reporting,
    running,
    scoreboard,
    site,
    smoking,
    start_damage,
    starting,
    subjects,
    tiers,
    vectors,
)
from conformance.commands.aliases import COMMANDS
from kidx.commands import manual
from kidx.commands.aliases import accepting
from kidx.commands.line import run_app, version_printer

app = typer.Typer(
    name="conformance",
    cls=accepting(COMMANDS),
    help="Proves whether an implementation of Kafka's log indexes is Kafka's: byte for byte, answer for answer.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(running.run_command)
app.command("init")(starting.init_command)
app.command("smoke")(smoking.smoke_command)
app.command("replay")(replaying.replay_command)
app.command("report")(reporting.report_command)
app.command("scoreboard")(scoreboard.scoreboard_command)
app.command("site")(site.site_command)
app.command("clauses")(listing.list_command)
app.command("record-golden")(recording.record_command)
app.command("fuzz")(fuzzing.fuzz_command)
app.command("diff")(differing.diff_command)
app.command("cluster")(clustering.cluster_command)
app.command("corrupt")(file_damage.file_damage_command)
app.command("damage")(start_damage.start_damage_command)
app.command("tiers")(tiers.tiers_command)
app.command("vectors")(vectors.vectors_command)
app.command("mutate")(power.power_command)
app.command("known-bugs")(power_historical.historical_command)
app.command("exhaustive")(power_small_world.small_world_command)
app.command("interleave")(interleave.interleave_command)
app.command("power-loss")(power_loss.power_loss_command)
app.command("man", help=(manual.man_command.__doc__ or "").replace("kidx man", "conformance man"))(manual.man_command)
app.add_typer(kafka.app, name="kafka")
app.add_typer(subjects.app, name="implementations")


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=version_printer("conformance"), is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Proves whether an implementation of Kafka's log indexes is Kafka's: byte for byte, answer for answer."""


def main() -> None:
    """Entry point."""
    run_app(app, "conformance")


if __name__ == "__main__":
    main()
