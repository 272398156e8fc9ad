"""``kidx.lookup`` reads from the recorded files what the broker that wrote them answered, and explains the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kidx.errors import KidxError
from kidx.log.errors import UnsupportedTargetError
from kidx.lookup import ReadOnlyLog, explain_offset, explain_timestamp

CORPORA = sorted(path.parent for path in Path(__file__).parent.glob("*/corpus.json"))


@pytest.fixture(params=CORPORA, ids=lambda path: path.name)
def corpus(request):
    return json.loads((request.param / "corpus.json").read_text()), request.param


def answer(log: ReadOnlyLog, target: int) -> list:
    """Return a result in the form of the corpora: target, offset, timestamp, epoch."""
    try:
        found = log.fetch_offset_by_timestamp(target)
    except UnsupportedTargetError:
        return [target, "UNSUPPORTED_VERSION"]
    if found is None or found.offset < 0:
        return [target, None, None, None]
    return [target, found.offset, found.timestamp, found.leader_epoch]


def state(directory: Path) -> dict:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()}


def test_results_equal_the_brokers_and_the_files_are_unchanged(corpus):
    document, root = corpus
    compared = 0
    for partition in document["partitions"]:
        directory = root / partition["name"]
        before = state(directory)
        with ReadOnlyLog(directory, document["release"]) as log:
            for expected in partition["answers"]["read_uncommitted"]:
                # With the log's end a broker tells its own epoch as leader, which is in no file without v2 batches.
                columns = 3 if expected[0] == -1 else 4
                assert answer(log, expected[0])[:columns] == expected[:columns], partition["name"]
                compared += 1
                if expected[0] >= 0:
                    assert explain_timestamp(log, expected[0]).answer == log.fetch_offset_by_timestamp(expected[0])
        assert state(directory) == before
    assert compared > 100


def test_an_active_segment_with_preallocated_indexes_gives_the_same_results(corpus, tmp_path):
    document, root = corpus
    for partition in document["partitions"]:
        directory = Path(shutil.copytree(root / partition["name"], tmp_path / partition["name"]))
        shutil.copytree(root / "running" / partition["name"], directory, dirs_exist_ok=True)
        with ReadOnlyLog(directory, document["release"]) as log:
            for expected in partition["answers"]["read_uncommitted"]:
                if expected[0] >= 0:
                    assert answer(log, expected[0]) == expected[:4]


@pytest.mark.thorough
def test_a_preallocated_log_gives_the_same_results(corpus, tmp_path):
    """Zeros follow the batches of the last segment while a broker is writing to it, and after a kill."""
    document, root = corpus
    for partition in document["partitions"]:
        directory = Path(shutil.copytree(root / partition["name"], tmp_path / partition["name"]))
        log = max(directory.glob("*.log"))
        with log.open("ab") as file:
            file.truncate(file.tell() + 100_000)
        with ReadOnlyLog(directory, document["release"]) as opened:
            for expected in partition["answers"]["read_uncommitted"]:
                columns = 3 if expected[0] == -1 else 4
                assert answer(opened, expected[0])[:columns] == expected[:columns], partition["name"]
                if expected[0] >= 0:
                    assert explain_timestamp(opened, expected[0]).answer == opened.fetch_offset_by_timestamp(
                        expected[0]
                    )


def test_a_damaged_batch_is_not_taken_for_reserved_space(tmp_path):
    directory = Path(shutil.copytree(CORPORA[-1] / "create-time-0", tmp_path / "create-time-0"))
    log = max(directory.glob("*.log"))
    with log.open("ab") as file:
        file.write(b"\1" * 8 + bytes(1000))
    with ReadOnlyLog(directory, CORPORA[-1].name) as opened, pytest.raises(KidxError, match="record size"):
        opened.fetch_offset_by_timestamp(-1)


def test_missing_indexes_are_rebuilt_elsewhere_and_give_the_same_results(corpus, tmp_path):
    document, root = corpus
    partition = next(partition for partition in document["partitions"] if partition["name"] == "create-time-0")
    directory = Path(shutil.copytree(root / partition["name"], tmp_path / partition["name"]))
    for path in [*directory.glob("*.index"), *directory.glob("*.timeindex")]:
        path.unlink()
    left = set(directory.iterdir())
    with ReadOnlyLog(directory, document["release"]) as log:
        for expected in partition["answers"]["read_uncommitted"]:
            if expected[0] >= 0:
                assert answer(log, expected[0]) == expected[:4]
    assert set(directory.iterdir()) == left


def test_every_offset_is_found_and_the_index_spares_bytes(corpus):
    document, root = corpus
    with ReadOnlyLog(root / "create-time-0", document["release"]) as log:
        for offset in range(log.start_offset, log.end_offset):
            told = explain_offset(log, offset)
            assert told.answer is not None
            assert told.answer.offset >= offset
        assert explain_offset(log, log.end_offset).answer is None
        last = explain_offset(log, log.end_offset - 1)
        assert sum(batch.opened for batch in last.batches) == 1
        assert last.bytes_without_index == sum(path.stat().st_size for path in (root / "create-time-0").glob("*.log"))
