"""Run of a cluster of one release, from its start to the verdict on its files."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from conformance.experiments.cluster.files import IndexFile, compare_replicas
from conformance.experiments.cluster.scenario import CONFIG, REPLICAS, run_cluster_scenario
from conformance.kafka.broker.cluster import LocalCluster
from conformance.kafka.broker.mismatch import Mismatch
from kidx.dialect import dialect_of
from kidx.verify import verify_paths

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from conformance.kafka.broker.config import Mode
    from conformance.kafka.jar_fetch import Step


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """Result for a cluster.

    Attributes:
        release: release of the brokers.
        mode: ``"kraft"`` or ``"zookeeper"``.
        seed: seed of the produced records.
        records: number of produced records.
        answers: number of results of lookups.
        followers_answers: number of results of lookups on followers.
        refusals: number of lookups that followers rejected, as they must.
        files: verdict on each index file.
        ready_seconds: time until all brokers were ready.
        seconds: duration of the run.
        mismatches: results, files and findings that are wrong.
    """

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
        """True if there are no mismatches."""
        return not self.mismatches

    def count(self, verdict: str) -> int:
        """Return the number of index files with a verdict."""
        return sum(file.verdict == verdict for file in self.files)

    @property
    def differing(self) -> int:
        """Number of index files of followers that differ from the leader's file."""
        return sum(not file.as_leader for file in self.files)

    @property
    def reasons(self) -> Counter[str]:
        """Number of files that are not exact, by the clause that allows the difference."""
        return Counter(file.why.partition(":")[0] for file in self.files if file.why)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
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
    """Start a cluster of three brokers, run the scenario, stop the cluster, and compare the files of its brokers.

    Args:
        release: a locked release.
        seed: seed of the produced records.
        mode: ``"kraft"`` or ``"zookeeper"``; by default the usual mode of the release.
        base: parent of the cluster's directory.
        progress: callback that receives the progress of fetching jars.
        say: callback that receives a line of text for each activity.

    Raises:
        BrokerError: a broker did not start, died, or did not execute a request in time; the message contains its log.
    """
    started = time.monotonic()
    with LocalCluster(release, mode=mode, base=base, progress=progress) as cluster:
        say(f"{cluster.release}: three {cluster.mode} brokers ready after {cluster.ready_seconds:.1f} s")
        scenario = run_cluster_scenario(cluster, seed=seed, say=say)
        leaders = {}
        for name, replicas in REPLICAS.items():
            with cluster.members[replicas[0]].connect() as client:
                leaders[name] = client.state(name).leader
        cluster.stop()
        files: list[IndexFile] = []
        mismatches = list(scenario.mismatches)
        dialect, interval = dialect_of(cluster.release), int(CONFIG["index.interval.bytes"])
        for name, replicas in REPLICAS.items():
            directories = {replica: cluster.members[replica].log_dir / f"{name}-0" for replica in replicas}
            judged, wrong = compare_replicas(scenario.topics[name], leaders[name], directories, dialect, interval)
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
        sum(topic.end for topic in scenario.topics.values()),
        scenario.answers,
        scenario.followers_answers,
        scenario.refusals,
        tuple(files),
        cluster.ready_seconds,
        time.monotonic() - started,
        tuple(mismatches),
    )
