"""What a broker does that starts with a damaged directory, as far as it can be seen from outside."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.experiments.start_damage.prepared import LOG_DIRS, TOPIC, broker_at
from conformance.kafka.broker import BrokerError, LocalBroker
from conformance.kafka.client import PartitionQuery
from kidx.discovery import parse_partition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.kafka.broker.config import Node
    from conformance.kafka.client import Client
    from conformance.kafka.polling import Deadline

_LATEST, _EARLIEST = -1, -2
_OFFLINE: Final = re.compile(r"Stopping serving logs in dir (\S+)|Failed to create or validate data directory (\S+)")
_LOG_FILE: Final = re.compile(r"\d{20}\.log", re.ASCII)
_SETTLED: Final = 3
"""Rounds of questions with the same answers after which nothing more is waited for."""
_PAUSE: Final = 0.5
_PATIENCE: Final = 40
"""Rounds at most."""


_Answer = tuple[int | None, int | None, str]


@dataclass(frozen=True, slots=True)
class Partition:
    """What became of a partition.

    Attributes:
        start, end: earliest and latest offset; None if it does not answer, and ``error`` says why.
        segments: bytes of each ``.log`` by base offset, by log directory.
        strays: log directories in which it has a ``-stray`` directory.
    """

    start: int | None = None
    end: int | None = None
    error: str = ""
    segments: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    strays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """What a start came to.

    Attributes:
        started: it served, and went on to.
        offline: names of log directories that it gave up.
        partitions: by number.
        said: the line of its log that says why it did not start.
    """

    started: bool
    offline: tuple[str, ...] = ()
    partitions: Mapping[int, Partition] = field(default_factory=dict)
    said: str = ""


class _Undisturbed(LocalBroker):
    """A broker whose directories are as they are: nothing is formatted, whatever is missing."""

    def _format(self, node: Node, properties: Path) -> None:
        pass

    def await_ready(self, node: Node, deadline: Deadline) -> None:
        """Wait until it answers."""
        self._node = self._node or node
        while True:
            assert self._process is not None
            if not self._process.running:
                raise self._error(f"did not start but ended with status {self._process.exit_status}")
            try:
                with self.connect() as client:
                    metadata = client.metadata([TOPIC])
                    if metadata.brokers and TOPIC in metadata.topics:
                        return
            except BrokerError:
                pass
            if not deadline.pause():
                raise self._error(f"was not ready within {deadline.limit:g} s")


def observe(release: str, root: Path, numbers: Sequence[int]) -> Observed:
    """Start a broker with a directory, look at it, and kill it.

    Args:
        release: of the broker.
        root: its directory.
        numbers: of the partitions to look at.

    Raises:
        BrokerError: it cannot be seen whether it starts.
    """
    broker = broker_at(release, root, _Undisturbed)
    answers: dict[int, _Answer] = {}
    started = False
    try:
        try:
            broker.start()
            answers = _answers(broker, numbers)
            started = broker.running
        except BrokerError as error:
            if "was not ready" in str(error):
                raise
            started = False
        output = broker.output
    finally:
        broker.close(keep=True)
    offline = {"".join(paths).rsplit("/", 1)[-1] for paths in _OFFLINE.findall(output)}
    return Observed(
        started,
        tuple(name for name in LOG_DIRS if name in offline),
        {number: _partition(root, number, *answers.get(number, (None, None, ""))) for number in numbers},
        "" if started else _reason(output),
    )


def _answers(broker: LocalBroker, numbers: Sequence[int]) -> dict[int, _Answer]:
    last: dict[int, _Answer] = {}
    same = 0
    for _ in range(_PATIENCE):
        if not broker.running:
            return last
        try:
            with broker.connect() as client:
                found = _ask(client, numbers)
        except BrokerError:
            time.sleep(_PAUSE)
            continue
        # A broker that answers nothing is often about to end.
        same = same + 1 if found == last and not all(error for _, _, error in found.values()) else 0
        last = found
        if same >= _SETTLED:
            break
        time.sleep(_PAUSE)
    return last


def _ask(client: Client, numbers: Sequence[int]) -> dict[int, _Answer]:
    starts, ends = (
        {each.partition: each.to_result(target) for each in client.request_offsets(_questions(numbers, target))}
        for target in (_EARLIEST, _LATEST)
    )
    return {
        number: (starts[number].offset, ends[number].offset, starts[number].error or ends[number].error or "")
        for number in numbers
    }


def _questions(numbers: Sequence[int], target: int) -> list[PartitionQuery]:
    return [PartitionQuery(TOPIC, target, number) for number in numbers]


def _partition(root: Path, number: int, start: int | None, end: int | None, error: str) -> Partition:
    segments: dict[str, dict[int, int]] = {}
    strays = []
    for name in LOG_DIRS:
        for path in sorted((root / name).iterdir()):
            parsed = parse_partition(path.name)
            if parsed is None or parsed[:2] != (TOPIC, number):
                continue
            if parsed[2] == "stray":
                strays.append(name)
            elif not parsed[2]:
                logs = (
                    log for log in path.iterdir() if log.suffix == ".log" and log.is_file() and log.stem.isdecimal()
                )
                segments[name] = {int(log.stem): log.stat().st_size for log in logs}
    return Partition(start, end, error, segments, tuple(strays))


def _reason(output: str) -> str:
    """The first line that says that something is fatal, or the last with an exception."""
    lines = output.splitlines()
    fatal = [line for line in lines if re.search(r"FATAL|Exiting Kafka|ERROR|Exception", line)]
    return fatal[0][:400] if fatal else ""
