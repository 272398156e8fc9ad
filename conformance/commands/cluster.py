"""``conformance cluster``: comparison of the responses and index files of three brokers.

An index file is exact if it has the bytes that the release writes for its log, sound if all lookups are right, or else
broken.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from conformance.commands.options import (
    JsonOption,
    QuietOption,
    ReleaseOption,
    VerboseOption,
    echo,
    plain_console,
    resolve_releases,
)
from conformance.kafka.broker.config import Mode, modes_of
from conformance.kafka.progress import show_progress
from conformance.verdict import Comparison

if TYPE_CHECKING:
    from conformance.experiments.cluster import ClusterResult


def cluster_command(
    kafka: ReleaseOption = None,
    both: Annotated[
        bool, typer.Option("--all-modes", help="Run with KRaft and with ZooKeeper, if a release supports both.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Random seed; a fixed seed produces the same records.")] = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> int:
    """Compare the replicas of a three-broker cluster with one another.

    The command kills and restarts brokers, moves leadership, and makes a replica truncate a diverging log. After each
    of these it queries leaders and followers. Then it checks the index files of every replica: exact, sound (with the
    reason), or broken. Exit code 0: all is as expected, 1: something is not, 2: could not run.

    Example: `conformance cluster --kafka 3.9.0 --kafka 4.3.1`
    """
    from conformance.experiments.cluster import run_cluster  # noqa: PLC0415 -- numpy is not for --help

    results: list[ClusterResult] = []
    for release in resolve_releases(kafka):
        modes: tuple[Mode | None, ...] = modes_of(release) if both else (None,)
        for mode in modes:
            with show_progress(f"Kafka {release}") as progress:
                result = run_cluster(
                    release,
                    seed=seed,
                    mode=mode,
                    progress=progress,
                    show=lambda line: None if as_json or quiet else echo(line),
                )
            results.append(result)
            if not as_json:
                for mismatch in result.mismatches:
                    echo(str(mismatch))
    compared = Comparison(
        sum(result.answers + len(result.files) for result in results), sum(len(result.mismatches) for result in results)
    )
    if as_json:
        typer.echo(json.dumps({"verdict": compared.conclusion, "clusters": [result.to_json() for result in results]}))
    else:
        plain_console().print(_table(results))
        if verbose:
            _print_reasons(results)
    return compared.settle()


def _table(results: list[ClusterResult]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("release", no_wrap=True)
    table.add_column("mode", no_wrap=True)
    for heading in (
        "responses",
        "follower responses",
        "error responses",
        "indexes",
        "exact",
        "sound",
        "broken",
        "differs from leader",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("why not exact")
    table.add_column("unexpected", justify="right")
    for result in results:
        numbers = (
            result.answers,
            result.followers_answers,
            result.refusals,
            len(result.files),
            *(result.count(verdict) for verdict in ("exact", "sound", "broken")),
            result.differing,
        )
        reasons = ", ".join(f"{count} {clause}" for clause, count in sorted(result.reasons.items()))
        table.add_row(result.release, result.mode, *map(str, numbers), reasons, str(len(result.mismatches)))
    return table


def _print_reasons(results: list[ClusterResult]) -> None:
    """Print the verdict and the reason for every index file that is not exact."""
    for result in results:
        for file in result.files:
            if file.why:
                echo(f"{result.release} broker {file.replica} {file.name}: {file.verdict}, {file.why}")
