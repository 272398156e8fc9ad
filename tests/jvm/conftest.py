"""Fixtures of tests with Kafka's classes.

Files to dump: sound, active, corrupt; every format of batch; names as a broker gives them.
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import google_crc32c
import pytest

from conformance.scratch import scratch_directory
from kidx import OffsetIndex, TimeIndex
from kidx.records import Codec, EndTransactionMarker, TimestampType, build_batch, end_transaction_marker
from kidx.records.record import ControlRecordType
from kidx.segment import LogSegment, SegmentConfig

GOLDEN = Path(__file__).parents[1] / "golden"
T = 1_700_000_000_000


@pytest.fixture
def scratch():
    """Return a scratch directory, in memory if possible."""
    with scratch_directory() as directory:
        yield directory


@pytest.fixture
def conformance(tmp_path, in_process):
    """Return a function that runs a command line in the test's directory, where it saves its traces, too."""
    return lambda *words: in_process(
        "conformance", *words, work=tmp_path, environment={"XDG_STATE_HOME": str(tmp_path)}
    )


@pytest.fixture(scope="module")
def specimens(tmp_path_factory) -> list[Path]:
    """Make directories of one segment or more each."""
    root = tmp_path_factory.mktemp("specimens")
    return [make(root / make.__name__) for make in (_recorded, _active, _texts, _legacy, _damaged, _cut, _small)]


def _recorded(target: Path) -> Path:
    """Make files of a broker: transactions, all codecs."""
    for partition in ("transactions-0", "create-time-0"):
        shutil.copytree(GOLDEN / "3.6.2" / partition, target, dirs_exist_ok=True)
    (target / "leader-epoch-checkpoint").unlink()
    return target


def _active(target: Path) -> Path:
    """Make an active segment: indexes with their preallocated tail."""
    target.mkdir()
    for path in (GOLDEN / "3.6.2" / "running" / "create-time-0").iterdir():
        shutil.copy(path, target)
        shutil.copy(GOLDEN / "3.6.2" / "create-time-0" / f"{path.name.partition('.')[0]}.log", target)
    return target


def _texts(target: Path) -> Path:
    """Make keys, values and headers that are hard to print; gaps; markers of every kind; both timestamp types."""
    target.mkdir()
    hard = [
        b"\xed\xa0\x80",
        b"\xed\xa0",
        b"\xf4\x90\x80\x80",
        b"\xe2\x82",
        b"\xff\x00",
        "ü€😀".encode(),
        b"",
        b"\xed\xa0x",
    ]
    batches = [
        build_batch([(T + i, key, b"v", (("h", b"1"), ("", None), ("h", b"2"))) for i, key in enumerate(hard)]),
        build_batch([(T, None, value) for value in hard], base_offset=8, codec=Codec.ZSTD),
        build_batch([(T, b"k", None), (-1, None, None)], base_offset=20, offsets=[20, 25], last_offset=30),
        build_batch(
            [(T, b"k", b"v")], base_offset=31, timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=T + 99
        ),
        build_batch([(T, b"k", b"v")], base_offset=32, delete_horizon_ms=T + 5, partition_leader_epoch=7),
        build_batch([(-1, b"k", b"v")], base_offset=33, producer_id=5, producer_epoch=1, base_sequence=2**31 - 1),
    ]
    offset = 34
    for control_type in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        marker = EndTransactionMarker(control_type, 3)
        batches.append(end_transaction_marker(marker, producer_id=5, producer_epoch=1, offset=offset, timestamp=T))
        offset += 1
    with LogSegment.open(target, 0, SegmentConfig(index_interval_bytes=100), dialect="3.6.2") as segment:
        for batch in batches:
            segment.append(batch)
    return target


def _legacy(target: Path) -> Path:
    """Make messages of v0 and v1."""
    target.mkdir()
    data = b"".join(
        build_batch([(T + i, b"k", b"v%d" % i) for i in range(3)], base_offset=offset, magic=magic, codec=codec)
        for offset, magic, codec in (
            (5, 0, Codec.NONE),
            (8, 1, Codec.NONE),
            (11, 0, Codec.GZIP),
            (14, 1, Codec.SNAPPY),
            (17, 1, Codec.LZ4),
        )
    )
    (target / "00000000000000000005.log").write_bytes(data)
    return target


def _damaged(target: Path) -> Path:
    """Make entries with wrong values, a log with a bad checksum and a torn tail."""
    target.mkdir()
    shutil.copytree(GOLDEN / "3.6.2" / "create-time-0", target, dirs_exist_ok=True)
    (target / "leader-epoch-checkpoint").unlink()
    index, time_index, log = (target / f"{0:020d}{suffix}" for suffix in (".index", ".timeindex", ".log"))
    entries = bytearray(index.read_bytes())
    for slot in (1, 5):
        struct.pack_into(">i", entries, 8 * slot, struct.unpack_from(">i", entries, 8 * slot)[0] + 1)
    entries[32:40] = entries[24:32]
    index.write_bytes(entries)
    stamps = bytearray(time_index.read_bytes())
    struct.pack_into(">q", stamps, 12, 1)
    struct.pack_into(">i", stamps, 32, struct.unpack_from(">i", stamps, 32)[0] + 1)
    time_index.write_bytes(stamps)
    batches = bytearray(log.read_bytes())
    batches[70] ^= 1
    log.write_bytes(batches + batches[:40])
    return target


def _cut(target: Path) -> Path:
    """Make a log shorter than its indexes claim."""
    target.mkdir()
    shutil.copytree(GOLDEN / "3.6.2" / "transactions-0", target, dirs_exist_ok=True)
    (target / "leader-epoch-checkpoint").unlink()
    log = target / "00000000000000000011.log"
    log.write_bytes(log.read_bytes()[:1000])
    return target


def _small(target: Path) -> Path:
    """Make empty files, preallocated ones without an entry, odd sizes, a snapshot, and a file of no known kind."""
    target.mkdir()
    (target / f"{3:020d}.log").touch()
    for base in (0, 1, 2):
        (target / f"{base:020d}.log").touch()
        for suffix in (".index", ".timeindex", ".txnindex"):
            (target / f"{base:020d}{suffix}").touch()
    (target / f"{1:020d}.index").write_bytes(bytes(80))
    (target / f"{1:020d}.timeindex").write_bytes(bytes(120))
    (target / f"{2:020d}.index").write_bytes(bytes(83))
    (target / f"{2:020d}.timeindex").write_bytes(bytes(121))
    with OffsetIndex(target / f"{3:020d}.index", 3, max_index_size=64) as index:
        index.append(9, 0)
    with TimeIndex(target / f"{3:020d}.timeindex", 3, max_index_size=64) as time_index:
        time_index.maybe_append(T, 9)
    (target / "notes.txt").write_text("not a file of Kafka")
    producers = b"".join(
        struct.pack(">qhiqiqiq", *producer)
        for producer in ((1, 0, 4, 9, 2, T, -1, 7), (2, 3, 1, 20, 4, T, 5, -1), (3, 0, -1, -1, 0, -1, 2, -1))
    )
    body = struct.pack(">i", 3) + producers
    snapshot = struct.pack(">hI", 1, google_crc32c.value(body)) + body
    (target / f"{21:020d}.snapshot").write_bytes(snapshot)
    (target / f"{22:020d}.snapshot").write_bytes(snapshot[:-1] + b"\x7f")
    return target
