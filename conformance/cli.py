"""Command line ``conformance``; its exit codes are 0 (conforms), 1 (diverges) and 2 (could not run)."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from conformance.commands import (
    clauses,
    cluster,
    diff,
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
    vectors,
)
from conformance.studies.fuzz.study import FUZZ
from conformance.studies.index_corruption.study import CORRUPT
from conformance.studies.interleave.study import INTERLEAVE
from conformance.studies.power_loss.study import POWER_LOSS
from conformance.studies.small_world.study import EXHAUSTIVE
from conformance.studies.start_damage.study import DAMAGE
from conformance.studies.tiers.study import TIERS
from kidx.commands import manual
from kidx.commands.help import Panels, add_commands
from kidx.commands.line import run_app, version_printer

app = typer.Typer(
    name="conformance",
    help="Test whether an implementation of Kafka's log indexes behaves like Kafka itself: every byte, every result.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS: Final[Panels] = {
    "Test yours": {
        "init": init.init_command,
        "smoke": smoke.smoke_command,
        "run": run.run_command,
        "replay": replay.replay_command,
        FUZZ.name: study.command_of(FUZZ),
        EXHAUSTIVE.name: study.command_of(EXHAUSTIVE),
        "vectors": vectors.vectors_command,
    },
    "Kafka's releases": {
        "diff": diff.diff_command,
        DAMAGE.name: study.command_of(DAMAGE),
        CORRUPT.name: study.command_of(CORRUPT),
        POWER_LOSS.name: study.command_of(POWER_LOSS),
        INTERLEAVE.name: study.command_of(INTERLEAVE),
        "cluster": cluster.cluster_command,
        TIERS.name: study.command_of(TIERS),
        "record-golden": record_golden.record_golden_command,
    },
    "Evidence": {
        "mutate": mutate.mutate_command,
        "mutate-kafka": mutate_kafka.mutate_kafka_command,
        "known-bugs": known_bugs.known_bugs_command,
    },
    "Pages": {
        "clauses": clauses.clauses_command,
        "report": report.report_command,
        "scoreboard": scoreboard.scoreboard_command,
        "site": site.site_command,
    },
}
add_commands(app, _COMMANDS)
_MAN = (manual.man_command.__doc__ or "").replace("kidx man", "conformance man")
app.command("man", help=_MAN, rich_help_panel="Pages")(manual.man_command)
app.add_typer(implementations.app, name="implementations", rich_help_panel="Test yours")
app.add_typer(kafka.app, name="kafka", rich_help_panel="Kafka's releases")


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
