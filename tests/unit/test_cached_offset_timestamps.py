"""The cache of batches of an open log, which two searches share: it never contains outdated batches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kidx.errors import InvalidArgumentError
from kidx.records import Codec, InvalidRecordError, build_batch
from kidx.records.offset_timestamps import CachedIterable
from kidx.segment import FileRecords

OLD = build_batch([(100, None, b"a"), (200, None, b"b")])
NEW = build_batch([(150, None, b"c"), (300, None, b"d")])
LATER = build_batch([(400, None, b"e")], base_offset=2, codec=Codec.GZIP)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[FileRecords]:
    records = FileRecords(tmp_path / "0.log")
    yield records
    records.close_handlers()


def found(log: FileRecords, target: int) -> tuple[int, int] | None:
    answer = log.search_for_timestamp(target, 0, 0)
    return None if answer is None else (answer.timestamp, answer.offset)


def test_items_are_made_once_and_only_as_far_as_they_are_read() -> None:
    made: list[int] = []

    def make() -> Iterator[int]:
        for number in range(3):
            made.append(number)
            yield number

    items = CachedIterable(make())
    assert next(iter(items)) == 0
    assert made == [0]
    assert list(items) == list(items) == [0, 1, 2]
    assert made == [0, 1, 2]
    assert not items.failed


def test_an_item_that_cannot_be_made_is_not_the_end() -> None:
    def make() -> Iterator[int]:
        yield 1
        raise InvalidRecordError("damaged")

    items = CachedIterable(make())
    assert next(iter(items)) == 1
    with pytest.raises(InvalidRecordError):
        list(items)
    assert items.failed


def test_a_log_that_is_truncated_and_grows_again_drops_its_batches(log: FileRecords) -> None:
    assert len(OLD) == len(NEW)
    log.append(OLD)
    assert (found(log, 101), found(log, 201)) == ((200, 1), None)
    log.truncate_to(0)
    log.append(NEW)
    assert (found(log, 101), found(log, 201)) == ((150, 0), (300, 1))
    log.append(LATER)
    assert found(log, 301) == found(log, 301) == (400, 2)
    assert [batch.position for batch in log.batches(0, len(NEW))] == [0]


def test_a_corrupt_batch_raises_every_time(log: FileRecords) -> None:
    damaged = bytearray(OLD)
    damaged[57:61] = (9).to_bytes(4)  # the number of records
    log.append(bytes(damaged))
    for _ in range(3):
        assert found(log, 100) == (100, 0)
        with pytest.raises(InvalidRecordError):
            log.search_for_timestamp(100, 0, 5)


def test_a_log_that_others_write_is_read_each_time(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(OLD)
    log = FileRecords(path, file_already_exists=True, writable=False)
    assert found(log, 101) == (200, 1)
    with path.open("r+b") as file:
        os.pwrite(file.fileno(), NEW, 0)
    assert found(log, 101) == (150, 0)
    log.close_handlers()


def test_a_batch_with_negative_magic_is_read_again_by_every_search(log: FileRecords) -> None:
    """Its properties depend on whether its records have been read, and Kafka caches no batches."""
    damaged = bytearray(OLD)
    damaged[16] = 0x82
    log.append(bytes(damaged))
    for _ in range(2):
        batch = next(iter(log.batches()))
        with pytest.raises(InvalidArgumentError, match="Invalid magic used in LegacyRecord: -126"):
            _ = batch.max_timestamp
        with pytest.raises(InvalidRecordError):
            list(batch.offset_timestamps())


def test_a_found_result_is_cached_and_a_missing_one_is_not(log: FileRecords) -> None:
    log.append(OLD)
    assert (found(log, 101), found(log, 301)) == ((200, 1), None)
    log.append(LATER)
    assert (found(log, 101), found(log, 301)) == ((200, 1), (400, 2))


def test_a_closed_log_answers_nothing_that_it_has_answered_before(log: FileRecords) -> None:
    log.append(OLD)
    assert found(log, 101) == (200, 1)
    log.close_handlers()
    with pytest.raises(OSError, match="closed"):
        found(log, 101)
