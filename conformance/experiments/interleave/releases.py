"""Search of many releases for operations that are not atomic; releases with the same classes are searched once.

A pair is an operation that is interrupted, and the operations that run in its middle.
"""

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
    """Parameters of the search of a release.

    Attributes:
        kinds: kinds of objects whose operations are executed, such as ``offset`` or ``cache``.
        seed: seed of the scenarios.
        examples: number of scenarios of each kind.
        directory: directory for a file with the interleaving of each pair that is not atomic; None writes none.
    """

    kinds: tuple[str, ...]
    seed: int
    examples: int
    directory: Path | None

    def rows(self, release: str, scratch: Path) -> list[Json]:
        """Search a release and return the JSON results of all pairs.

        Raises:
            ToolError: Java or a jar is missing, or a planted race was not detected.
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
    """Yield each release, the first release with the same classes, and the results of both.

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
