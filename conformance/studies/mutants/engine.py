"""Search for the recorded example that kills each mutant: record once, replay many times."""

from __future__ import annotations

import multiprocessing
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.errors import NotDrivenError, ToolError
from conformance.studies.mutants.kafka_tests import open_tests, survey
from conformance.studies.mutants.recording import Example, record, save
from conformance.studies.mutants.replays import (
    DRIVEN,
    PATIENCE,
    Difference,
    Found,
    OpenReplay,
    Replayer,
    Subject,
    Task,
    Unloadable,
    replay_all,
    subject_of,
)
from conformance.studies.mutants.verdicts import Header, Verdict
from kidx.workers import WorkerPool

if TYPE_CHECKING:
    from conformance.studies.mutants.sites import Layer, Site
    from conformance.studies.mutants.sources import Sources

EXAMPLES: Final = 200
"""Drawn examples of each machine, without ``--max-examples``."""


class Killers(ABC):
    """Recorded examples, or tests, that may kill mutants; the unchanged classes have passed all of them.

    Args:
        header: what the verdicts depend on.
        layer: the class files.
        directory: an empty directory.
        sources: the sources, which must not change.

    Attributes:
        left_out: number of those that are not used, because the unchanged classes do not pass them.
    """

    patience = PATIENCE

    def __init__(self, header: Header, layer: Layer, directory: Path, sources: Sources) -> None:
        self.header, self.layer, self.sources = header, layer, sources
        self.subject, self._directory = subject_of(header.release, header.implementation), directory
        self.left_out = 0
        self._reach: Mapping[str, Sequence[int]] = {}

    @property
    @abstractmethod
    def _open(self) -> OpenReplay:
        """Function with which a worker opens its replay."""

    @abstractmethod
    def _in_order(self, numbers: Sequence[int]) -> list[tuple[str, Sequence[int]]]:
        """Return examples or tests in the order of the replay, in groups."""

    @abstractmethod
    def _named(self, number: int, step: int) -> tuple[str, str, str]:
        """Return machine, example and step, or class and method of a test."""

    def _reaching(self, reached: Iterable[tuple[int, Sequence[int]]], marks: Sequence[Site | None]) -> None:
        """Note the sites that each example or test has reached."""
        found, by_class = defaultdict[str, list[int]](list), defaultdict[str, set[int]](set)
        for number, places in reached:
            for site in filter(None, map(marks.__getitem__, places)):
                found[site.name].append(number)
                by_class[_outermost(site)].add(number)
        for site in self.layer.sites:
            if ".<clinit>(" in site.name:  # executed once, for all; a nested class may have nothing else
                found[site.name] = sorted(by_class[_outermost(site)])
        self._reach = found

    def task(self, site: Site) -> Task:
        """Return what a worker has to replay for a mutant."""
        return self.layer.changed(site), self._in_order(self._reach.get(site.name, ()))

    def verdicts(self, sites: Sequence[Site], jobs: int) -> Iterator[Verdict]:
        """Yield the verdict on each mutant, as soon as it is known.

        Raises:
            ToolError: a replay has failed, for no reason of the mutant; or the sources have changed.
        """
        named = {site.name: site for site in sites}
        tasks = ((site.name, self.task(site)) for site in sites)
        results = replay_all(self._open, tasks, jobs, self.patience)
        while True:
            with self.sources.held():
                following = next(results, None)
            if following is None:
                return
            name, found, seconds = following
            yield self._verdict(named[name], found, seconds)

    def _verdict(self, site: Site, found: Found, seconds: float) -> Verdict:
        about = site.name, site.operator, site.change, site.line
        reached, seconds = len(self._reach.get(site.name, ())), round(seconds, 2)
        match found:
            case Unloadable(reason):
                return Verdict(*about, "could-not-run", reached, seconds, reason)
            case Difference(number, _, how) if number < 0:
                return Verdict(*about, "killed", reached, seconds, how)
            case Difference(number, step, how):
                return Verdict(*about, "killed", reached, seconds, how, *self._named(number, step))
            case _:
                return Verdict(*about, "survived", reached, seconds)


