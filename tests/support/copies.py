"""Copies of partitions in both log directories of a broker: every combination, prepared from one broker's directories.

A partition has six records in three segments. Its *place* is the log directory to which KRaft's metadata assign it; the
*other* is the broker's second one.
"""

from __future__ import annotations

import itertools
import shutil
import time
from typing import NamedTuple

from conformance.kafka.broker import BrokerError
from conformance.kafka.broker.workload import EPOCH_MS
from conformance.studies.start_damage.observing import HOUR_MS, LOG_DIRS, TOPIC, _query, _UnchangedBroker, broker_at
from kidx.records import build_batch

END, SHORT_END = 6, 4
MARK = f".{'0123456789abcdef' * 2}"
OTHER_ID = "UAlnBWn7S5uwafXHT96cYw"
"""Id of a topic that does not exist."""
KINDS = ("", "full", "short", "other")
"""Copies: none, all records, without the last segment, of another topic."""
REAL = frozenset({"full", "short"})


class Combination(NamedTuple):
    """Kinds of a partition's directory and its -future directory, in the assigned log directory and in the other."""

    own: str
    elsewhere: str
    future: str
    future_elsewhere: str

    @property
    def is_fatal(self) -> bool:
        """True if two copies of one kind are of this topic, or the partition and the copy that is to replace it."""
        own, elsewhere, future, future_elsewhere = (kind in REAL for kind in self)
        return (own and elsewhere) or (future and future_elsewhere) or (own and future)


TOGETHER = [each for each in itertools.starmap(Combination, itertools.product(KINDS, repeat=4)) if not each.is_fatal]
"""Combinations with which a broker starts: 128."""
FATAL = [
    Combination("full", "short", "", ""),
    Combination("", "other", "full", "short"),
    Combination("full", "", "short", ""),
    Combination("short", "other", "full", "other"),
]
"""Some of the others, each of which needs a separate start."""


def prepare(release, root, partitions):
    """Run a broker with a topic, and stop it cleanly."""
    broker = broker_at(release, root, is_prepared=True)
    with broker:
        with broker.connect() as client:
            settings = {"segment.ms": str(HOUR_MS), "retention.ms": "-1", "segment.index.bytes": "1200"}
            client.create_topic(TOPIC, settings, partitions=partitions)
            for number in range(partitions):
                client.await_leader(TOPIC, number)
                for segment in range(3):
                    stamp = EPOCH_MS + 2 * HOUR_MS * segment
                    data = build_batch([(stamp, None, b"a"), (stamp + 1, None, b"b")])
                    assert client.append(TOPIC, data, partition=number).error is None
        broker.stop()
        broker.close(keep=True)
    return root


def arrange(prepared, root, number, combination):
    """Replace the directory of a partition by the copies of a combination; also add directories to be deleted."""
    name = f"{TOPIC}-{number}"
    place = next(each for each in LOG_DIRS if (prepared / each / name).is_dir())
    other = next(each for each in LOG_DIRS if each != place)
    source = prepared / place / name
    shutil.rmtree(root / place / name)
    for directory, mark, kind in zip((place, other) * 2, ("", "", "-future", "-future"), combination, strict=True):
        if kind:
            _copy(source, root / directory / (f"{name}{MARK}{mark}" if mark else name), kind)
    if number % 3:  # they are never the partition
        _copy(source, root / (place, other)[number % 2] / f"{name}{MARK}-{('delete', 'stray')[number % 3 - 1]}", "full")


def _copy(source, target, kind):
    shutil.copytree(source, target)
    if kind == "short":
        for path in target.iterdir():
            if path.name.startswith((f"{SHORT_END:020d}", f"{END:020d}")):
                path.unlink()
    if kind == "other":
        (target / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER_ID}")


def ends_after(release, root, numbers):
    """Start a broker, and return the end of each partition when nothing moves any more; None if it does not start."""
    broker = broker_at(release, root, _UnchangedBroker)
    ends, last = {}, None
    try:
        broker.start()
        since = time.monotonic()
        while broker.running and time.monotonic() - since < 10:
            try:
                with broker.connect() as client:
                    ends = {number: end for number, (_, end, _) in _query(client, numbers).items()}
            except BrokerError:
                since = time.monotonic()
            state = ends, sorted(str(path) for name in LOG_DIRS for path in (root / name).iterdir())
            if state != last:
                last, since = state, time.monotonic()
            time.sleep(0.5)
    except BrokerError:
        return None
    else:
        return ends if broker.running else None
    finally:
        broker.close(keep=True)


def predicted_ends(found, root, numbers):
    """Return the predicted end of each partition, and whether records are lost; None if the broker does not start."""
    if found.fatal:
        return None
    ends = {}
    for number in numbers:
        name = f"{TOPIC}-{number}"
        own = {each.directory: each for each in found.partitions if each.directory.name.partition(".")[0] == name}
        outcomes = {each.outcome for each in own.values()}
        changed = sorted(
            (each for each in own.values() if each.outcome in {"cut", "kept"}), key=lambda each: each.outcome
        )
        moved = next(iter(changed), None)  # one that is cut, if any
        plain = [path for each in LOG_DIRS if (path := root / each / name).is_dir() and path not in own]
        if moved is not None:
            ends[number] = moved.end[1], moved.outcome == "cut"
        elif outcomes & {"stray", "empty"}:
            ends[number] = 0, True
        else:
            (path,) = plain
            ends[number] = (END if (path / f"{SHORT_END:020d}.log").exists() else SHORT_END), False
    return ends
