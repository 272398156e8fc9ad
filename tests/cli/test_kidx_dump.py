"""End-to-end tests of ``kidx dump``."""

from __future__ import annotations

import json
import re
import shutil
import struct
from pathlib import Path

import pytest

from kidx.layout import RECORD_BATCH
from kidx.records import build_batch
from kidx.records.builder import write_checksum

GOLDEN = Path(__file__).parents[1] / "golden" / "3.9.2" / "create-time-0"
LOG, INDEX, TIME_INDEX = (f"{0:020d}{suffix}" for suffix in (".log", ".index", ".timeindex"))


@pytest.fixture
def kidx(in_process, tmp_path):
    return lambda *arguments: in_process("kidx", "dump", *arguments, work=tmp_path)


@pytest.fixture
def partition(tmp_path):
    return Path(shutil.copytree(GOLDEN, tmp_path / "t-0"))


def test_sound_files_exit_with_0_and_are_unchanged(partition, kidx):
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in partition.iterdir()}
    done = kidx("--kafka", "3.9.2", "--files", ",".join(str(partition / name) for name in (LOG, INDEX, TIME_INDEX)))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:2] == [f"Dumping {partition / LOG}", "Log starting offset: 0"]
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in partition.iterdir()} == before


def test_a_mismatch_exits_with_1_and_the_text_of_kafka(partition, kidx):
    entries = bytearray((partition / INDEX).read_bytes())
    entries[3] += 1
    (partition / INDEX).write_bytes(entries)
    done = kidx("--kafka", "3.9.2", partition / INDEX)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == f"Mismatches in :{partition / INDEX}"
    quiet = kidx("--kafka", "3.9.2", "-q", partition / INDEX)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (1, "", done.stderr)
    lines = [json.loads(line) for line in kidx("--json", partition / INDEX).stdout.splitlines()]
    assert lines[-1]["kind"] == "index_mismatch"
    assert lines[-1]["found"] == lines[-1]["expected"] + 1


def test_an_invalid_batch_exits_with_1_and_has_the_line_of_kafka(partition, kidx):
    """Kafka's tool prints ``isvalid: false`` and ends with 0."""
    content = bytearray((partition / LOG).read_bytes())
    content[100] ^= 1
    (partition / LOG).write_bytes(content)
    done = kidx("--kafka", "3.9.2", partition / LOG)
    assert done.returncode == 1
    assert done.stdout.count("isvalid: false") == 1
    assert done.stderr == f"kidx: {partition / LOG}: 1 batch with isvalid: false, from position 0\n"
    quiet = kidx("--kafka", "3.9.2", "-q", partition / LOG)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (1, "", done.stderr)
    assert kidx("--json", partition / LOG).returncode == 1


def test_json_is_one_object_per_line(partition, kidx):
    done = kidx("--format", "json", "--print-data-log", partition / LOG)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["kind"] for line in lines} == {"heading", "batch", "record"}
    assert sum(line["count"] for line in lines if line["kind"] == "batch") == sum(
        line["kind"] == "record" for line in lines
    )


def test_a_gap_that_only_kafkas_newest_dump_reports_is_no_mismatch(partition, kidx):
    later = next(path for path in sorted(partition.glob("*.log")) if path.name != LOG)
    done = kidx("--kafka", "4.3.1", "--deep-iteration", later)
    assert done.returncode == 0
    assert "  -1 is followed by " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "missing file; use kidx dump FILE"),
        (("--kafka", "3.9.99", "x.log"), "unknown Kafka release '3.9.99'; kidx knows 2.4.0"),
        (("--format", "xml", "x.log"), "unknown format 'xml'; choose from text, json"),
        (("--key-decoder-class", "org.example.Avro", "x.log"), "unknown decoder 'org.example.Avro'; choose from"),
        (("00000000000000000000.log",), "00000000000000000000.log is missing"),
        (("/",), "/ is neither a file nor"),
    ],
)
def test_bad_input_is_one_line(arguments, message, kidx):
    done = kidx(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"kidx: {message}")
    assert done.stderr.count("\n") == 1


INTERNAL = GOLDEN.parents[1] / "internal"


