"""Recorder of a golden corpus: executes a plan on a broker, looks up offsets, stops the broker, and copies its files.

The plan consists of topics, each with steps such as appends, ends of transactions, and restarts of the broker.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.errors import ToolError
from conformance.experiments.golden.corpus import (
    CORPUS_FILE,
    RUNNING,
    Corpus,
    Kind,
    Partition,
    RecordedAppend,
    sha256_of,
)
from conformance.experiments.golden.plan import Append, EndTransaction, Topic, setting, targets, topics
from conformance.kafka.broker import new_broker
from kidx.dialect import dialect_of
from kidx.records import build_batch, file_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.kafka.broker import Broker, Choice
    from conformance.kafka.client import Client, Isolation, OffsetResult, Producer
    from conformance.kafka.jar_fetch import Step as FetchStep
    from kidx.records import RecordBatch

_SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex")
_EPOCHS: Final = "leader-epoch-checkpoint"
_OLD_FORMAT: Final = "message.format.version"


def record(
    release: str,
    out: str | Path,
    *,
    seed: int = 0,
    broker: Choice = "auto",
    progress: Callable[[FetchStep], None] | None = None,
    on_activity: Callable[[str], None] = lambda _: None,
) -> Corpus:
    """Record a corpus of a release.

    Args:
        release: a locked release.
        out: a new or empty directory, or a corpus, which is replaced when the recording is complete.
        broker: backend of the broker, a container or a local process.
        progress: called with the progress of fetching jars.
        on_activity: called with a line of text for each activity.

    Raises:
        ToolError: the release is not locked, the directory cannot hold a corpus, or kafka-python is missing.
        BrokerError: the broker failed.
    """
    target = Path(out).absolute()
    _check_place(target)
    plan = topics(release, seed)
    mode, config = setting(release)
    with tempfile.TemporaryDirectory(prefix=".recording-", dir=target.parent) as scratch:
        directory = Path(scratch) / target.name
        directory.mkdir()
        with new_broker(release, broker, config=config, mode=mode, progress=progress) as started:
            on_activity(f"{release}: {started.backend} {started.mode} broker ready after {started.ready_seconds:.1f} s")
            recorder = _Recorder(started, directory, on_activity)
            partitions = recorder.run(plan)
            corpus = Corpus(
                target,
                started.release,
                mode,
                config,
                seed,
                version("kidx"),
                f"conformance record-golden --kafka {started.release} --out {_as_given(out)} --seed {seed}",
                recorder.version,
                tuple(partitions),
            )
        replace(corpus, directory=directory).save()
        if target.exists():
            shutil.rmtree(target)
        directory.rename(target)
    return corpus


def _as_given(out: str | Path) -> str:
    """Return the directory as it was given; of an absolute path only the name, so that the corpus has no local path."""
    return Path(out).name if Path(out).is_absolute() else str(out)


def _check_place(target: Path) -> None:
    if not target.parent.is_dir():
        raise ToolError(f"{target.parent} is not a directory")
    if target.exists() and not target.is_dir():
        raise ToolError(f"{target} is not a directory")
    if target.is_dir() and any(target.iterdir()) and not (target / CORPUS_FILE).exists():
        raise ToolError(f"{target} is neither empty nor a corpus; choose an empty or new directory")


@dataclass(slots=True)
class _Log:
    """State of a partition while it is recorded.

    Attributes:
        topic: topic of the partition, with its steps.
        kinds: number of records and kind of each append until now.
        restarts: log end offsets at which the broker was restarted.
        leader_epoch: epoch of the leader during the lookups.
        answers: lookup results by isolation level.
    """

    topic: Topic
    kinds: list[tuple[int, Kind]] = field(default_factory=list)
    restarts: list[int] = field(default_factory=list)
    leader_epoch: int = 0
    answers: dict[Isolation, tuple[OffsetResult, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.topic.name}-0"


class _Recorder:
    """Recorder with a started broker; ``version`` is the version of its ListOffsets requests."""

    def __init__(self, broker: Broker, directory: Path, on_activity: Callable[[str], None]) -> None:
        self._broker = broker
        self._directory = directory
        self._on_activity = on_activity
        self._client: Client | None = None
        self._logs: list[_Log] = []
        self._sequences: dict[str, int] = {}
        self._producers: dict[str, Producer] = {}
        self._open: set[str] = set()
        self.version = dialect_of(broker.release).list_offsets_versions[1]

    @property
    def _connected(self) -> Client:
        self._client = self._client or self._broker.connect()
        return self._client

    def run(self, plan: list[Topic]) -> list[Partition]:
        """Execute a plan on a started broker, which is stopped at the end."""
        try:
            for topic in plan:
                self._produce(topic)
            for log in self._logs:
                self._look_up(log)
        finally:
            self._close_client()
        running = {log.name: self._copy(log, self._directory / RUNNING, active_only=True) for log in self._logs}
        self._broker.stop()
        return [self._collect(log, running[log.name]) for log in self._logs]

    def _close_client(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    # -- producing -------------------------------------------------------------------------------------------------

    def _produce(self, topic: Topic) -> None:
        self._connected.create_topic(topic.name, topic.config)
        self._connected.leader_epoch(topic.name)  # waits until there is a leader
        log = _Log(topic)
        self._logs.append(log)
        for step in topic.steps:
            if isinstance(step, Append):
                self._append(log, step)
            elif isinstance(step, EndTransaction):
                self._end(log, step)
            else:
                self._restart()
        self._on_activity(f"{self._broker.release}: {topic.name}: {len(log.kinds)} appends")

    def _append(self, log: _Log, step: Append) -> None:
        name, fields = log.topic.name, {}
        if step.producer is not None:
            producer = self._begun(name, step.producer)
            sequence = self._sequences.get(step.producer, 0)
            self._sequences[step.producer] = sequence + len(step.records)
            fields = {**producer._asdict(), "base_sequence": sequence, "is_transactional": True}
        data = build_batch(step.records, codec=step.codec, magic=step.magic, **fields)
        self._connected.produce(name, data, transactional_id=step.producer)
        log.kinds.append((len(step.records), _kind(log.topic, step)))

    def _begun(self, topic: str, transactional_id: str) -> Producer:
        """Return the producer of an id, with a transaction that includes the topic."""
        if transactional_id not in self._producers:
            self._producers[transactional_id] = self._connected.init_producer(transactional_id)
        producer = self._producers[transactional_id]
        if transactional_id not in self._open:
            self._connected.join_transaction(topic, transactional_id, producer)
            self._open.add(transactional_id)
        return producer

    def _end(self, log: _Log, step: EndTransaction) -> None:
        producer = self._producers[step.producer]
        self._connected.end_and_await_marker(log.topic.name, step.producer, producer, commit=step.commit)
        self._open.discard(step.producer)
        log.kinds.append((1, "marker"))

    def _restart(self) -> None:
        for log in self._logs:
            log.restarts.append(sum(count for count, _ in log.kinds))
        self._close_client()
        self._broker.stop()
        self._broker.start()
        for log in self._logs:
            self._connected.leader_epoch(log.topic.name)  # waits until there is a leader again

    # -- lookups ---------------------------------------------------------------------------------------------------

    def _look_up(self, log: _Log) -> None:
        name = log.topic.name
        log.leader_epoch = self._connected.leader_epoch(name)
        timestamps = [record.timestamp for batch in self._batches(log) for record in batch]
        levels: tuple[Isolation, ...] = ("read_uncommitted",)
        if any(kind == "marker" for _, kind in log.kinds):
            levels = ("read_uncommitted", "read_committed")
        for level in levels:
            log.answers[level] = tuple(self._connected.answers(name, targets(timestamps), level, version=self.version))
        self._on_activity(f"{self._broker.release}: {name}: {sum(map(len, log.answers.values()))} answers")

    def _batches(self, log: _Log) -> Iterator[RecordBatch]:
        for path in sorted((self._broker.log_dir / log.name).glob("*.log")):
            yield from file_batches(path)

    # -- collecting ------------------------------------------------------------------------------------------------

    def _copy(self, log: _Log, directory: Path, *, active_only: bool = False) -> dict[str, str]:
        """Copy a partition's files, or only the active segment's indexes, and return their hashes."""
        source, target = self._broker.log_dir / log.name, directory / log.name
        paths = sorted(path for path in source.iterdir() if path.suffix in _SUFFIXES or path.name == _EPOCHS)
        if active_only:
            active = max(path.stem for path in paths if path.suffix == ".log")
            paths = [path for path in paths if path.stem == active and path.suffix in (".index", ".timeindex")]
        target.mkdir(parents=True)
        return {path.name: sha256_of(Path(shutil.copyfile(path, target / path.name))) for path in paths}

    def _collect(self, log: _Log, running: dict[str, str]) -> Partition:
        appends, first = [], 0
        for count, kind in log.kinds:
            appends.append(RecordedAppend(first, first + count - 1, kind))
            first += count
        return Partition(
            log.name,
            log.topic.why,
            log.topic.config,
            log.leader_epoch,
            tuple(appends),
            tuple(log.restarts),
            self._copy(log, self._directory),
            running,
            log.answers,
        )


def _kind(topic: Topic, step: Append) -> Kind:
    """Return the kind of an append: the leader rebuilds a batch if the topic has another codec or format."""
    magic = 1 if _OLD_FORMAT in topic.config else 2
    same = step.magic == magic and topic.codec in (None, step.codec)
    return "in_place" if same else "rebuilt"
