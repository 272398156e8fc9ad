"""Notes about record times: a second query reads what it selects, and no note is used for another content."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter as Counts

import pytest
from lying_logs import KINDS, write_log

import kidx
from kidx.errors import ToolError
from kidx.records import build_batch
from kidx.tables import read as reading
from kidx.tables import record_times
from kidx.tables.indexes import Counter

START = 1_700_000_000_000


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """Return the offsets that a query returns, and the bytes of logs that it read."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("kidx.storage.SETTLED", -3600.0)
    counters = []
    monkeypatch.setattr(reading, "Counter", lambda: counters.append(Counter()) or counters[-1])

    def read(root, *times, **more):
        found = kidx.read(root, columns=["offset", "value"], times=times, **more).read_all()
        return found["offset"].to_pylist(), counters[-1].log_bytes

    return read


@pytest.fixture
def log(tmp_path):
    """Return a partition with 6,000 records in 3 MB, one second apart; headers state -1."""
    batches = [
        build_batch(
            [(START + 1000 * (base + n), b"k", b"v" * 500) for n in range(10)], base_offset=base, max_timestamp=-1
        )
        for base in range(0, 6000, 10)
    ]
    directory = tmp_path / "log" / "t-0"
    directory.mkdir(parents=True)
    (directory / "00000000000000000000.log").write_bytes(b"".join(batches))
    return directory


def all_of(size):
    """Accept the size of a log, and a little more: a batch at the end of a window is read with the next one, too."""
    return pytest.approx(size * 1.005, rel=0.01)


def seconds(first, end):
    return START + 1000 * first, START + 1000 * end


@pytest.mark.thorough
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("first", [0, 3000, 5950])
def test_a_second_query_reads_what_it_selects(counted, log, monkeypatch, first, compiled):
    monkeypatch.setattr("kidx.tables.split_reader.worth_compiling", lambda _: compiled)
    size = (log / "00000000000000000000.log").stat().st_size
    expected = list(range(first, first + 50))
    assert counted(log, *seconds(first, first + 50)) == (expected, all_of(size)), "nothing is fetched twice"
    offsets, read = counted(log, *seconds(first, first + 50))
    assert offsets == expected
    assert read <= 3 * (32 << 10)
    assert counted(log, *seconds(7000, 7001)) == ([], 0)
    assert counted(log, *seconds(0, 7000), offsets=(10, 20)) == (list(range(10, 20)), pytest.approx(16384, abs=20000))


def test_a_note_is_of_one_content(counted, log):
    path = log / "00000000000000000000.log"
    assert counted(log, *seconds(0, 5))[0] == [0, 1, 2, 3, 4]
    data = path.read_bytes()
    more = build_batch([(START, b"k", b"late")], base_offset=6000)
    path.write_bytes(data + more)
    assert counted(log, *seconds(0, 1))[0] == [0, 6000], "the log grew"
    other = path.with_name("other")
    times = [START + 1000 * n for n in (*range(9), 0)]
    first = build_batch([(time, b"k", b"v" * 500) for time in times], base_offset=0, max_timestamp=-1)
    padding = data.index((10).to_bytes(8, "big") + data[8:12]) - len(first)
    records = [(time, b"k", b"v" * (500 + padding * (n == 9))) for n, time in enumerate(times)]
    first = build_batch(records, base_offset=0, max_timestamp=-1)
    other.write_bytes(first + (data + more)[len(first) :])
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    assert other.stat().st_size == path.stat().st_size
    other.replace(path)
    assert counted(log, *seconds(0, 1))[0] == [0, 9, 6000], "another file of the same size and time"


