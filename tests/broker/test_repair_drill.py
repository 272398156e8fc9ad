"""The restore drill: indexes of a real broker's directory are corrupted and repaired; all results remain the same."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from conformance.kafka.broker import LocalBroker
from conformance.kafka.broker.workload import EPOCH_MS, grid, topic_config
from conformance.studies.index_corruption.cases import corrupt
from kidx.dialect import dialect_of
from kidx.records import build_batch

TOPIC, ABORTS = "drill", "drill-aborts"
PARTITIONS, BATCHES = 11, 70

pytestmark = pytest.mark.broker


class Contents(NamedTuple):
    """Everything that a consumer can get of a partition: results of lookups, all records, and the committed ones."""

    answers: list
    records: bytes
    committed: list


def produce(client, number, stamps):
    """Produce with an advancing clock and occasional late records; return the timestamps."""
    draw = random.Random(number)  # noqa: S311 -- repeatable on purpose
    for batch in range(BATCHES):
        clock = EPOCH_MS + batch * 40 + number
        rows = [(clock + draw.choice((0, 3, 9, -500)), None, draw.randbytes(30)) for _ in range(draw.randint(1, 5))]
        stamps.update(row[0] for row in rows)
        assert client.append(TOPIC, build_batch(rows), partition=number).error is None


def abort(client, stamps):
    """Run transactions over several segments; two of three are aborted."""
    for number in range(9):
        name = f"drill-{number}"
        producer = client.init_producer(name)
        client.join_transaction(ABORTS, name, producer)
        for batch in range(5):
            clock = EPOCH_MS + number * 500 + batch * 40
            stamps.add(clock)
            data = build_batch(
                [(clock, None, b"x" * 150)], **producer._asdict(), base_sequence=batch, is_transactional=True
            )
            assert client.append(ABORTS, data, transactional_id=name).error is None
        client.end_and_await_marker(ABORTS, name, producer, commit=number % 3 == 0)


def contents(broker, stamps):
    """Return the contents by topic and partition."""
    version = dialect_of(broker.release).list_offsets_versions[1]
    found = {}
    with broker.connect() as client:
        for topic, partitions in ((TOPIC, PARTITIONS), (ABORTS, 1)):
            for number in range(partitions):
                client.await_leader(topic, number)
                targets = grid(stamps[topic, number])
                answers = client.answers(topic, targets, version=version, partition=number)
                end = client.end_offset(topic, number)
                parts, committed = [], []
                for offset in range(end):  # a consumer may begin anywhere
                    fetched = client.fetch(topic, offset, partition=number)
                    assert fetched.error is None
                    parts.append(fetched.records)
                    if topic == ABORTS:
                        fetched = client.fetch(topic, offset, isolation="read_committed", max_bytes=600)
                        committed.append((fetched.records, fetched.aborted))
                found[topic, number] = Contents(answers, b"".join(parts), committed)
    return found


def damage(data):
    """Apply seven kinds of corruption in twelve partitions; return the corrupt files."""
    kinds = (
        "deleted",
        "emptied",
        "cut within an entry",
        "filled with zeros",
        "low bit flipped",
        "stale timestamps",
        _of_another_segment,
    )
    hit = []
    for number in range(PARTITIONS):
        logs = sorted((data / f"{TOPIC}-{number}").glob("*.log"))
        assert len(logs) > 3
        for each, kind in enumerate((kinds[number % 7], kinds[(number + 3) % 7])):
            log = logs[(number + each) % (len(logs) - 1)]
            suffix = ".timeindex" if kind == "stale timestamps" or (number + each) % 2 else ".index"
            if kind is _of_another_segment:
                kind(log.with_suffix(suffix))
            else:
                corrupt(log.with_suffix(suffix), kind)
            hit.append(log.with_suffix(suffix))
        corrupt(logs[-1].with_suffix(".timeindex"), "cut in half")  # of the active segment
        hit.append(logs[-1].with_suffix(".timeindex"))
    aborted = [path for path in sorted((data / f"{ABORTS}-0").glob("*.txnindex")) if path.stat().st_size]
    assert len(aborted) > 1
    aborted[0].write_bytes(b"")
    aborted[-1].write_bytes(aborted[0].read_bytes() + aborted[-1].read_bytes()[:-1])
    return [*hit, aborted[0], aborted[-1]]


def _of_another_segment(path):
    other = next(each for each in sorted(path.parent.glob(f"*{path.suffix}")) if each != path)
    shutil.copy(other, path)


def everything(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    "release", ["3.9.2", *(pytest.param(release, marks=pytest.mark.thorough) for release in ("2.8.2", "4.3.1"))]
)
@pytest.mark.thorough
def test_after_a_repair_every_answer_and_every_record_is_as_before(release, tmp_path, in_process):
    def kidx(*words):
        return in_process("kidx", *words, "--kafka", release, work=tmp_path)

    stamps = {(TOPIC, number): set() for number in range(PARTITIONS)} | {(ABORTS, 0): set()}
    with LocalBroker(release, base=tmp_path) as broker:
        with broker.connect() as client:
            client.create_topic(TOPIC, topic_config(release), partitions=PARTITIONS)
            client.create_topic(ABORTS, topic_config(release))
            for topic, number in stamps:
                client.await_leader(topic, number)
            for number in range(PARTITIONS):
                produce(client, number, stamps[TOPIC, number])
            abort(client, stamps[ABORTS, 0])
        before = contents(broker, stamps)
        refused = kidx("repair", broker.log_dir)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"{broker.log_dir} is in use: a broker holds {broker.log_dir / '.lock'}; stop it first" in refused.stderr
        told = kidx("repair", broker.log_dir, "--dry-run")
        assert f"a broker is running with {broker.log_dir}" in told.stderr
        broker.stop()
        assert kidx("verify", broker.log_dir).returncode == 0

        hit = damage(broker.log_dir)
        damaged = everything(broker.log_dir)
        verified = kidx("verify", broker.log_dir)
        assert verified.returncode == 1
        assert f"repair {broker.log_dir} --kafka {release} --dry-run" in verified.stdout
        assert "do not delete or cut a .timeindex" in verified.stdout
        tried = json.loads(kidx("repair", broker.log_dir, "--dry-run", "--json").stdout)
        assert everything(broker.log_dir) == damaged
        assert tried["refused"] == []
        repaired = kidx("repair", broker.log_dir, "--json")
        assert repaired.returncode == 0, repaired.stdout
        changed = {Path(change["path"]) for change in json.loads(repaired.stdout)["changed"]}
        assert changed == {Path(change["path"]) for change in tried["changed"]}
        assert changed <= {*hit}
        assert len(changed) > 15
        after = everything(broker.log_dir)
        assert {path for path in damaged if after[path] != damaged[path]} <= changed
        for path in changed & damaged.keys():
            assert after[path.with_name(f"{path.name}.old")] == damaged[path]

        broker.start()
        again = contents(broker, stamps)
        for key, expected in before.items():
            assert again[key] == expected, key
        with broker.connect() as client:  # and it continues
            for number in range(PARTITIONS):
                produce(client, number, stamps[TOPIC, number])
        broker.stop()
        assert kidx("verify", broker.log_dir).returncode == 0
