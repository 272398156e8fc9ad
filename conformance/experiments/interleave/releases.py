"""Search of many releases, in worker processes: each release once, or once for all that have the same classes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from conformance.errors import ToolError
from conformance.experiments.interleave import trace
from conformance.experiments.interleave.experiment import Interrupter, Pair
from conformance.experiments.interleave.known import KnownPairs
from conformance.experiments.interleave.scenarios import LOGS
from conformance.experiments.interleave.shrinking import shrunk
from conformance.experiments.json_file import save_json
from conformance.implementations.jvm.interruptible import interruptible_digest
from kidx.workers import WorkerPool

if TYPE_CHECKING:
    from conformance.kafka.jar_fetch import Progress
    from conformance.operations import Json


class Search(NamedTuple):
    """Search of a release.

    Attributes:
        kinds: kinds of targets.
        seed: seed of the scenarios.
        examples: scenarios of each kind.
        directory: directory of the files of interleavings; None writes none.
    """

    kinds: tuple[str, ...]
    seed: int
    examples: int
    directory: Path | None

    def rows(self, release: str, scratch: Path) -> list[Json]:
        """Return the JSON results of all pairs; each torn one is shrunk if files are written.

        Raises:
            ToolError: Java or a jar is missing, or a race is not detected where it has to be.
        """
        interrupter, known = Interrupter(release, scratch), KnownPairs()
        rows = []
        for pair in list(interrupter.explore(self.kinds, self.seed, self.examples)):
            row = _row(release, pair, known.clause_of(pair, release))
            if pair.violations and self.directory is not None:
                shown = shrunk(pair.case, interrupter)
                if shown is None:
                    operations = f"{pair.case.first} with {pair.case.others}"
                    raise ToolError(
                        f"cannot reproduce with two threads that {operations} is not atomic in Kafka {release}"
                    )
                content = trace.document(shown, release, row["clause"])
                row["trace"] = str(save_json(content, self.directory, "interleaving", "interleaving"))
            rows.append(row)
        return rows


def search_releases(
    search: Search, releases: Sequence[str], scratch: Path, jobs: int, progress: Progress | None = None
) -> Iterator[tuple[str, str, list[Json]]]:
    """Yield each release, the release with the same classes whose results it has, and the results.

    Args:
        search: the search.
        releases: the releases.
        scratch: an empty directory.
        jobs: maximum number of worker processes; this process searches if one is enough.
        progress: called while jars are fetched.

    Raises:
        ToolError: see :meth:`Search.rows`.
    """
    logs = not set(search.kinds).isdisjoint(LOGS)
    digests = {release: interruptible_digest(release, progress, logs=logs) for release in releases}
    first: dict[str, str] = {}
    for release, digest in digests.items():
        first.setdefault(digest, release)
    workers = min(jobs, len(first))
    if workers == 1:
        done: dict[str, list[Json]] = {}
        for release, digest in digests.items():
            if digest not in done:
                done[digest] = search.rows(release, scratch / release)
            yield release, first[digest], done[digest]
        return
    # The workers must not inherit this process's virtual machine.
    with WorkerPool(workers, multiprocessing.get_context("spawn")) as pool:
        found = {digest: pool.submit(search.rows, release, scratch / release) for digest, release in first.items()}
        for release, digest in digests.items():
            yield release, first[digest], found[digest].result()


def _row(release: str, pair: Pair, clause: str | None) -> Json:
    return {
        "release": release,
        "machine": pair.case.kind,
        "index": pair.case.kind,
        "names": list(pair.case.names),
        "first": pair.case.first,
        "others": pair.case.others,
        "points": pair.points,
        "waits": pair.waits,
        "torn": len(pair.violations),
        "clause": clause,
        "where": sorted({violation.where for violation in pair.violations}),
    }
