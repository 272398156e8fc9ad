"""Command line ``conformance``; its exit codes are 0 (conforms), 1 (diverges) and 2 (could not run)."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.commands import (
    clauses,
    cluster,
    corrupt,
    damage,
    diff,
    exhaustive,
    fuzz,
    implementations,
    init,
    kafka,
    known_bugs,
    mutate,
    mutate_kafka,
    record_golden,
    replay,
    report,
    run,
    scoreboard,
    site,
    smoke,
    study,
    tiers,
    vectors,
)
from conformance.studies.interleave.study import INTERLEAVE
from conformance.studies.power_loss.study import POWER_LOSS
from kidx.commands import manual
from kidx.commands.line import run_app, version_printer

app = typer.Typer(
    name="conformance",
    help="Test whether an implementation of Kafka's log indexes behaves like Kafka itself: every byte, every result.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run_command)
app.command("init")(init.init_command)
app.command("smoke")(smoke.smoke_command)
app.command("replay")(replay.replay_command)
app.command("report")(report.report_command)
app.command("scoreboard")(scoreboard.scoreboard_command)
app.command("site")(site.site_command)
app.command("clauses")(clauses.clauses_command)
app.command("record-golden")(record_golden.record_golden_command)
app.command("fuzz")(fuzz.fuzz_command)
app.command("diff")(diff.diff_command)
app.command("cluster")(cluster.cluster_command)
app.command("corrupt")(corrupt.corrupt_command)
app.command("damage")(damage.damage_command)
app.command("tiers")(tiers.tiers_command)
app.command("vectors")(vectors.vectors_command)
app.command("mutate")(mutate.mutate_command)
app.command("mutate-kafka")(mutate_kafka.mutate_kafka_command)
app.command("known-bugs")(known_bugs.known_bugs_command)
app.command("exhaustive")(exhaustive.exhaustive_command)
app.command(INTERLEAVE.name)(study.command_of(INTERLEAVE))
app.command(POWER_LOSS.name)(study.command_of(POWER_LOSS))
app.command("man", help=(manual.man_command.__doc__ or "").replace("kidx man", "conformance man"))(manual.man_command)
app.add_typer(kafka.app, name="kafka")
app.add_typer(implementations.app, name="implementations")


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=version_printer("conformance"), is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Test whether an implementation of Kafka's log indexes behaves like Kafka itself: every byte, every result."""


def main() -> None:
    """Run the command line."""
    run_app(app, "conformance")


if __name__ == "__main__":
    main()
