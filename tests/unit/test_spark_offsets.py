"""Offsets by time, found through index files as Spark's planning does: what real brokers answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.experiments.golden import load_corpus
from kidx.records import file_batches
from kidx.storage import Store
from kidx.tables.indexes import Counter
from kidx.tables.isolation import last_stable_offset
from kidx.tables.offsets import LogOffsets
from kidx.tables.segments import find_partitions

GOLDEN = Path(__file__).parents[1] / "golden"
RELEASES = sorted(path.parent.name for path in GOLDEN.glob("*/corpus.json"))
LATEST, EARLIEST = -1, -2


def logs_and_answers(release, isolation="read_uncommitted"):
    corpus = load_corpus(GOLDEN / release)
    logs = {str(log.key): log for log in find_partitions([Store(str(corpus.directory))])}
    for partition in corpus.partitions:
        if isolation in partition.answers:
            yield logs[partition.name], partition.answers[isolation]


@pytest.mark.parametrize("use_indexes", [True, False], ids=["by index", "by reading"])
@pytest.mark.parametrize("release", RELEASES)
def test_offsets_equal_the_brokers_response(release, use_indexes):
    asked = 0
    for log, answers in logs_and_answers(release):
        offsets = LogOffsets(log, Counter(), use_indexes=use_indexes)
        by_target = {answer.target: answer.offset for answer in answers}
        assert (offsets.start, offsets.end()) == (by_target[EARLIEST], by_target[LATEST])
        for target, offset in by_target.items():
            if target >= 0:
                asked += 1
                assert offsets.of_time(target) == offset, f"{log.key} at {target}"
    assert asked > 100


@pytest.mark.parametrize("release", RELEASES)
def test_the_last_stable_offset_equals_a_committed_readers(release):
    for log, answers in logs_and_answers(release, "read_committed"):
        told = next(answer.offset for answer in answers if answer.target == LATEST)
        assert last_stable_offset(log, Counter()) == told


def test_an_answer_by_index_reads_little_of_the_log():
    corpus = load_corpus(GOLDEN / "3.9.2")
    log = next(log for log in find_partitions([Store(str(corpus.directory / "create-time-0"))]))
    target = max(batch.max_timestamp for batch in file_batches(log.segments[-1].name))
    by_index, by_reading = Counter(), Counter()
    found = LogOffsets(log, by_index).of_time(target)
    assert found == LogOffsets(log, by_reading, use_indexes=False).of_time(target)
    assert by_index.log_bytes * 2 < by_reading.log_bytes
