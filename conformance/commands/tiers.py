"""``conformance tiers``: brokers with tiered storage, and corruption of their cache of remote index files."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from conformance.commands.options import (
    AllowIncompleteOption,
    JsonOption,
    QuietOption,
    ReleaseOption,
    echo,
    resolve_releases,
)
from conformance.commands.output_files import write_texts
from conformance.errors import ToolError
from conformance.verdict import Comparison


def tiers_command(
    kafka: ReleaseOption = None,
    report: Annotated[Path | None, typer.Option(metavar="DIR", help="Write tiered.md and tiered.json here.")] = None,
    answers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Compare N responses across tiers instead; --report adds the counts."),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Random seed of --answers; drawn by default.")] = None,
    max_time: Annotated[
        float | None, typer.Option(metavar="S", min=1, help="Seconds for --answers of one release.")
    ] = None,
    only: Annotated[str | None, typer.Option(metavar="TEXT", help="Only cases whose names contain TEXT.")] = None,
    allow_incomplete: AllowIncompleteOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Query brokers with tiered storage for offsets, and start them with a corrupt cache of remote index files.

    With --answers, a state machine drives topics instead, and every response to ListOffsets is compared.
    Each broker keeps its remote tier in a local directory, with Kafka's own test jar. Exit code 0: every start is as
    `kidx verify` predicts it, and every response is explained, 1: not, 2: could not run, or compared nothing,
    3: --max-time ended --answers early.

    Example: `conformance tiers --kafka 4.3.1 --report out/tiers`
    """
    from conformance.experiments.tiers import CASES, RELEASES, try_release  # noqa: PLC0415 -- part of an extra
    from conformance.experiments.tiers.table import markdown, merged, to_json  # noqa: PLC0415

    releases = resolve_releases(kafka) if kafka else list(RELEASES)
    unknown = [release for release in releases if release not in RELEASES]
    if unknown:
        raise ToolError(f"no test jar is locked for Kafka {', '.join(unknown)}; choose from {', '.join(RELEASES)}")
    cases = [case for case in CASES if only is None or only in case.name]
    if not cases:
        raise ToolError(f"no case has {only!r} in its name")

    def show(line: str) -> None:
        if not (quiet or as_json):
            echo(line)

    if answers is not None:
        compared = _compare_answers(releases, answers, seed, max_time, report, show, as_json=as_json)
        return compared.settle(allow_incomplete=allow_incomplete)
    results: list[dict[str, Any]] = []
    provenance = _provenance(releases, {"--only": only, "--report": report})
    for release in releases:
        results.append(to_json(try_release(release, cases, show), provenance))
        if report is not None:
            _write(report, merged(_read(report), results[-1]))
    starts = [start["as_predicted"] for result in results for start in result["starts"]]
    compared = Comparison(len(starts), starts.count(False))
    if as_json:
        typer.echo(json.dumps({"verdict": compared.conclusion, "releases": results}))
    else:
        echo(markdown(results), nl=False)
    return compared.settle(allow_incomplete=allow_incomplete)


def _compare_answers(
    releases: Sequence[str],
    answers: int,
    seed: int | None,
    seconds: float | None,
    report: Path | None,
    show: Callable[[str], None],
    *,
    as_json: bool,
) -> Comparison:
    """Compare responses, add the counts to an earlier report, and return what was compared."""
    from conformance.experiments.tiers.experiment import answer_release  # noqa: PLC0415 -- part of an extra
    from conformance.experiments.tiers.table import counts_text, with_counts  # noqa: PLC0415

    without = set(releases) - {result["release"] for result in _read(report)} if report is not None else set()
    if without:
        missing = ", ".join(sorted(without))
        raise ToolError(f"{report} has no results of Kafka {missing}; run the command without --answers first")
    first = secrets.randbelow(1 << 30) if seed is None else seed
    show(f"seed {first}")
    options = {"--answers": answers, "--seed": first, "--max-time": seconds, "--report": report}
    provenance = _provenance(releases, options)
    counts = []
    for release in releases:
        counts.append(answer_release(release, answers, first, show, seconds))
        show(counts_text(counts[-1]))
        if report is not None:
            _write(report, with_counts(_read(report), counts[-1], provenance))
    gaps = [
        f"{answers - each.answers} of {answers} responses of Kafka {each.release} not compared (--max-time)"
        for each in counts
        if each.answers < answers
    ]
    idle = [f"Kafka {each.release}: no response was compared" for each in counts if not each.answers]
    found = sum(len(each.divergences) for each in counts)
    compared = Comparison(sum(each.answers for each in counts), found, tuple(gaps), idle=tuple(idle))
    if as_json:
        typer.echo(
            json.dumps(
                {"verdict": compared.conclusion, "releases": [{"release": c.release} | c.to_json() for c in counts]}
            )
        )
    return compared


def _provenance(releases: Sequence[str], options: Mapping[str, object]) -> str:
    """Return the command in full, with the version of kidx."""
    words = [f"--kafka {release}" for release in releases]
    words += [f"{name} {shlex.quote(str(value))}" for name, value in options.items() if value is not None]
    return f"`conformance tiers {' '.join(words)}` with kidx {version('kidx')}"


def _read(directory: Path) -> list[dict[str, Any]]:
    """Return the objects of an earlier report in a directory; none without a report.

    Raises:
        ToolError: The earlier report cannot be read.
    """
    path = directory / "tiered.json"
    try:
        found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise ToolError(f"cannot read {path}: {error}") from error
    return found


def _write(directory: Path, results: list[dict[str, Any]]) -> None:
    from conformance.experiments.tiers.table import page  # noqa: PLC0415 -- part of an extra

    write_texts(
        {directory / "tiered.md": page(results), directory / "tiered.json": json.dumps(results, indent=1) + "\n"}
    )
