"""``conformance run``: comparison of implementations with the reference."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from conformance.clauses.editions import load_edition
from conformance.commands.external_broker import attachment_of
from conformance.commands.options import (
    EDITION_HELP,
    PROFILE_HELP,
    AllowIncompleteOption,
    BrokerChoice,
    BrokerOption,
    JsonOption,
    Level,
    MachineOption,
    OperationOption,
    QuietOption,
    RunImplementationOption,
    RunReleaseOption,
    SeedOption,
    ShrinkTimeOption,
    StepTimeoutOption,
    VerboseOption,
    broker_option,
    echo,
    output_option,
    plain_console,
    resolve_machines,
    resolve_operations,
    resolve_releases,
    run_option,
    verdict_option,
)
from conformance.commands.wire_options import (
    CommandConfigOption,
    SkipFeatureOption,
    StartCommandOption,
    TopicConfigOption,
    wire_options,
)
from conformance.errors import CoverageError, ToolError
from conformance.events import Diverged, Result, RunFinished
from conformance.expectations import StaleExpectationError, load_expectations
from conformance.expectations.proposal import propose
from conformance.implementations.forms import directory_of, is_server
from conformance.implementations.spec import build_of, parse_spec
from conformance.kafka.broker import choose
from conformance.kafka.progress import show_progress
from conformance.lockstep.watchdog import STEP_TIMEOUT_S, exit_process
from conformance.report.stream import CombinedSink, NdjsonWriter
from conformance.report.terminal import TerminalWriter
from conformance.runs.completeness import compared_in
from conformance.runs.profiles import PROFILES, resolve_seed
from conformance.runs.runner import Plan, run
from conformance.runs.shrinking import SHRINK_SECONDS
from conformance.scratch import state_directory
from kidx.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.events import Event, Sink

ProfileName = StrEnum("ProfileName", [(name, name) for name in PROFILES])  # type: ignore[misc]
_DEV = ProfileName("dev")
_OBSERVED = Level("observed")
_TIERS = ("jvm", "broker")
"""Implementations that ``--require`` accepts: they need Java or brokers, which some computers lack."""
Engine = StrEnum("Engine", ["local", "spark"])
_LOCAL = Engine("local")


def run_command(
    kafka: RunReleaseOption = None,
    implementation: RunImplementationOption = None,
    machine: MachineOption = None,
    operation: OperationOption = None,
    profile: Annotated[ProfileName, run_option(help=PROFILE_HELP)] = _DEV,
    seed: SeedOption = None,
    max_examples: Annotated[
        int | None, run_option(min=1, help="Examples for each machine.", show_default="the profile's number")
    ] = None,
    max_time: Annotated[
        float | None,
        run_option(
            min=0.1,
            metavar="S",
            help="Seconds for regression traces and examples; shrinking divergences takes more.",
            show_default="no limit",
        ),
    ] = None,
    shrink_time: ShrinkTimeOption = SHRINK_SECONDS,
    no_shrink: Annotated[
        bool,
        verdict_option(
            "--no-shrink",
            help="For a gate: find all divergences, and keep their traces as they were found;"
            " `conformance replay TRACE --shrink` shrinks one later.",
        ),
    ] = False,
    step_timeout: StepTimeoutOption = STEP_TIMEOUT_S,
    jobs: Annotated[
        int | None,
        run_option(
            "-j",
            "--jobs",
            min=1,
            metavar="N",
            help="Worker processes that share the examples.",
            show_default="all CPUs",
        ),
    ] = None,
    stop_at_first: Annotated[
        bool, verdict_option("-x", "--fail-fast", help="Stop testing an implementation at its first divergence.")
    ] = False,
    level: Annotated[
        Level,
        verdict_option(
            help="Clauses that count: must for guarantees to users, api also for guarantees to callers of Kafka's"
            " classes, observed for all of Kafka's behaviour. `conformance clauses --level` lists them."
        ),
    ] = _OBSERVED,
    edition: Annotated[
        str,
        verdict_option(metavar="NAME|FILE", help=f"{EDITION_HELP}, and say what is newer.", show_default="all clauses"),
    ] = "",
    kill_cycles: Annotated[
        int, broker_option(min=0, metavar="N", help="Only kill and restart the broker, N times.")
    ] = 0,
    require: Annotated[
        str,
        run_option(
            metavar="TIER,...", help=f"Fail if one of these does not run: {', '.join(_TIERS)}.", show_default=False
        ),
    ] = "",
    broker: BrokerOption = BrokerChoice.auto,
    bootstrap: Annotated[
        str, broker_option("--bootstrap-server", metavar="HOST:PORT", help="Check a running broker, read-only.")
    ] = "",
    log_dir: Annotated[Path | None, broker_option(metavar="DIR", help="Log directory of the running broker.")] = None,
    command_config: CommandConfigOption = None,
    start_command: StartCommandOption = "",
    without: SkipFeatureOption = None,
    topic_config: TopicConfigOption = None,
    report: Annotated[Path | None, output_option(metavar="DIR", help="Write events and traces here.")] = None,
    engine: Annotated[
        Engine, run_option(help="Run on this machine, or run each release × machine × seed as a Spark task.")
    ] = _LOCAL,
    seeds: Annotated[
        int | None, run_option(min=1, metavar="N", help="With spark: number of seeds, from --seed or 0 on.")
    ] = None,
    expectations: Annotated[
        Path | None,
        verdict_option(
            metavar="DIR",
            help="Known divergences, each with a reason and a link.",
            show_default="the packaged ones, for third-party implementations",
        ),
    ] = None,
    suggest_expectations: Annotated[
        bool,
        verdict_option(
            "--suggest-expectations", help="Print the necessary changes to the expectations, as a diff for `git apply`."
        ),
    ] = False,
    demand_coverage: Annotated[
        bool,
        verdict_option(
            "--demand-coverage",
            help="For this project's own CI: exit with 2, after the verdict, if the examples miss a row of the"
            " harness's own coverage tables.",
        ),
    ] = False,
    as_json: JsonOption = False,
    allow_incomplete: AllowIncompleteOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> int:
    """Compare implementations with the reference, in the dialect of each release.

    All of them execute every operation before the next one starts; outcome, state and bytes on disk must be equal. Exit
    code 0: conforms, 1: diverges, 2: could not run, or compared nothing, 3: incomplete.

    Example: `conformance run --kafka 3.9.2 --kafka 4.4.0 --machine offset --seed 7`
    """
    implementations = tuple(dict.fromkeys(implementation or ["broker" if bootstrap else "jvm"]))
    _check_required(require, implementations)
    if kill_cycles and any(parse_spec(name).form != "broker" for name in implementations):
        raise ToolError("--kill-cycles requires -i broker")
    for specification in implementations:
        parse_spec(specification)  # checked before any file is written
    releases = resolve_releases(kafka, implementations)
    attachment = attachment_of(bootstrap, log_dir, implementations, releases)
    if attachment is None:
        _check_brokers(implementations, releases, broker)
    every = resolve_machines(machine, implementations)
    operations, machines = resolve_operations(operation, every, named=bool(machine))
    if (rest := [each for each in every if each not in machines]) and not (quiet or as_json):
        typer.echo(f"not run, because they have no {' or '.join(operations)}: {', '.join(rest)}", err=True)
    plan = Plan(
        releases,
        implementations,
        machines,
        PROFILES[profile.value],
        (report if report is not None else state_directory()) / "traces",
        seed,
        max_examples,
        max_time,
        level.value,  # type: ignore[arg-type]
        broker=broker.value,
        kill_cycles=kill_cycles,
        expectations=expectations,
        attachment=attachment,
        shrink_time=0.0 if no_shrink else shrink_time,
        stop_at_first=stop_at_first,
        jobs=jobs,
        step_timeout=step_timeout,
        wire=wire_options(implementations, command_config, tuple(without or ()), start_command, topic_config or ()),
        demand_coverage=demand_coverage,
        operations=operations,
        edition=edition,
    )
    # What cannot be read ends the command before anything runs or is written; the run reads it again.
    if edition:
        load_edition(edition)
    load_expectations(expectations)
    if engine == "spark":
        from conformance.commands.spark_campaign import run_campaign  # noqa: PLC0415 -- part of an extra

        if suggest_expectations:
            raise ToolError("--suggest-expectations is for a run on this machine; the campaign's runs are on executors")
        first = resolve_seed(plan.seed, 0).number
        plan = replace(plan, jobs=1)  # Spark distributes the runs already
        return run_campaign(
            plan,
            range(first, first + (seeds or 1)),
            report,
            as_json=as_json,
            quiet=quiet,
            allow_incomplete=allow_incomplete,
        )
    if seeds is not None:
        raise ToolError("--seeds requires --engine spark; a local run has one seed")
    shown = None if as_json else OutputOptions(quiet=quiet, verbose=verbose, allow_incomplete=allow_incomplete)
    events = _run_here(plan, report, shown, with_proposal=suggest_expectations)
    differences = sum(isinstance(event, Diverged) for event in events)
    results = [event for event in events if isinstance(event, Result)]
    return compared_in(results, differences or int(_diverges(events))).settle(allow_incomplete=allow_incomplete)


class OutputOptions(NamedTuple):
    """Options for the text on the terminal."""

    quiet: bool
    verbose: bool
    allow_incomplete: bool


def _run_here(plan: Plan, report: Path | None, shown: OutputOptions | None, *, with_proposal: bool) -> list[Event]:
    """Run the plan, print the results and return the events.

    Args:
        report: The directory of the report, or None.
        shown: The options for text, or None to print one JSON document.
        with_proposal: True to print the proposed changes to the expectations.

    Raises:
        StaleExpectationError: An expectation is stale; raised after everything has been reported.
        CoverageError: The plan demands coverage, and rows were missed; raised after everything has been reported.
        ToolError: The run conforms, and its report could not be written.
    """
    events, error = _execute(plan, report, shown)
    stale = error if isinstance(error, StaleExpectationError) else None
    proposed = _proposal(plan.expectations, stale, events) if with_proposal else None
    if shown is None:
        document = _document(events)
        typer.echo(json.dumps(document if proposed is None else document | {"proposed_expectations": proposed}))
    elif proposed is not None:
        echo(proposed or "no expectation has to change", nl=not proposed)
    if error is not None:
        raise error
    return events


def _execute(
    plan: Plan, report: Path | None, shown: OutputOptions | None
) -> tuple[list[Event], StaleExpectationError | CoverageError | None]:
    """Run the plan, and return its events and the error that follows the verdict, or None.

    Raises:
        ToolError: The run conforms, and its report could not be written.
    """
    events: list[Event] = []
    with ExitStack() as stack:
        sinks: list[Sink] = [events.append]
        if report is not None:
            sinks.append(stack.enter_context(NdjsonWriter(report)))
        if shown is not None:
            writer = TerminalWriter(plain_console(), **shown._asdict())
            sinks.append(stack.enter_context(writer))
        progress = stack.enter_context(show_progress("Kafka's jars"))

        emit = CombinedSink(sinks)

        def exit_after_hang() -> None:
            stack.close()
            _tell(emit.failures)
            if shown is None:
                typer.echo(json.dumps(_document(events)))
            exit_process(1)

        def announce(text: str) -> None:
            if shown is None or not shown.quiet:
                typer.echo(printable(text), err=True)

        late: StaleExpectationError | CoverageError | None = None
        try:
            run(plan, emit, progress, announce, exit_after_hang)
        except (StaleExpectationError, CoverageError) as error:
            late = error
    if emit.failures and late is None and not _diverges(events):
        raise ToolError(emit.failures[0])  # the requested report is missing
    _tell(emit.failures)
    return events, late


def _tell(failures: Iterable[str]) -> None:
    """Print what of the report could not be written."""
    for line in failures:
        typer.echo(f"conformance: {printable(line)}", err=True)


def _diverges(events: list[Event]) -> bool:
    return any(isinstance(event, RunFinished) and event.verdict == "diverges" for event in events)


def _proposal(directory: Path | None, stale: StaleExpectationError | None, events: list[Event]) -> str:
    """Return the output of ``--suggest-expectations``; no file is written."""
    divergences = [event for event in events if isinstance(event, Diverged)]
    return propose(directory, () if stale is None else stale.stale, divergences)


def _check_brokers(implementations: tuple[str, ...], releases: tuple[str, ...], broker: BrokerChoice) -> None:
    """Check that the brokers of the run can be started, as containers or as local processes."""
    for text in filter(is_server, implementations):
        for release in releases:
            choose(release, broker.value, build_of(directory_of(text) or ""))


def _check_required(require: str, implementations: tuple[str, ...]) -> None:
    """Check that every required tier is run.

    Raises:
        ToolError: A tier is unknown, or not selected with ``-i``.
    """
    for tier in filter(None, require.split(",")):
        if tier not in _TIERS:
            raise ToolError(f"--require: unknown {tier!r}; choose from {', '.join(_TIERS)}")
        if tier not in implementations:
            raise ToolError(f"--require {tier}: this run has no {tier}; add -i {tier}")


def _document(events: list[Event]) -> dict[str, Any]:
    """Return the run as one document: header, results, divergences, verdict."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        document = event.to_json()
        by_name.setdefault(document.pop("event"), []).append(document)
    finished = by_name["RunFinished"][0]
    return {
        "verdict": finished["verdict"],
        "run": by_name["RunStarted"][0],
        "results": by_name.get("Result", []),
        "divergences": by_name.get("Diverged", []),
        "missing": finished["details"].get("missing", []),
        "since_edition": finished["details"].get("edition", {}),
        "stale_expectations": finished["details"].get("stale", []),
        "steps": finished["steps"],
        "seconds": finished["seconds"],
    }