@pytest.mark.parametrize("compiled", [False, True])
def test_every_time_and_offset_is_found(counted, tmp_path, monkeypatch, compiled):
    """Blocks of one batch, of every kind: each bound is a time or an offset of a record."""
    monkeypatch.setattr("kidx.tables.split_reader.worth_compiling", lambda _: compiled)
    monkeypatch.setattr(record_times, "_SMALLEST_BLOCK", 1)
    root = tmp_path / "kinds"
    lies = (None, -1, 0, 20, 1000)
    write_log(root / "t-0", [[(kind, [n, n + 3], lies[n % 5]) for n, kind in enumerate((*KINDS, *KINDS))]])
    everything = kidx.read(root, columns=["offset", "timestamp"]).read_all()
    rows = list(zip(everything["offset"].to_pylist(), everything["timestamp"].cast("int64").to_pylist(), strict=True))
    counted(root, 0, 1)
    for time in sorted({time for _, time in rows}):
        expected = [offset for offset, each in rows if each == time]
        assert counted(root, time // 1000, time // 1000 + 1)[0] == expected
        for offset in expected:
            assert counted(root, time // 1000, None, offsets=(offset, offset + 1))[0] == [offset]


@pytest.mark.parametrize("content", [b"", b"\0" * 52, b"\1\2\3\4" + b"\0" * 48])
def test_a_damaged_note_is_no_note(counted, log, tmp_path, content):
    counted(log, *seconds(10, 20))
    notes = [each for each in (tmp_path / "cache").rglob("*") if each.is_file()]
    for note in notes:
        note.write_bytes(content)
    assert notes
    assert counted(log, *seconds(10, 20))[0] == list(range(10, 20))


def test_without_a_cache_everything_is_read(counted, log, tmp_path):
    (tmp_path / "cache").write_text("a file")
    size = (log / "00000000000000000000.log").stat().st_size
    for _ in range(2):
        assert counted(log, *seconds(10, 20)) == (list(range(10, 20)), all_of(size))


def test_a_change_of_this_moment_makes_no_note(counted, log, monkeypatch):
    monkeypatch.setattr("kidx.storage.SETTLED", 3600.0)
    size = (log / "00000000000000000000.log").stat().st_size
    for _ in range(2):
        assert counted(log, *seconds(10, 20)) == (list(range(10, 20)), all_of(size))


def test_parts_are_noted_by_their_tasks(counted, log, monkeypatch):
    """A query whose tasks share a segment leaves one note for each of them; together they are of all of it."""
    from kidx import rebuild as rebuilding

    monkeypatch.setattr("kidx.tables.splits.SMALLEST_TASK", 1 << 20)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    path = log / "00000000000000000000.log"
    made = rebuilding.rebuild(path, log / "made", index_interval_bytes=4096)
    made.offset_index.replace(log / made.offset_index.name)
    (log / "made" / made.time_index.name).replace(log / made.time_index.name)
    assert counted(log, *seconds(3000, 3010))[0] == list(range(3000, 3010))
    offsets, read = counted(log, *seconds(3000, 3010))
    assert offsets == list(range(3000, 3010))
    assert read <= 2 * (32 << 10)
    first, second, *_ = sorted(record_times._directory_of(str(path)).iterdir(), key=lambda each: len(each.name))
    for gone, wanted in ((second, 3000), (first, 5)):
        gone.unlink()
        assert counted(log, *seconds(wanted, wanted + 1))[0] == [wanted], "the rest was not checked"


def test_a_corrupt_batch_is_reported_again(counted, log):
    path = log / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[len(data) // 2 + 100] ^= 1
    path.write_bytes(data)
    for _ in range(2):
        with pytest.raises(ToolError, match="at byte"):
            counted(log, *seconds(0, 5))


def test_aborted_records_remain_hidden(counted, tmp_path):
    root = tmp_path / "transactions"
    write_log(root / "t-0", [[("transaction", [5, 6], None), ("abort", [0], None), ("plain", [6], None)]])
    for _ in range(2):
        assert counted(root, 6, 7, isolation="read_committed")[0] == [3]
        assert counted(root, 6, 7)[0] == [1, 3]


class Requests(logging.Handler):
    """Requests for logs that a server received, by method."""

    def __init__(self):
        super().__init__()
        self.found = Counts()

    def emit(self, record):
        method, path = re.sub(r"\x1b\[\d+m", "", record.getMessage()).split('"')[1].split()[:2]
        self.found[method] += path.endswith(".log")


@pytest.fixture
def requests():
    logger, handler = logging.getLogger("werkzeug"), Requests()
    before = logger.level, logger.handlers, logger.propagate
    logger.setLevel(logging.INFO)
    logger.handlers, logger.propagate = [handler], False
    yield handler.found
    logger.setLevel(before[0])
    _, logger.handlers, logger.propagate = before


@pytest.mark.thorough
def test_an_object_store_gets_requests_for_what_is_selected(counted, requests):
    """Of 40 segments, 1 % of the time is in one: a listing is enough to skip the others."""
    moto, fsspec = pytest.importorskip("moto.server"), pytest.importorskip("fsspec")
    server = moto.ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = {"key": "key", "secret": "secret", "endpoint_url": f"http://{host}:{port}"}
        store = fsspec.filesystem("s3", **options)
        store.mkdir("bucket")
        size = 0
        for base in range(0, 4000, 100):
            batches = [
                build_batch(
                    [(START + 1000 * (first + n), b"k", b"v" * 4000) for n in range(5)],
                    base_offset=first,
                    max_timestamp=-1,
                )
                for first in range(base, base + 100, 5)
            ]
            data = b"".join(batches)
            size += len(data)
            store.pipe_file(f"bucket/log/t-0/{base:020d}.log", data)

        def read(*times):
            requests.clear()
            return counted("s3://bucket/log", *times, storage_options=options)

        assert read(*seconds(2030, 2070))[0] == list(range(2030, 2070))
        assert requests["GET"] == 40
        for times, offsets in (
            (seconds(2030, 2070), range(2030, 2070)),
            ((None, START + 40_000), range(40)),
            ((START + 3_960_000, None), range(3960, 4000)),
        ):
            found, number = read(*times)
            assert found == list(offsets)
            assert number <= 0.03 * size
            assert requests["GET"] == 1
            assert requests["HEAD"] <= 3
        # An object of the same size: the listing shows that it is another.
        path = f"bucket/log/t-0/{3900:020d}.log"
        store.pipe_file(path, build_batch([(START + 15_000, b"k", b"w")], base_offset=3900).ljust(len(data), b"\0"))
        assert read(*seconds(10, 20))[0] == [*range(10, 20), 3900]
    finally:
        server.stop()