class Recording(Killers):
    """Recorded examples of the unchanged classes; ``header`` says which.

    Args:
        jobs: maximum number of worker processes.

    Attributes:
        examples: the examples.
        path: their file.

    Raises:
        ToolError: Java or a jar is missing; or the unchanged classes differ from what was recorded of them.
    """

    def __init__(self, header: Header, layer: Layer, directory: Path, sources: Sources, jobs: int) -> None:
        super().__init__(header, layer, directory, sources)
        self.path = directory / "examples"
        recorded = _recorded(header, jobs)
        self.examples = [each for each in recorded if not each.differs]
        self.left_out = len(recorded) - len(self.examples)
        save(self.examples, self.path)
        watched, marks = layer.watched()
        replayer, everything = Replayer(self.subject, self.path, directory / "unchanged"), range(len(self.examples))
        self._reaching(
            self._conforming(replayer.reached(watched, dict(self._by_machine(everything)), len(marks))), marks
        )
        if (difference := replayer.first_difference(({}, self._in_order(everything)))) is not None:
            raise ToolError(f"Kafka's unchanged classes differ in a replay: {difference}")

    def _conforming(self, reached: Iterable[tuple[int, bool, list[int]]]) -> Iterator[tuple[int, list[int]]]:
        for number, differs, places in reached:
            if differs:
                one = self.examples[number]
                raise ToolError(f"Kafka's unchanged classes differ in a second run of {one.machine} {one.name}")
            yield number, places

    @property
    def _open(self) -> OpenReplay:
        return partial(_replayer, self.subject, self.path)

    def _in_order(self, numbers: Sequence[int]) -> list[tuple[str, Sequence[int]]]:
        """Return the regression traces of all machines, then the drawn examples."""
        traces = self._by_machine([each for each in numbers if not self.examples[each].is_drawn])
        return [*traces, *self._by_machine([each for each in numbers if self.examples[each].is_drawn])]

    def _named(self, number: int, step: int) -> tuple[str, str, str]:
        one = self.examples[number]
        return one.machine, one.name, f"{step + 1}: {one.operations[step]}" if step >= 0 else ""

    def _by_machine(self, numbers: Sequence[int]) -> list[tuple[str, Sequence[int]]]:
        """Return examples machine by machine, the shortest first."""
        groups: dict[str, list[int]] = {machine: [] for machine in DRIVEN}
        for number in sorted(numbers, key=lambda each: self.examples[each].steps):
            groups[self.examples[number].machine].append(number)
        return [(machine, group) for machine, group in groups.items() if group]


class KafkaTests(Killers):
    """Kafka's own unit tests of the release.

    Raises:
        ToolError: Java or a jar is missing; or a test that the unchanged classes have passed fails the next time.
    """

    patience = 120.0

    def __init__(self, header: Header, layer: Layer, directory: Path, sources: Sources) -> None:
        super().__init__(header, layer, directory, sources)
        watched, marks = layer.watched()
        places, failing = dict[str, set[int]](), set[str]()
        for method, fails, reached in survey(self.subject, watched, len(marks), directory / "unchanged"):
            places.setdefault(method, set()).update(reached)
            if fails:
                failing.add(method)
        self.methods = tuple(method for method in places if not any(map(method.startswith, failing)))
        self.left_out = len(places) - len(self.methods)
        everything: Task = ({}, self._in_order(range(len(self.methods))))
        ((_, found, _),) = replay_all(self._open, [("the unchanged classes", everything)], 1, self.patience)
        if isinstance(found, Difference):
            failed = self.methods[found.example] if found.example >= 0 else ""
            raise ToolError(f"Kafka's unchanged classes fail in the second execution of a test: {found.how} {failed}")
        self._reaching(((number, sorted(places[method])) for number, method in enumerate(self.methods)), marks)

    @property
    def _open(self) -> OpenReplay:
        return partial(open_tests, self.subject, self.methods, self._directory)

    def _in_order(self, numbers: Sequence[int]) -> list[tuple[str, Sequence[int]]]:
        """Return the tests class by class; classes with few of the tests first."""
        groups = defaultdict[str, list[int]](list)
        for number in numbers:
            groups[self._named(number, 0)[0]].append(number)
        return sorted(groups.items(), key=lambda each: len(each[1]))

    def _named(self, number: int, step: int) -> tuple[str, str, str]:
        del step
        _, test_class, *rest = self.methods[number].split("/")
        return (
            test_class.rpartition(".")[2].rstrip("]"),
            "/".join(each.partition(":")[2].rstrip("]") for each in rest),
            "",
        )


def _outermost(site: Site) -> str:
    """Return the file of a site's class, or of the class in which it is nested, without its suffix."""
    return site.file.removesuffix(".class").partition("$")[0]


def _replayer(subject: Subject, recording: Path, name: str) -> Replayer:
    return Replayer(subject, recording, recording.parent / name)


def _recorded(header: Header, jobs: int) -> list[Example]:
    """Return the examples of all machines, which worker processes record.

    Raises:
        ToolError: no machine drives the classes.
    """
    found, last = list[Example](), None
    with WorkerPool(min(jobs, len(header.machines)), multiprocessing.get_context("spawn")) as pool:
        waiting = [
            pool.submit(record, each, header.implementation, header.release, header.examples, header.seed)
            for each in sorted(header.machines, key=list(DRIVEN).index, reverse=True)  # the slow ones first
        ]
        for each in waiting:
            try:
                found += each.result()
            except NotDrivenError as error:
                last = error
    if not found and last is not None:
        raise last
    return found
