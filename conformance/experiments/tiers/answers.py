"""Responses of a broker whose topics are partly in the remote tier, compared with Kafka's rules and the reference."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.experiments.tiers.prepared import LOCAL_START, LOCAL_VERSION
from conformance.experiments.tiers.tiered_broker import remote_files, tiered_broker
from conformance.kafka.polling import Deadline
from conformance.lockstep.scopes.wire import WireLockstep
from conformance.machines.wire import WireMachine
from conformance.runs.chunks import run_chunk
from conformance.runs.profiles import PROFILES
from conformance.runs.server_run import CHUNK
from conformance.runs.wire_options import WireOptions
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.kafka.broker import LocalBroker
    from conformance.lockstep.scopes.wire_topic import Topic

TOPIC: Final = ("remote.storage.enable=true", "local.retention.bytes=1", "retention.bytes=-1")
"""Properties of the topics: every inactive segment is copied and deleted locally, and none is deleted remotely."""
_LIMIT_S: Final = 120
"""Time limit for a response, in seconds: the machine may be busy."""
_MOVES_S: Final = 20
"""Time limit for the copy and the local deletion of the segments that the reference has rolled, in seconds."""
_STEPS: Final = 15
"""Number of steps in an example."""
_PATIENT: Final = {"broker.session.timeout.ms": 600_000}
"""Settings of a broker that is not restarted: however busy the machine is, the broker is not fenced."""


class AnswerCounts(NamedTuple):
    """Numbers of compared responses and of divergences for one release.

    Attributes:
        release: The release of the broker.
        seed: The seed of the first topic.
        topics: The number of topics.
        steps: The number of steps.
        answers: The number of responses, each while the local log start was above the log start.
        segments: The number of remote segments that the topics had.
        divergences: The signatures of divergences, which nothing explains, each with its number.
        seconds: The time in seconds.
    """

    release: str
    seed: int
    topics: int
    steps: int
    answers: int
    segments: int
    divergences: dict[str, int]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the counts without the release."""
        counts = self._asdict()
        del counts["release"]
        return counts | {"seconds": round(self.seconds)}


class TieredLockstep(WireLockstep):
    """Lockstep that compares only while the local log start is above the log start.

    Attributes:
        kafka: The broker.
        segments: The names of the remote segments that existed at a comparison.
    """

    kafka: LocalBroker

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.segments: set[str] = set()

    def compare(self, topic: Topic, *, every: bool = False) -> None:
        """Compare when the inactive segments are in the remote tier alone, if there are any."""
        if self._await_local_start(topic) > topic.account.start:
            self.segments.update(path.name for path in remote_files(self.kafka.directory, ".log"))
            super().compare(topic, every=every)

    def _await_local_start(self, topic: Topic) -> int:
        """Wait until the segments below the last stable offset are deleted locally; return the local log start."""
        log = topic.reference.log
        stable = min(topic.account.stable_ends)
        wanted = max((segment.base_offset for segment in log.segments if segment.base_offset <= stable), default=0)
        deadline = Deadline(_MOVES_S)
        while True:
            found = self.broker.client.list_offset(topic.name, LOCAL_START, version=LOCAL_VERSION).offset or 0
            if found >= wanted or not deadline.pause():
                return found


def answer_release(
    release: str,
    answers: int,
    seed: int,
    report: Callable[[str], None] = lambda _: None,
    seconds: float | None = None,
) -> AnswerCounts:
    """Compare the responses of a broker until enough of them were given across tiers, or the time is over.

    Args:
        release: One of the releases of :mod:`conformance.experiments.tiers.tiered_broker`.
        answers: The number of responses across tiers.
        seed: The seed of the first topic.
        report: A callback that receives a line of text after each few topics.
        seconds: The maximum time in seconds; None for no limit.

    Raises:
        BrokerError: The broker does not start.
        ClientError: The broker does not respond.
        FetchError: Kafka's test jar cannot be fetched.
    """
    started = time.monotonic()

    def is_over() -> bool:
        late = seconds is not None and time.monotonic() - started > seconds
        return late or counts.answers >= answers

    with scratch_directory() as scratch, tiered_broker(release, scratch / "broker", _PATIENT) as kafka:
        options = WireOptions(limit=_LIMIT_S, topic_config=TOPIC)
        with options.open(f"wire:{kafka.bootstrap}") as broker:
            lockstep = TieredLockstep(broker, release, scratch / "references", is_over=is_over)
            lockstep.kafka, rounds = kafka, 0
            counts = lockstep.statistics
            bound = WireMachine.bind(lockstep, restarts=0)
            settings = replace(PROFILES["ci"], steps=_STEPS).settings(CHUNK)
            while not is_over():
                run_chunk(bound, settings, seed + CHUNK * rounds, CHUNK, is_over)
                rounds += 1
                report(f"{release}: {counts.answers} responses across tiers; {counts.late_fetches} late fetches")
        # A clean stop of 3.9 waits until the deletion of the topics is noted in a topic that it no longer serves.
        kafka.kill()
    return AnswerCounts(
        release,
        seed,
        counts.topics,
        counts.steps,
        counts.answers,
        len(lockstep.segments),
        {f"{clause}: {shape}": counts.occurrences[clause, shape] for clause, shape in lockstep.differences},
        time.monotonic() - started,
    )
