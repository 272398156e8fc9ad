"""Study of power failures: what Kafka's log, segments and caches keep, in every state that the disk may have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec

from conformance.studies.power_loss import page, trace
from conformance.studies.power_loss.cache import CacheExplorer
from conformance.studies.power_loss.compaction import CompactedOperationGenerator
from conformance.studies.power_loss.explorer import Explorer, LogExplorer, shrunk
from conformance.studies.power_loss.guarantees import Guarantee
from conformance.studies.power_loss.planted import PLANTED
from conformance.studies.power_loss.segment import SegmentExplorer
from conformance.studies.power_loss.trace import PowerFailure
from conformance.studies.study import Request, Sameness, Study
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from conformance.kafka.jar_fetch import Progress
    from conformance.operations import Json
    from conformance.studies.power_loss.signatures import Finding, Signature

EXAMPLES: Final = {"log": 40, "cleaned": 40, "segment": 40, "cache": 8}
"""Number of generated examples for each machine."""
_PLANTED_EXAMPLES: Final = 4 * EXAMPLES["log"]


class Options(msgspec.Struct, frozen=True):
    """Options of the study.

    Attributes:
        max_shrink_time: time limit for each cause.
    """

    max_shrink_time: Annotated[
        float, msgspec.Meta(ge=0, title="S", description="Seconds for shrinking the operations of each root cause.")
    ] = 10


class Case(NamedTuple):
    """An example: it is drawn from a seed, and its number."""

    machine: str
    seed: int
    number: int


class Example(NamedTuple):
    """Result of an example.

    Attributes:
        machine: what was recorded: a log, a segment or a cache.
        finding: the first violation with a cause that no earlier example has shown; None without one.
        planted: True if only failures count that a planted defect makes possible: no clause states any of them.
    """

    machine: str
    finding: Finding[Any] | None
    planted: bool


class Bench:
    """Searches in one release, one for each machine, which are opened when they are needed."""

    def __init__(
        self, release: str, scratch: Path, progress: Progress | None, change: Callable[[Any], Any] | None
    ) -> None:
        self.release, self.is_planted = release, change is not None
        self._scratch, self._progress, self._change = scratch, progress, change
        self._explorers: dict[str, Explorer[Any]] = {}

    def explorer(self, machine: str) -> Explorer[Any]:
        """Return the search of a machine."""
        if machine not in self._explorers:
            scratch = self._scratch / machine
            if machine in ("log", "cleaned"):
                self._explorers[machine] = self.log(machine)
            else:
                small = SegmentExplorer if machine == "segment" else CacheExplorer
                self._explorers[machine] = small(self.release, scratch, self._progress)
        return self._explorers[machine]

    def log(self, machine: str = "log") -> LogExplorer:
        """Return a new search in a log, or in a compacted one."""
        options: dict[str, Any] = {"drawn": CompactedOperationGenerator} if machine == "cleaned" else {}
        return LogExplorer(self.release, self._scratch / machine, self._progress, change=self._change, **options)


class PowerLoss(Study[Bench, Case, Example, PowerFailure]):
    """Power fails at every write, rename and sync of Kafka's classes; unsynced data may be lost."""

    name = "power-loss"
    help = """Simulate power failures while Kafka's own log appends, rolls, truncates and closes; open every disk state.

    Every write, rename and sync of Kafka's classes is recorded. Unsynced data may be lost, page by page. The log has to
    open without a gap and with all synced data. Its lookups have to find what a scan finds. kidx has to get the same
    result. Exit code 0: only known causes (`conformance clauses PF-1`), 1: a new cause, 2: could not run,
    or compared no state of the disk, 3: --max-time ended the search early.

    With `--machine cleaned`, the cleaner compacts the log, and each key has to have its latest value. With `--machine
    segment`, one segment is trusted or recovered, as a broker does it. With `--machine cache`, the cache of remote
    index files has to open (PF-14), and to answer as remote storage does.

    Example: `conformance power-loss --kafka 4.3.1 --max-time 60`
    """
    machines, on_request = tuple(EXAMPLES), ("cleaned", "segment", "cache")
    options, examples = Options, None
    example = f"Examples: {EXAMPLES['log']} by default, {EXAMPLES['cache']} of a cache; of each machine."
    unit, looked, file_stem = "causes", "examples", "power-loss"
    file, saves_with_json = PowerFailure, True
    planted, planted_examples = PLANTED, _PLANTED_EXAMPLES

    def open(
        self, release: str, scratch: Path, progress: Progress | None = None, change: Callable[[Any], Any] | None = None
    ) -> Bench:
        return Bench(release, scratch, progress, change)

    def cases(self, bench: Bench, request: Request) -> Iterator[Case]:
        for machine in request.machines:
            if machine != "cache" or dialect_of(bench.release).has_remote_index_cache:
                bench.explorer(machine).begin()
                for number in range(request.examples or EXAMPLES[machine]):
                    yield Case(machine, request.seed, number)

    def groups(
        self, bench: Bench, request: Request, done: Mapping[str, Sequence[Json]]
    ) -> Iterator[tuple[str, Iterable[Case]]]:
        """Yield the cases of each machine: an explorer counts the causes of all of them."""
        for machine in request.machines:
            if machine not in done:
                yield machine, self.cases(bench, request._replace(machines=(machine,)))

    def look(self, bench: Bench, case: Case) -> Iterator[Example]:
        explorer = bench.explorer(case.machine)
        known = len(explorer.findings)
        explorer.explore(case.seed, case.number)
        found = explorer.findings[known:]
        yield Example(case.machine, found[0] if found else None, bench.is_planted)

    def sameness(self, seen: Example) -> Sameness | None:
        if seen.finding is None:
            return None
        return _sameness(seen.machine, seen.finding.signature) | {"planted": seen.planted}

    def covers(self, row: Mapping[str, Any], sameness: Sameness) -> bool:
        """Return True if a row has the machine, the guarantee and all that was lost; a compacted log is a log, too."""
        machines = ("cleaned", "log") if sameness["machine"] == "cleaned" else (sameness["machine"],)
        needs, lost, during = row.get("needs", ()), sameness["lost"], row.get("during", ())
        return (
            not sameness["planted"]
            and row.get("machine", "log") in machines
            and sameness["guarantee"] in row.get("guarantees", Guarantee.__members__)
            and row.get("clean") in (None, sameness["clean"])
            and all(any(fnmatchcase(each, pattern) for each in lost) for pattern in needs)
            and all(any(fnmatchcase(each, pattern) for pattern in [*row.get("lost", ()), *needs]) for each in lost)
            and bool(lost or during)
            and (not during or sameness["during"] in during)
        )

    def clause_of_signature(self, machine: str, signature: Signature, release: str) -> str | None:
        """Return the clause that states a violation in a release; None if none does."""
        return self.known.clause_of(_sameness(machine, signature) | {"planted": False}, release)

    def rows(self, bench: Bench, request: Request, results: Sequence[Example]) -> Iterator[Json]:
        """Yield the results of each machine, and write a trace for each cause."""
        for machine in dict.fromkeys(seen.machine for seen in results):
            explorer = bench.explorer(machine)
            findings = [self._told(explorer, machine, each, request) for each in explorer.findings]
            row: Json = {"machine": machine, "release": bench.release, "findings": findings}
            yield row | {"lives": explorer.examples, "states": explorer.states}

    def _told(self, explorer: Explorer[Any], machine: str, finding: Finding[Any], request: Request) -> Json:
        assert request.directory is not None  # files are written with JSON, too
        lost, of_log = finding.failure.described(), {}
        if isinstance(explorer, LogExplorer):
            finding = shrunk(finding, explorer, request.options.max_shrink_time)
            content = trace.document(finding)
            lost, path = [each.what for each in content.lost], self.save(content, request.directory)
            of_log = {"crash": str(trace.of_crash_state(finding).save(request.directory))}
        else:
            path = explorer.trace_of(finding).save(request.directory)
        return {
            "clause": self.clause_of_signature(machine, finding.signature, explorer.release),
            "signature": str(finding.signature),
            "times": finding.times,
            "shows": finding.text,
            "trace": str(path),
            "lost": lost,
            "steps": [operation.to_json() for operation in finding.history.operations],
            **of_log,
            "lines": finding.lines(),
        }

    def count(self, row: Json) -> int:
        return int(row["states"])

    def wrong(self, row: Json) -> list[str | None]:
        return [found["clause"] for found in row["findings"]]

    def total(self, rows: Sequence[Json]) -> int:
        return sum(len(row["findings"]) for row in rows)

    def named(self, seen: Example) -> str:
        return str(seen.finding.signature) if seen.finding else ""

    def shown(self, release: str, rows: Sequence[Json]) -> Iterator[str]:
        """Yield the causes of each machine, each with its smallest trace."""
        for row in rows:
            yield f"Kafka {release}, {row['machine']}: {row['lives']} examples, {row['states']} states of the disk"
            for found in row["findings"]:
                yield f"\n{found['clause'] or 'NEW'}  {found['signature']} ({found['times']} times)"
                yield from (f"  {line}" for line in found["lines"])
                if "crash" in found:
                    yield f"  replay       conformance power-loss --replay {found['trace']}"
                yield f"  lockstep     conformance replay {found.get('crash', found['trace'])}"

    def page(self, rows: Sequence[Json], command: str) -> str:
        return page.table(rows, command)

    def verdict(self, new: int, count: int) -> str:
        return f"{'NEW CAUSES' if new else 'no new cause'}: {new} of {count} causes are not known"

    def replayed(self, bench: Bench, content: PowerFailure) -> tuple[bool, Json, str]:
        explorer = bench.log()
        finding = trace.performed(content, explorer.recorder)
        shown = explorer.shows(finding.history, finding.failure, finding.signature.guarantee)
        text = f"FAILED · {finding.signature}: {shown}" if shown else f"HOLDS · {len(content.steps)} steps"
        return bool(shown), {"shown": bool(shown), "text": shown}, text


def _sameness(machine: str, signature: Signature) -> dict[str, Any]:
    guarantee = signature.guarantee and signature.guarantee.name
    return {"machine": machine} | signature._asdict() | {"guarantee": guarantee}


POWER_LOSS: Final = PowerLoss()
