"""``conformance replay``: one recorded trace, step by step."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conformance.commands.options import (
    ImplementationOption,
    JsonOption,
    QuietOption,
    ReleaseOption,
    chosen_releases,
    echo,
    state_directory,
)
from conformance.kafka.progress import show_progress
from conformance.lockstep.divergence import failure_json
from conformance.report.divergence import in_words, on_lines_of_their_own, show
from conformance.runs.replay import find_trace, replay
from kidx.printable import printable

if TYPE_CHECKING:
    from conformance.lockstep import Divergence
    from conformance.operations import Observation, Operation


def replay_command(
    trace: Annotated[str, typer.Argument(metavar="TRACE|ID", help="A trace file, or the id of a recorded one.")],
    kafka: ReleaseOption = None,
    implementation: ImplementationOption = None,
    script: Annotated[
        list[Path] | None,
        typer.Option("--script", metavar="FILE", help="Write it as a program, too: .py or .java."),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Perform a recorded trace again: FIXED (nobody diverges), FAILED, or an error.

    Without `--kafka` it runs against the release it was recorded for. Exit code 0: FIXED, 1: FAILED, 2: ERROR.

    Example: `conformance replay 5f0c2a9be31d --kafka 4.4.0`
    """
    directories = [state_directory() / "traces", Path(str(files("conformance") / "traces"))]
    recorded = find_trace(trace, directories)
    implementations = implementation or ["jvm"]
    releases = chosen_releases(kafka or [recorded.release], implementations)
    programs: list[tuple[Path, str]] = []
    if script:
        from conformance.runs.script import script_of, write_text  # noqa: PLC0415 -- only where one is wanted

        programs = [(path, script_of(path, recorded, releases[-1], implementations[0])) for path in script]
    steps: list[dict[str, Any]] = []

    def tell(number: int, step: Operation, seen: Observation | None, difference: Divergence | None) -> None:
        if as_json:
            steps.append(_step(step, seen, difference))
        elif not quiet:
            echo(_line(number, step, seen, difference))

    with show_progress("Kafka's jars") as progress:
        result = replay(recorded, releases, implementations, tell, progress)
    for path, text in programs:  # nothing is left behind by a replay that was refused
        write_text(path, text)
    if as_json:
        document = {"verdict": result.verdict, "id": recorded.id, "machine": recorded.machine, "releases": releases}
        typer.echo(json.dumps(document | {"steps": steps}))
    else:
        title = f" · {printable(recorded.title)}" if recorded.title else ""
        echo(f"{result.verdict} · {result.steps} of {len(recorded.operations)} steps{title}")
    return 0 if result.verdict == "FIXED" else 1


def _step(step: Operation, seen: Observation | None, difference: Divergence | None) -> dict[str, Any]:
    document: dict[str, Any] = {"request": step.to_json()}
    if seen is not None:
        document["reply"] = seen.outcome.to_json()
        document["state"] = None if seen.state is None else seen.state.to_json()
    if difference is not None:
        document["divergence"] = failure_json(difference)
    return document


def _line(number: int, step: Operation, seen: Observation | None, difference: Divergence | None) -> str:
    if difference is None:
        return printable(f"  {number + 1:3}  {step}  →  {seen.outcome if seen is not None else ''}")
    failure = failure_json(difference)
    expected, actual = failure["expected"], failure["actual"]
    if failure["aspects"][0] == "outcome":
        expected, actual = in_words(expected), in_words(actual)
    against = "the model" if difference.against == "model" else "expected"
    lines = (
        f"> {number + 1:3}  {step}",
        f"       {against:9} {show(expected)}",
        f"       {'actual':9} {show(actual)}   ({difference.party}, {', '.join(difference.aspects)})",
    )
    return "\n".join(on_lines_of_their_own(lines, indent=" " * 17))
