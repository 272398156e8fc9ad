"""Search for the recorded example that kills each mutant: record once, replay many times."""

from __future__ import annotations

import multiprocessing
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.errors import NotDrivenError, ToolError
from conformance.studies.mutants.recording import Example, record, save
from conformance.studies.mutants.replays import (
    DRIVEN,
    Difference,
    Found,
    Replayer,
    Task,
    Unloadable,
    replay_all,
    subject_of,
)
from conformance.studies.mutants.verdicts import Header, Verdict
from kidx.workers import WorkerPool

if TYPE_CHECKING:
    from conformance.studies.mutants.sites import Layer, Site

EXAMPLES: Final = 200
"""Drawn examples of each machine, without ``--max-examples``."""


class Recording:
    """Recorded examples of the unchanged classes, and the examples that reach each site.

    Args:
        header: release, implementation, machines, number and seed of the examples.
        layer: the class files.
        directory: an empty directory.
        jobs: maximum number of worker processes.

    Attributes:
        examples: the examples.
        left_out: number of examples in which the unchanged classes differ from the reference, and that are not used.

    Raises:
        ToolError: Java or a jar is missing; or the unchanged classes differ from what was recorded of them.
    """

    def __init__(self, header: Header, layer: Layer, directory: Path, jobs: int) -> None:
        self.header, self.layer = header, layer
        self.subject = subject_of(header.release, header.implementation)
        self.path = directory / "examples"
        recorded = _recorded(header, jobs)
        self.examples = [each for each in recorded if not each.differs]
        self.left_out = len(recorded) - len(self.examples)
        save(self.examples, self.path)
        self._reach = self._reached(directory)

    def _reached(self, directory: Path) -> Mapping[str, Sequence[int]]:
        """Return the examples that reach each site, by name.

        Raises:
            ToolError: the unchanged classes differ from what was recorded of them.
        """
        by_machine = self._by_machine(range(len(self.examples)))
        files, marks = self.layer.watched()
        watched = {name: bytes(data) for name, data in files.items()}
        found, by_file = defaultdict[str, list[int]](list), defaultdict[str, set[int]](set)
        replayer = Replayer(self.subject, self.path, directory / "unchanged")
        for number, differs, places in replayer.reached(watched, dict(by_machine), len(marks)):
            if differs:
                one = self.examples[number]
                raise ToolError(f"Kafka's unchanged classes differ in a second run of {one.machine} {one.name}")
            for site in filter(None, map(marks.__getitem__, places)):
                found[site.name].append(number)
                by_file[site.file].add(number)
        for site in self.layer.sites:
            if ".<clinit>(" in site.name:  # executed once, for all examples
                found[site.name] = sorted(by_file[site.file])
        if (difference := replayer.first_difference(({}, by_machine))) is not None:
            raise ToolError(f"Kafka's unchanged classes differ in a replay: {difference}")
        return found

    def _by_machine(self, numbers: Sequence[int]) -> list[tuple[str, Sequence[int]]]:
        """Return examples machine by machine, regression traces first, then the shortest."""
        groups: dict[str, list[int]] = {machine: [] for machine in DRIVEN}
        for number in sorted(numbers, key=lambda each: (self.examples[each].is_drawn, self.examples[each].steps)):
            groups[self.examples[number].machine].append(number)
        return [(machine, group) for machine, group in groups.items() if group]

    def task(self, site: Site) -> Task:
        """Return what a worker has to replay for a mutant: the traces of all machines, then the drawn examples."""
        reached = self._reach.get(site.name, ())
        traces = self._by_machine([each for each in reached if not self.examples[each].is_drawn])
        drawn = self._by_machine([each for each in reached if self.examples[each].is_drawn])
        return {name: bytes(data) for name, data in self.layer.changed(site).items()}, [*traces, *drawn]

    def verdicts(self, sites: Sequence[Site], jobs: int) -> Iterator[Verdict]:
        """Yield the verdict on each mutant, as soon as it is known."""
        named = {site.name: site for site in sites}
        for name, found, seconds in replay_all(self.subject, self.path, ((s.name, self.task(s)) for s in sites), jobs):
            yield self._verdict(named[name], found, seconds)

    def _verdict(self, site: Site, found: Found, seconds: float) -> Verdict:
        about = site.name, site.operator, site.change, site.line
        reached = len(self._reach.get(site.name, ()))
        seconds = round(seconds, 2)
        match found:
            case Unloadable(reason):
                return Verdict(*about, "could-not-run", reached, seconds, reason)
            case Difference(number, step, how) if number < 0:
                return Verdict(*about, "killed", reached, seconds, how)
            case Difference(number, step, how):
                one = self.examples[number]
                where = f"{step + 1}: {one.operations[step]}" if step >= 0 else ""
                return Verdict(*about, "killed", reached, seconds, how, one.machine, one.name, where)
            case _:
                return Verdict(*about, "survived", reached, seconds)


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
