"""Experiment with a broker that has tiered storage: lookups across tiers, and starts with a corrupt cache.

The cache has copies of the index files of remote segments.

Responses of a broker whose topics are partly in the remote tier, compared with Kafka's rules and the reference.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.implementations.wire.expected import ExpectedRows
from conformance.kafka.broker import BrokerError
from conformance.kafka.client import PartitionQuery
from conformance.kafka.polling import Deadline
from conformance.lockstep.scopes.wire import WireLockstep
from conformance.machines.wire import WireMachine
from conformance.runs.chunks import run_chunk
from conformance.runs.profiles import PROFILES
from conformance.runs.server_run import CHUNK
from conformance.runs.wire_options import WireOptions
from conformance.scratch import scratch_directory
from conformance.studies.tiers.prepared import (
    CASES,
    LOCAL_START,
    LOCAL_VERSION,
    PLAIN,
    SKIPPED,
    Case,
    Prepared,
    Record,
    corrupt_remotely,
    prepare,
    remote_files,
    tiered_broker,
)
from kidx.startup import predict
from kidx.verify import verify_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conformance.kafka.broker import LocalBroker
    from conformance.kafka.client import Client
    from conformance.lockstep.scopes.wire_topic import Topic

_SPECIAL: Final = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}
"""Special targets, each with the first version of ListOffsets that has it."""
_READY_SECONDS: Final = 30
"""Time limit for reading the metadata of remote segments after a start, in seconds."""
_INITIALIZING: Final = {"UNKNOWN", "NOT_LEADER_OR_FOLLOWER", "LEADER_NOT_AVAILABLE", "REPLICA_NOT_AVAILABLE"}
"""Errors of a broker that has not yet read the metadata of remote segments."""
_SLOW: Final = "REQUEST_TIMED_OUT"
"""Error of a broker whose remote lookup takes too long on a busy machine; a consumer repeats the request, too."""
_HIGHEST_REMOTE: Final = -5
"""Target of the highest offset in the remote tier."""


class CacheStart(msgspec.Struct, frozen=True):
    """Result of the start after a corruption.

    Attributes:
        predicted: The prediction of ``kidx verify``: ``"starts"`` or ``"does not start"``.
        happened: The broker's behaviour, with the same values.
        answers: The number of correct lookups by time, their total, and the first incorrect one.
        error: The line of the broker's log that explains why it did not start.
        as_predicted: True if the prediction was correct.
    """

    damage: str
    predicted: str
    happened: str
    answers: str = ""
    error: str = ""
    as_predicted: bool = False

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "as_predicted", self.predicted == self.happened)


class Skipped(msgspec.Struct, frozen=True):
    """Response to a lookup whose record is in a later remote segment than the first candidate, and the record."""

    answer: str
    expected: str


class Tried(msgspec.Struct, frozen=True):
    """Results of one release.

    Attributes:
        special: The response to each special target: offset and timestamp, or the error.
        lookups: The number of correct lookups by time across tiers, and their total.
        skipped: The response of a lookup that skips a segment.
        starts: One result for each case.
    """

    special: dict[str, str]
    lookups: tuple[int, int]
    skipped: Skipped
    starts: list[CacheStart]

    @property
    def as_predicted(self) -> bool:
        """True if every prediction was correct."""
        return all(start.as_predicted for start in self.starts)


def try_release(
    release: str,
    cases: Sequence[Case] = CASES,
    report: Callable[[str], None] = lambda _: None,
) -> Tried:
    """Start a broker with tiers, query it for offsets, and start it after each corruption.

    Args:
        release: One of the releases of the study.
        cases: The corruptions to try.
        report: A callback that receives a line of text for each start.

    Raises:
        BrokerError: The broker rejects a request while the directory is prepared.
        FetchError: Kafka's test jar cannot be fetched.
    """
    with scratch_directory() as scratch:
        directory, original = scratch / "broker", scratch / "original"
        prepared = prepare(release, directory)
        shutil.copytree(directory, original)
        special, lookups, skipped = _query_offsets(release, prepared)
        starts = list[CacheStart]()
        for case in cases:
            shutil.rmtree(directory)
            shutil.copytree(original, directory)
            starts.append(_try(release, prepared, case))
            report(f"{release}: {case.name}: {starts[-1].happened}")
        return Tried(special, lookups, skipped, starts)


def _query_offsets(release: str, prepared: Prepared) -> tuple[dict[str, str], tuple[int, int], Skipped]:
    broker = tiered_broker(release, prepared.directory)
    with broker:
        with broker.connect() as client:
            _await_tiers(client)
            special = {str(target): _special(client, target, version) for target, version in _SPECIAL.items()}
            right, total, _ = _lookups(client, prepared)
            # The largest timestamps of the first remote segment are below the log start; a later one has the record.
            target = prepared.records[PLAIN][len(prepared.records[PLAIN]) // 2].timestamp
            expected = prepared.expected(SKIPPED, target)
            skipped = Skipped(_text(_lookup(client, SKIPPED, target)), _text(expected))
        broker.stop()
        broker.close(keep=True)
    return special, (right, total), skipped


def _try(release: str, prepared: Prepared, case: Case) -> CacheStart:
    directory = prepared.directory
    if case.corrupt is not None:
        case.corrupt(directory)
    if case.fetched_once:
        query_with_corrupt_index(release, prepared, case.fetched_once)
    broker = tiered_broker(release, directory)
    try:
        predicted = _predicted(release, directory)
        try:
            broker.start()
        except BrokerError:
            return CacheStart(case.name, predicted, "does not start", error=_reason(broker.output))
        with broker.connect() as client:
            _await_tiers(client)
            right, total, wrong = _lookups(client, prepared)
        answers = f"{right} of {total}" + (f", {wrong}" if wrong else "")
        return CacheStart(case.name, predicted, "starts", answers)
    finally:
        broker.kill()
        broker.close(keep=True)


def query_with_corrupt_index(release: str, prepared: Prepared, suffix: str) -> None:
    """Run a broker that fetches a corrupt file from remote storage once, and stop it."""
    with tiered_broker(release, prepared.directory) as broker:
        with broker.connect() as client:
            _await_tiers(client)
            restore = corrupt_remotely(prepared.directory, suffix)
            _lookups(client, prepared)
            restore()
        broker.stop()
        broker.close(keep=True)


def _predicted(release: str, directory: Path) -> str:
    paths = [directory / "data"]
    start = predict(paths, verify_paths(paths, release=release, processes=1), release)
    assert start is not None
    return "does not start" if start.fatal else "starts"


def _reason(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if "Exception" in line and not line.startswith("[")]
    return lines[0] if lines else ""


def _await_tiers(client: Client) -> None:
    """Wait until the broker has read which segments are in the remote tier."""
    deadline = Deadline(_READY_SECONDS)
    for topic in (PLAIN, SKIPPED):
        client.await_leader(topic)
        while isinstance(found := _lookup(client, topic, 0), str) and found in _INITIALIZING and deadline.pause():
            pass
    # When the broker responds to this query, each task of the remote log manager has run once.
    question = PartitionQuery(PLAIN, _HIGHEST_REMOTE)
    while client.request_offsets([question], version=_SPECIAL[_HIGHEST_REMOTE])[0].offset == -1 and deadline.pause():
        pass


def _lookups(client: Client, prepared: Prepared) -> tuple[int, int, str]:
    """Return the number of correct lookups, their total, and a description of the first incorrect one."""
    right, wrong = 0, ""
    for target in prepared.targets:
        expected, found = prepared.expected(PLAIN, target), _lookup(client, PLAIN, target)
        if found == expected:
            right += 1
        elif not wrong:
            wrong = f"{_text(found)} instead of {_text(expected)}"
    return right, len(prepared.targets), wrong


def _lookup(client: Client, topic: str, target: int) -> Record | str | None:
    deadline = Deadline(_READY_SECONDS)
    while True:
        (answer,) = client.request_offsets([PartitionQuery(topic, target)])
        if answer.error != _SLOW or not deadline.pause():
            break
    if answer.error is not None:
        return answer.error
    return None if answer.offset is None or answer.offset < 0 else Record(answer.timestamp, answer.offset)


def _special(client: Client, target: int, version: int) -> str:
    if version not in client.versions("ListOffsets"):
        return "not offered"
    (answer,) = client.request_offsets([PartitionQuery(PLAIN, target)], version=version)
    return answer.error or f"offset {answer.offset}, timestamp {answer.timestamp}"


def _text(found: Record | str | None) -> str:
    if isinstance(found, Record):
        return f"offset {found.offset}"
    return found or "nothing"


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


class AnswerCounts(msgspec.Struct, frozen=True):
    """Numbers of compared responses and of divergences for one release.

    Attributes:
        seed: The seed of the first topic.
        answers: The number of responses, each while the local log start was above the log start.
        segments: The number of remote segments that the topics had.
        divergences: The signatures of divergences, which nothing explains, each with its number.
        seconds: The time in seconds.
        wanted: The requested number of responses.
    """

    seed: int
    topics: int
    steps: int
    answers: int
    segments: int
    divergences: dict[str, int]
    seconds: int
    wanted: int

    @property
    def as_predicted(self) -> bool:
        """True if nothing diverges."""
        return not self.divergences


class TieredLockstep(WireLockstep):
    """Lockstep that compares only while the local log start is above the log start.

    Attributes:
        segments: The names of the remote segments that existed at a comparison.
        local_start: The offset at which the local segments began at the last comparison.
    """

    kafka: LocalBroker

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.segments: set[str] = set()
        self.local_start = 0

    def compare(self, topic: Topic, *, every: bool = False) -> None:
        """Compare when the inactive segments are in the remote tier alone, if there are any."""
        self.local_start = self._await_local_start(topic)
        if self.local_start > topic.account.start:
            self.segments.update(path.name for path in remote_files(self.kafka.directory, ".log"))
            super().compare(topic, every=every)

    def _expected_rows(self, topic: Topic) -> ExpectedRows:
        return ExpectedRows(topic.reference, (self.local_start,))

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
        release: One of the releases of the study.
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
        seed,
        counts.topics,
        counts.steps,
        counts.answers,
        len(lockstep.segments),
        {f"{clause}: {shape}": counts.occurrences[clause, shape] for clause, shape in lockstep.differences},
        round(time.monotonic() - started),
        answers,
    )
