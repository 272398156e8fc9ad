"""One release's cluster from its start to the verdict on its files."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from conformance.experiments.cluster.files import IndexFile, compare_replicas
from conformance.experiments.cluster.story import CONFIG, REPLICAS, tell_story
from conformance.kafka.broker.cluster import LocalCluster
from conformance.kafka.broker.mismatch import Mismatch
from kidx.dialect import dialect_of
from kidx.verify import verify_paths

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from conformance.kafka.broker.settings import Mode
    from conformance.kafka.fetch import Step


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """The result for a cluster: what was asked and compared, the verdict on each index file, and what was wrong."""

    release: str
    mode: Mode
    seed: int
    records: int
    answers: int
    followers_answers: int
    refusals: int
    files: tuple[IndexFile, ...]
    ready_seconds: float
    seconds: float
    mismatches: tuple[Mismatch, ...]

    @property
    def ok(self) -> bool:
        """Tell whether everything was as it must be."""
        return not self.mismatches

    def count(self, verdict: str) -> int:
        """How many index files have a verdict."""
        return sum(file.verdict == verdict for file in self.files)

    @property
    def differing(self) -> int:
        """How many index files of followers are not their leader's, byte for byte."""
        return sum(not file.as_leader for file in self.files)

    @property
    def reasons(self) -> Counter[str]:
        """By which rules files are not exact: how many by each clause."""
        return Counter(file.why.partition(":")[0] for file in self.files if file.why)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self) | {"verdict": "conforms" if self.ok else "diverges", "reasons": dict(self.reasons)}


def run_cluster(
    release: str,
    *,
    seed: int = 0,
    mode: Mode | None = None,
    base: str | os.PathLike[str] | None = None,
    progress: Callable[[Step], None] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> ClusterResult:
    """Start a cluster of three, let the story happen, stop it, and compare what its brokers have left behind.

    Args:
        release: a locked release.
        seed: decides what is produced.
        mode: ``"kraft"`` or ``"zookeeper"``; by default what the release was made for.
        base: where to make its directory.
        progress: called with the progress of fetching jars.
        say: called with a line of text for each activity.

    Raises:
        BrokerError: a broker did not start, died, or did not do what it was asked in time; the line names its log.
    """
    started = time.monotonic()
    with LocalCluster(release, mode=mode, base=base, progress=progress) as cluster:
        say(f"{cluster.release}: three {cluster.mode} brokers ready after {cluster.ready_seconds:.1f} s")
        told = tell_story(cluster, seed=seed, say=say)
        leaders = {}
        for name, replicas in REPLICAS.items():
            with cluster.members[replicas[0]].connect() as client:
                leaders[name] = client.state(name).leader
        cluster.stop()
        files: list[IndexFile] = []
        mismatches = list(told.mismatches)
        dialect, interval = dialect_of(cluster.release), int(CONFIG["index.interval.bytes"])
        for name, replicas in REPLICAS.items():
            directories = {replica: cluster.members[replica].log_dir / f"{name}-0" for replica in replicas}
            judged, wrong = compare_replicas(told.topics[name], leaders[name], directories, dialect, interval)
            files += judged
            mismatches += wrong
            for finding in verify_paths(list(directories.values()), release=cluster.release).findings:
                if finding.verdict == "broken":
                    mismatches.append(
                        Mismatch(finding.clause, finding.path, "no finding of kidx verify", finding.message)
                    )
    return ClusterResult(
        cluster.release,
        cluster.mode,
        seed,
        sum(topic.end for topic in told.topics.values()),
        told.answers,
        told.followers_answers,
        told.refusals,
        tuple(files),
        cluster.ready_seconds,
        time.monotonic() - started,
        tuple(mismatches),
    )