@pytest.mark.parametrize(
    ("decoder", "log", "release", "shown"),
    [
        ("offsets", "4.3.1/__consumer_offsets-0", "4.3.1", '| key: {"type":"2","data":{"group":"static"}} payload: '),
        ("offsets", "2.8.2/__consumer_offsets-0", "2.8.2", "| key: offset_commit::group=plain,partition=orders-0 pa"),
        (
            "transaction-log",
            "3.9.2/__transaction_state-0",
            "3.9.2",
            "producerId:0,producerEpoch:1,state=CompleteCommit,",
        ),
        ("cluster-metadata", "3.9.2/__cluster_metadata-0", "3.9.2", ' payload: {"type":"TOPIC_RECORD","version":0,"da'),
        ("remote-log-metadata", "made/__remote_log_metadata-0", "4.3.1", "state=COPY_SEGMENT_FINISHED, txnIdxEmpty=f"),
    ],
)
def test_internal_topics_are_decoded(decoder, log, release, shown, kidx):
    """As kafka-dump-log has it; the tests with Java compare every line."""
    path = INTERNAL / log / LOG
    done = kidx("--kafka", release, f"--{decoder}-decoder", "--skip-record-metadata", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert shown in done.stdout
    lines = [
        json.loads(line)
        for line in kidx("--kafka", release, f"--{decoder}-decoder", "--json", path).stdout.splitlines()
    ]
    assert all("payload" in line for line in lines if line["kind"] == "record" and "controlType" not in line)


def test_the_fields_of_a_control_record_are_shown(kidx):
    path = INTERNAL / "made" / "__cluster_metadata-0" / LOG
    records = [json.loads(line) for line in kidx("--deep-iteration", "--json", path).stdout.splitlines()][-1::-2][:3]
    told = {record["controlType"]: record["control"] for record in records}
    assert told["KRAFT_VERSION(5)"] == {"version": 0, "kRaftVersion": 1}
    assert told["KRAFT_VOTERS(6)"]["voters"][0]["endpoints"] == [{"name": "CONTROLLER", "host": 'h"ü', "port": 59092}]


def test_gaps_of_a_compacted_log_are_reported_and_are_no_mismatch(tmp_path, kidx):
    """As by Kafka's tool; records in the wrong order are one."""
    log = tmp_path / LOG
    log.write_bytes(b"".join(build_batch([(1, b"k", b"v")], base_offset=offset) for offset in (0, 3, 9)))
    done = kidx("--kafka", "3.9.2", "--deep-iteration", log)
    assert done.returncode == 0
    assert done.stderr == f"Non-consecutive offsets in {log}\n  3 is followed by 9\n  0 is followed by 3\n"
    log.write_bytes(b"".join(build_batch([(1, b"k", b"v")], base_offset=offset) for offset in (3, 0)))
    assert kidx("--kafka", "3.9.2", "--deep-iteration", log).returncode == 1


@pytest.mark.parametrize(("missing", "dumped"), [(LOG, INDEX), (INDEX, TIME_INDEX)])
def test_a_missing_file_of_the_segment_is_not_created(partition, missing, dumped, kidx):
    (partition / missing).unlink()
    done = kidx(partition / dumped)
    assert done.returncode == 2
    assert f"{missing} is missing" in done.stderr
    assert not (partition / missing).exists()


def test_a_corrupt_log_ends_the_dump_with_1(partition, kidx):
    data = bytearray((partition / LOG).read_bytes())
    data[8:12] = bytes(4)
    (partition / LOG).write_bytes(data)
    done = kidx("--kafka", "3.9.2", partition / LOG)
    assert done.returncode == 1
    assert "Found record size 0 smaller than minimum record overhead" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_directory_stands_for_its_files(tmp_path, in_process):
    """Of a partition, or of all partitions of a log directory."""
    disk = Path(__file__).parents[1] / "golden" / "3.9.2"
    files = sorted(disk.glob("create-time-0/*.*"))
    by_name = in_process("kidx", "dump", *files, "--kafka", "3.9.2", work=tmp_path)
    by_directory = in_process("kidx", "dump", disk / "create-time-0", "--kafka", "3.9.2", work=tmp_path)
    assert (by_directory.returncode, by_directory.stdout) == (by_name.returncode, by_name.stdout)
    assert by_directory.stdout.count("Dumping ") == len(files) > 5
    whole = in_process("kidx", "dump", disk, "--kafka", "3.9.2", work=tmp_path)
    assert whole.stdout.count("Dumping ") == len([*disk.glob("*-0/*.*")])
    none = in_process("kidx", "dump", tmp_path, work=tmp_path)
    assert (none.returncode, none.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("release", "hint"),
    [
        ("3.9", "did you mean 3.9.2 or 3.9.1 or 3.9.0?"),
        ("4.3.9", "did you mean 4.3.1 or "),
        ("0.8", "kidx knows 2.4.0 to 4.4.0"),
    ],
)
def test_an_unknown_release_has_a_hint(release, hint, tmp_path, in_process):
    told = in_process("kidx", "dump", __file__, "--kafka", release, work=tmp_path)
    assert told.returncode == 2
    assert told.stderr.startswith(f"kidx: unknown Kafka release {release!r}; {hint}")
    assert told.stderr.count("\n") == 1


def test_help_is_also_h(tmp_path, in_process):
    for words in ((), ("verify",), ("repair",)):
        assert in_process("kidx", *words, "-h", work=tmp_path) == in_process("kidx", *words, "--help", work=tmp_path)
    assert in_process("conformance", "run", "-h", work=tmp_path).returncode == 0


def records_of(lines):
    return [int(re.search(r"offset: (\d+)", line)[1]) for line in lines if line.startswith("| ")]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--offsets", "70:75"], [70, 71, 72, 73, 74]),
        (["--offsets", "156:"], [156, 157]),
        (["--offsets", ":2", "--limit", "1"], [0]),
        (["--times", "1700000000560:1700000000570"], [53, 72]),
        (["--times", "2023-11-14T22:13:20.560:2023-11-14T22:13:20.570"], [53, 72]),
    ],
)
def test_a_part_is_printed_as_in_the_whole_dump(options, expected, kidx):
    whole = kidx("--kafka", "3.9.2", "--print-data-log", GOLDEN).stdout.splitlines()
    done = kidx("--kafka", "3.9.2", "--print-data-log", *options, GOLDEN)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert records_of(lines) == [each for each in records_of(whole) if each in expected]
    assert set(expected) == set(records_of(lines))
    assert set(lines) <= set(whole)
    batches = kidx("--kafka", "3.9.2", *options, GOLDEN).stdout.splitlines()
    assert [line for line in batches if line.startswith("baseOffset")] == [
        line for line in lines if line.startswith("baseOffset")
    ]


