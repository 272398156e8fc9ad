"""``conformance mutate-kafka``: which changes of Kafka's own bytecode do the machines notice?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from conformance.commands.options import AllowIncompleteOption, JsonOption, ReleaseOption, echo, resolve_releases
from conformance.errors import ToolError
from conformance.implementations.forms import form_of
from conformance.kafka.progress import show_progress
from conformance.runs.plan import usable_cpus
from conformance.runs.reproducers import write_text
from conformance.scratch import scratch_directory
from conformance.studies.mutants.engine import EXAMPLES, KafkaTests, Recording
from conformance.studies.mutants.page import page, shown
from conformance.studies.mutants.replays import DRIVEN, subject_of
from conformance.studies.mutants.sites import OPERATORS, Layer, Site, drawn
from conformance.studies.mutants.sources import Sources, installed
from conformance.studies.mutants.verdicts import Header, Verdict, VerdictFile, read_verdicts, reason_of
from conformance.verdict import Comparison

AgainstName = StrEnum("AgainstName", [(name, name) for name in ("examples", "kafka-tests")])  # type: ignore[misc]
_EXAMPLES = AgainstName("examples")


def mutate_kafka_command(
    kafka: ReleaseOption = None,
    implementation: Annotated[
        str, typer.Option("-i", "--impl", metavar="IMPL", help="jvm, or jvm:DIR for a build's jars.")
    ] = "jvm",
    class_name: Annotated[
        list[str] | None, typer.Option("--class", metavar="GLOB", help="Mutants of these classes (repeatable).")
    ] = None,
    operator: Annotated[
        list[str] | None,
        typer.Option("--operator", metavar="NAME", help=f"Mutants of this kind (repeatable): {', '.join(OPERATORS)}."),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Draw N mutants; each class has its share. All by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the sample and of the examples.")] = 0,
    machine: Annotated[
        list[str] | None,
        typer.Option("--machine", metavar="NAME", help=f"{', '.join(DRIVEN)}; all by default. Repeatable."),
    ] = None,
    max_examples: Annotated[
        int, typer.Option(min=1, help="Drawn examples of each machine (tiered: a quarter), after its traces.")
    ] = EXAMPLES,
    against: Annotated[
        AgainstName,
        typer.Option(help="Replay the recorded examples, or execute Kafka's own unit tests of the log layer (4.3.1)."),
    ] = _EXAMPLES,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Add each verdict to this file (NDJSON) as soon as it is known; no mutant in it is run again.",
        ),
    ] = None,
    beside: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --markdown: compare with the verdicts in this file, class by class."),
    ] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page of the results here.")] = None,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, help="Worker processes; one per CPU by default.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the mutants without running them.")] = False,
    allow_incomplete: AllowIncompleteOption = False,
    as_json: JsonOption = False,
) -> int:
    """Change one instruction of Kafka's log layer at a time, and search for a recorded example that notices it.

    The examples are recorded once, with Kafka's unchanged classes: regression traces and drawn examples of the
    machines. A mutant is killed if an answer, a state or a file differs from the recording, or if an example hangs or
    crashes Java. `conformance mutate` does the same with defects of the Python reference.

    Exit code 0: every survivor has a reason (equivalent or out of scope), 1: another mutant survives, 2: could not run,
    or no mutant was decided, 3: a changed class could not be loaded.

    Example: `conformance mutate-kafka --class 'OffsetIndex' --operator boundary`
    """
    release = _release(kafka, implementation)
    machines = _known("machine", machine, tuple(DRIVEN))
    sources = installed()
    header = Header(release, implementation, against.value, machines, max_examples, seed, sources.digest)
    if against != _EXAMPLES:
        header = Header(release, implementation, against.value, sources=sources.digest)
    with scratch_directory() as scratch, show_progress("Kafka's jars") as progress:
        layer = Layer(subject_of(release, implementation).jars(progress))
        sites = drawn(_chosen(layer, class_name, operator), sample, seed)
        if listed:
            _list(sites, as_json=as_json)
            return 0
        results = _results(header, layer, sites, verdicts, scratch, sources, jobs or usable_cpus())
    total = len(layer.sites)
    if markdown is not None:
        words = f"{_command(kafka, class_name, operator, sample)} --seed {seed}"
        words += f" --max-examples {max_examples}" if header.machines else f" --against {against.value}"
        others = None if beside is None else read_verdicts(beside)
        write_text(markdown, page(header, results, total, f"{words} --markdown FILE", others))
    if as_json:
        for each in results:
            typer.echo(msgspec.json.encode(each).decode())
    else:
        for line in shown(header, results, total):
            echo(line)
    return _settle(results, allow_incomplete=allow_incomplete)


def _release(kafka: list[str] | None, implementation: str) -> str:
    """Return the release.

    Raises:
        ToolError: there are several, or the implementation is not Kafka's own classes.
    """
    form = form_of(implementation)
    if form is None or form.name != "jvm":
        raise ToolError(f"-i {implementation} has no class files that can be changed; write jvm or jvm:DIR")
    release, *others = resolve_releases(kafka, [implementation])
    if others:
        raise ToolError("the classes of one release are changed; choose one with --kafka")
    return release


def _results(
    header: Header,
    layer: Layer,
    sites: Sequence[Site],
    path: Path | None,
    scratch: Path,
    sources: Sources,
    jobs: int,
) -> list[Verdict]:
    """Return the verdicts in the order of the sites; new ones are added to the file."""
    with VerdictFile(path, header) if path is not None else nullcontext() as file:
        found = {} if file is None else dict(file.verdicts)
        left = [site for site in sites if site.name not in found]
        if left:
            recorded = header.against == _EXAMPLES
            with sources.held():
                killers = (
                    Recording(header, layer, scratch, sources, jobs)
                    if recorded
                    else KafkaTests(header, layer, scratch, sources)
                )
            if killers.left_out:
                typer.echo(
                    f"{killers.left_out} examples or tests are not used: the unchanged classes fail them", err=True
                )
            for verdict in killers.verdicts(left, jobs):
                found[verdict.site] = verdict
                if file is not None:
                    file.add(verdict)
    return [found[site.name] for site in sites]


def _settle(results: Sequence[Verdict], *, allow_incomplete: bool) -> int:
    counts = Counter(each.verdict for each in results)
    open_survivors = sum(each.verdict == "survived" and reason_of(each) is None for each in results)
    failed = tuple(f"{each.site} could not run: {each.how}" for each in results if each.verdict == "could-not-run")
    compared = Comparison(counts["killed"] + counts["survived"], open_survivors, failures=failed)
    return compared.settle(allow_incomplete=allow_incomplete)


def _chosen(layer: Layer, classes: list[str] | None, operators: list[str] | None) -> list[Site]:
    """Return the requested sites.

    Raises:
        ToolError: an operator is unknown, or there is no such site.
    """
    kinds = _known("operator", operators, OPERATORS)
    globs = classes or ["*"]
    sites = [s for s in layer.sites if s.operator in kinds and any(fnmatchcase(s.class_name, glob) for glob in globs)]
    if not sites:
        names = ", ".join(sorted({site.class_name for site in layer.sites}))
        raise ToolError(f"no {' or '.join(kinds)} in {' or '.join(globs)}; the classes are {names}")
    return sites


def _known(what: str, names: list[str] | None, every: tuple[str, ...]) -> tuple[str, ...]:
    """Return the requested names, each once, in their order.

    Raises:
        ToolError: one is unknown.
    """
    for name in names or ():
        if name not in every:
            raise ToolError(f"unknown {what} {name!r}; choose from {', '.join(every)}")
    return tuple(name for name in every if names is None or name in names)


def _list(sites: Sequence[Site], *, as_json: bool) -> None:
    for site in sites:
        if as_json:
            typer.echo(json.dumps(site._asdict()))
        else:
            echo(f"{site.name}, line {site.line}: {site.change}")


def _command(
    kafka: list[str] | None, classes: list[str] | None, operators: list[str] | None, sample: int | None
) -> str:
    words = ["conformance mutate-kafka", *(f"--kafka {name}" for name in kafka or ())]
    words += [f"--class '{name}'" for name in classes or ()] + [f"--operator {name}" for name in operators or ()]
    return " ".join([*words, *([f"--sample {sample}"] if sample is not None else [])])
