"""Search for power failures that violate a guarantee: in several releases, and with planted defects."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.experiments.power_loss import trace
from conformance.experiments.power_loss.cache import CacheExplorer
from conformance.experiments.power_loss.compaction import CompactedOperationGenerator
from conformance.experiments.power_loss.experiment import Explorer, Plan
from conformance.experiments.power_loss.explorer import LockstepExplorer, LockstepPlan
from conformance.experiments.power_loss.histories import OperationGenerator
from conformance.experiments.power_loss.known import load_known
from conformance.experiments.power_loss.planted import PLANTED
from conformance.experiments.power_loss.segment import SegmentExplorer
from conformance.experiments.power_loss.shrinking import shrunk
from kidx.dialect import dialect_of
from kidx.workers import WorkerPool

if TYPE_CHECKING:
    from conformance.experiments.power_loss.signatures import Finding
    from conformance.kafka.jar_fetch import Progress
    from conformance.operations import Json

EXAMPLES: Final[dict[str, int]] = {
    "log": Plan().examples,
    "cleaned": Plan().examples,
    "segment": 40,
    "cache": LockstepPlan().examples,
}
"""Number of generated examples for each machine."""

_DRAWN: Final = {"log": OperationGenerator, "cleaned": CompactedOperationGenerator}
_SMALL: Final[dict[str, Callable[..., LockstepExplorer[Any]]]] = {"segment": SegmentExplorer, "cache": CacheExplorer}
_MORE: Final = 4
"""Number of examples in the search for a planted defect, divided by their number in other searches."""


class Search(NamedTuple):
    """Search with one state machine, which determines what is recorded: a log, a segment or a cache.

    Attributes:
        machine: name of the machine.
        seed: random seed.
        examples: number of generated examples; None for the default.
        seconds: time after which no new example begins; None for no limit.
        shrink_seconds: time limit for shrinking each cause.
        directory: directory of the traces.
    """

    machine: str
    seed: int
    examples: int | None
    seconds: float | None
    shrink_seconds: float
    directory: Path

    def applies_to(self, release: str) -> bool:
        """Return True if a release has what the machine tests."""
        return self.machine != "cache" or dialect_of(release).has_remote_index_cache

    def row(self, release: str, scratch: Path, progress: Progress | None = None) -> Json:
        """Return the JSON results for a release.

        Raises:
            ToolError: Java or a jar is missing.
        """
        examples, known = self.examples or EXAMPLES[self.machine], load_known()
        row: Json = {"machine": self.machine, "release": release, "findings": []}
        if self.machine in _SMALL:
            small = _SMALL[self.machine](release, scratch, progress)
            seen = small.explore(LockstepPlan(self.seed, examples, seconds=self.seconds))
            for one in seen.findings:
                clause = known.of(one.signature, release, self.machine)
                path = small.trace_of(one).save(self.directory)
                told = _told(one.signature, one.times, one.text, clause, path, one.failure.described())
                steps = [operation.to_json() for operation in one.history.operations]
                row["findings"].append(told | {"steps": steps, "lines": one.lines()})
            return row | {"lives": seen.examples, "states": seen.states}
        explorer = Explorer(release, scratch, progress, drawn=_DRAWN[self.machine])
        explored = explorer.explore(Plan(self.seed, examples, seconds=self.seconds))
        for finding in explored.findings:
            row["findings"].append(self._finding(shrunk(finding, explorer, self.shrink_seconds), release))
        return row | {"lives": explored.examples, "states": explored.states}

    def _finding(self, finding: Finding, release: str) -> Json:
        clause = load_known().of(finding.signature, release, self.machine)
        path = trace.save(finding, self.directory)
        of_log = trace.of_crash_state(finding).save(self.directory)
        lost = [each["what"] for each in trace.document(finding)["lost"]]
        told = _told(finding.signature, finding.times, finding.text, clause, path, lost)
        steps = [operation.to_json() for operation in finding.history.operations]
        return told | {"steps": steps, "crash": str(of_log), "lines": finding.lines()}


def _told(signature: object, times: int, shows: str, clause: str | None, path: Path, lost: Sequence[str]) -> Json:
    return {
        "clause": clause,
        "signature": str(signature),
        "times": times,
        "shows": shows,
        "trace": str(path),
        "lost": list(lost),
    }


def search_releases(
    searches: Sequence[Search], releases: Sequence[str], scratch: Path, jobs: int, progress: Progress | None = None
) -> Iterator[Json]:
    """Yield the results of each search for each release that it applies to, in this order.

    Args:
        searches: the searches.
        releases: the releases.
        scratch: an empty directory.
        jobs: maximum number of worker processes; this process searches if one is enough.
        progress: called while jars are fetched; with several workers, the jars are fetched first.

    Raises:
        ToolError: Java or a jar is missing.
    """
    work = [
        (search, release, scratch / search.machine / release)
        for search in searches
        for release in releases
        if search.applies_to(release)
    ]
    if min(jobs, len(work)) <= 1:
        for search, release, directory in work:
            yield search.row(release, directory, progress)
        return
    # The workers must not inherit this process's virtual machine.
    with WorkerPool(min(jobs, len(work)), multiprocessing.get_context("spawn")) as pool:
        for found in [pool.submit(search.row, release, directory) for search, release, directory in work]:
            yield found.result()


def search_planted(
    names: Sequence[str], seeds: Sequence[int], release: str, scratch: Path, plan: Plan, progress: Progress | None
) -> Iterator[Json]:
    """Yield the result of each search for a planted defect, from each seed.

    Args:
        names: names of the planted defects.
        seeds: random seeds.
        release: release in whose recorded histories the defects are planted.
        scratch: an empty directory.
        plan: limits of a search without a planted defect.
        progress: called while jars are fetched.
    """
    explorer = Explorer(release, scratch, progress)
    for name in names:
        for seed in seeds:
            more = plan._replace(seed=seed, examples=_MORE * plan.examples, lockstep=False)
            found = explorer.explore(more, PLANTED[name].change, lambda explored: bool(explored.findings))
            shown = str(found.findings[0].signature) if found.findings else None
            yield {"name": name, "title": PLANTED[name].title, "seed": seed, "lives": found.examples, "found": shown}