def test_a_part_names_only_the_logs_that_have_some_of_it(kidx, tmp_path):
    for base in (0, 4, 8):
        (tmp_path / f"{base:020d}.log").write_bytes(build_batch([(1, None, b"x")] * 4, base_offset=base))
    for options in ([], ["--deep-iteration"]):
        done = kidx("--kafka", "4.3.1", "--offsets", "4:6", *options, tmp_path)
        assert [line for line in done.stdout.splitlines() if line.startswith(("Dumping", "Log "))] == [
            f"Dumping {tmp_path / f'{4:020d}.log'}",
            "Log starting offset: 4",
        ]
        assert (done.returncode, done.stderr) == (0, "")  # 4.3.1 itself says that -1 is followed by 4


@pytest.mark.parametrize(("option", "decoder"), [("--group", "--offsets-decoder")])
def test_records_about_one_name_of_an_internal_topic(option, decoder, kidx, tmp_path):
    log = tmp_path / LOG
    keys = [
        struct.pack(">hh", 1, len(name)) + name + struct.pack(">hci", 1, b"t", 0) for name in (b"g", b"other", b"g")
    ]
    value = struct.pack(">hqih", 3, 7, -1, 0) + struct.pack(">q", 1)
    log.write_bytes(build_batch([(1, key, value) for key in keys]))
    done = kidx("--kafka", "3.9.2", option, "g", log)
    whole = kidx("--kafka", "3.9.2", decoder, log).stdout.splitlines()
    assert records_of(done.stdout.splitlines()) == [0, 2]
    assert set(done.stdout.splitlines()) <= set(whole)


@pytest.mark.parametrize("field", ["max_timestamp", "last_offset_delta"])
def test_a_part_has_the_records_that_a_header_denies(field, kidx, tmp_path):
    content = bytearray(build_batch([(1000, None, b"a"), (2000, None, b"b"), (3000, None, b"c")]))
    RECORD_BATCH.set(content, field, 0, 0)
    write_checksum(content, 0, len(content))
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(content)
    for option in (["--times", "2000:3000"], ["--offsets", "1:2"]):
        assert records_of(kidx("--kafka", "3.9.2", "--print-data-log", *option, log).stdout.splitlines()) == [1]


def test_a_part_that_cannot_be_understood_is_one_line(kidx):
    for options in (
        ["--offsets", "7"],
        ["--offsets", "9:7"],
        ["--times", "a:b"],
        ["--group", "g", "--transactional-id", "t"],
    ):
        done = kidx(*options, GOLDEN)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
