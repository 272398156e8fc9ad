"""Offsets by time, found through index files as Spark's planning does: what real brokers answered."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from conformance.experiments.golden import load_corpus
from kidx.layout import OFFSET_INDEX
from kidx.records import file_batches
from kidx.storage import Store
from kidx.tables.indexes import PORTION, Counter, last_offset_entry, read_offset_index
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


@pytest.mark.parametrize(("kept", "is_right"), [(0, True), (1, False)])
def test_zeros_at_the_end_of_a_time_index_are_no_entries_and_other_wrong_ones_are_trusted(kept, is_right, tmp_path):
    """As the page on queries says. A broker trusts the zeros, too (SEG-37)."""
    shutil.copytree(load_corpus(GOLDEN / "3.9.2").directory / "create-time-0", tmp_path / "create-time-0")
    (log,) = find_partitions([Store(str(tmp_path))])
    batches = list(file_batches(log.segments[0].name))
    target = max(batch.max_timestamp for batch in batches)
    index = Path(log.segments[0].name).with_suffix(".timeindex")
    entries = index.read_bytes()
    index.write_bytes(entries[: 12 * kept] + (b"" if kept else bytes(len(entries))))
    (log,) = find_partitions([Store(str(tmp_path))])
    by_reading = LogOffsets(log, Counter(), use_indexes=False).of_time(target)
    assert by_reading <= batches[-1].last_offset
    assert (LogOffsets(log, Counter()).of_time(target) == by_reading) == is_right


@pytest.mark.parametrize("entries", [0, 1, 8191, 8192, 8193, 30_000])
def test_the_last_entry_of_a_preallocated_index_is_found_in_one_portion(tmp_path, entries):
    offsets, positions = (np.arange(1, entries + 1, dtype=">i4") * step for step in (20, 4096))
    partition = tmp_path / "t-0"
    partition.mkdir()
    (partition / f"{700:020d}.log").write_bytes(b"")
    with (partition / f"{700:020d}.index").open("wb") as index:
        index.write(np.stack([offsets, positions], 1).astype(">i4").tobytes())
        index.truncate((10 << 20) // OFFSET_INDEX.size * OFFSET_INDEX.size)
    (log,) = find_partitions([Store(str(tmp_path))])
    every, size = read_offset_index(log.segments[0], Counter()), 4096 * entries
    assert len(every.offsets) == entries
    for position in {0, 1, 4096, 4097, size // 2, size, size + 1}:
        for offset in {700, 720, 721, 700 + 10 * entries, 700 + 20 * entries, 701 + 20 * entries}:
            counter, there = Counter(), (every.positions < position) & (every.offsets < offset)
            wanted = [*zip(every.offsets[there].tolist(), every.positions[there].tolist(), strict=True), None]
            assert last_offset_entry(log.segments[0], counter, position, offset) == wanted[there.sum() - 1]
            assert counter.index_bytes <= PORTION + 8 * OFFSET_INDEX.size
