"""Faults under a right checksum: ``kidx verify --records``."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fleet_recipes import RECIPES, unpacked

from kidx import cli
from kidx.records import Codec, SimpleRecord, build_batch
from kidx.records.builder import write_checksum
from kidx.repair.next_steps import advice
from kidx.repair.plan import plan
from kidx.segment import LogSegment, SegmentConfig
from kidx.verify import verify_paths
from kidx.verify.verdicts import causes_of

GOLDEN = Path(__file__).parents[1] / "golden"
ATTRIBUTES, FIRST_RECORD = 22, 61


def batch(base, **options):
    return build_batch([SimpleRecord(1000 + base, b"k", b"v" * 40)] * 3, base_offset=base, **options)


def patched(data, at, byte):
    """Return the batch with another byte, and a matching checksum."""
    changed = bytearray(data)
    changed[at] = byte
    write_checksum(changed)
    return bytes(changed)


def offset_delta_at(data, number):
    """Return the position of a record's offset delta: after length, attributes and timestamp delta."""
    at = FIRST_RECORD
    for _ in range(number):
        at += 1 + (data[at] >> 1)
    return at + 3


@pytest.fixture
def log(tmp_path):
    """Write a partition of three batches, the second of them as given."""

    def write(second):
        directory = tmp_path / "t-0"
        directory.mkdir()
        with LogSegment.open(directory, 0, SegmentConfig(index_interval_bytes=100)) as segment:
            for data in (batch(0), second, batch(6)):
                segment.append(data)
        return directory

    return write


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (patched(batch(3), offset_delta_at(batch(3), 1), 0), "do not increase, from 3 to 5"),
        (patched(batch(3), offset_delta_at(batch(3), 2), 8), "have offsets 3 to 7, not 3 to 5"),
        (patched(batch(3), offset_delta_at(batch(3), 0), 1), "have offsets 2 to 5, not 3 to 5"),
        (patched(batch(3), ATTRIBUTES, Codec.GZIP), "its records cannot be read"),
        (patched(batch(3), ATTRIBUTES, Codec.ZSTD), "its records cannot be read"),
        (patched(batch(3), FIRST_RECORD, 0x7E), "its records cannot be read"),
        (patched(batch(3, codec=Codec.LZ4), FIRST_RECORD, 0), "its records cannot be read"),
    ],
)
def test_reading_all_records_finds_faults_under_a_right_checksum(log, second, said):
    directory = log(second)
    assert verify_paths([directory]).verdict == "exact"  # which reads batches alone
    result = verify_paths([directory], records=True)
    (fault,) = result.faults()
    assert (fault.clause, fault.verdict, fault.offset, result.batches) == ("RB-2", "broken", 3, 3)
    assert said in fault.message


@pytest.mark.parametrize("options", [{}, {"codec": Codec.ZSTD}, {"magic": 1, "codec": Codec.GZIP}])
@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (-1, "states the largest timestamp -1, and its records have 1003: a search for 0 to 1003 can miss its records"),
        (1002, "states the largest timestamp 1002, and its records have 1003: a search for 1003 to 1003 can miss"),
        (9000, "and its records have 1003: a search for 1004 to 9000 can end here without a result"),
    ],
)
def test_a_header_that_states_another_largest_timestamp_is_named(log, stated, said, options):
    directory = log(batch(3, max_timestamp=stated, **options))
    assert verify_paths([directory]).verdict == "exact"
    result = verify_paths([directory], records=True)
    (fault,) = result.faults()
    assert (fault.clause, fault.verdict, fault.offset) == ("RB-3", "broken", 3)
    assert said in fault.message
    text = "\n".join(advice(result, [directory]).lines())
    assert "nothing can correct the headers of batches, and replicas have the same ones" in text
    index = next(directory.glob("*.index"))
    index.unlink()
    result = verify_paths([directory], records=True)
    assert list(plan(result).repairs.values()) == [[".index"]], "which a start rebuilds from this log, too"
    assert [len(cause.followers) for cause in causes_of(result.faults())] == [0, 0]


def test_records_that_brokers_wrote_have_no_fault(tmp_path):
    for name in ("create-time-0", "log-append-time-0", "uncompressed-0", "transactions-0"):
        shutil.copytree(GOLDEN / "4.3.1" / name, tmp_path / name)
    for name in ("message-v1-0", "message-v1-stamped-0"):
        shutil.copytree(GOLDEN / "3.9.2" / name, tmp_path / name)
    for case in RECIPES:
        with unpacked(case, tmp_path):
            pass
    assert not verify_paths([tmp_path], records=True).faults()


def test_records_are_read_without_spark(log):
    directory = log(patched(batch(3), ATTRIBUTES, Codec.GZIP))
    without = "; ".join(f"sys.modules[{name!r}] = None" for name in ("pyspark", "py4j", "pandas", "pyarrow", "numba"))
    code = f"import sys; {without}; sys.argv = ['kidx', 'verify', sys.argv[1], '--records']"
    done = subprocess.run(  # noqa: PLW1510 -- its exit code is checked
        [sys.executable, "-c", f"{code}; from kidx.cli import main; main()", directory], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "its records cannot be read" in done.stdout


def test_the_command_reads_records_on_request(log, capfd, monkeypatch):
    directory = log(patched(batch(3), ATTRIBUTES, Codec.GZIP))
    for options, code in ([], 0), (["--records"], 1), (["--records", "--engine", "spark"], 2):
        monkeypatch.setattr("sys.argv", ["kidx", "verify", str(directory), *options])
        with pytest.raises(SystemExit) as left:
            cli.main()
        assert left.value.code == code
    assert "--records requires --engine local" in capfd.readouterr().err
