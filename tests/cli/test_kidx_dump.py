"""``kidx dump`` as a user types it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "3.9.2" / "create-time-0"
LOG, INDEX, TIME_INDEX = (f"{0:020d}{suffix}" for suffix in (".log", ".index", ".timeindex"))


@pytest.fixture
def kidx(in_process, tmp_path):
    return lambda *arguments: in_process("kidx", "dump", *arguments, work=tmp_path)


@pytest.fixture
def partition(tmp_path):
    return Path(shutil.copytree(GOLDEN, tmp_path / "t-0"))


def test_sound_files_exit_with_0_and_stay_as_they_are(partition, kidx):
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in partition.iterdir()}
    done = kidx("--kafka", "3.9.2", "--files", ",".join(str(partition / name) for name in (LOG, INDEX, TIME_INDEX)))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:2] == [f"Dumping {partition / LOG}", "Log starting offset: 0"]
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in partition.iterdir()} == before


def test_a_mismatch_exits_with_1_and_is_told_as_kafka_tells_it(partition, kidx):
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


def test_json_is_one_object_a_line(partition, kidx):
    done = kidx("--format", "json", "--print-data-log", partition / LOG)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["kind"] for line in lines} == {"heading", "batch", "record"}
    assert sum(line["count"] for line in lines if line["kind"] == "batch") == sum(
        line["kind"] == "record" for line in lines
    )


def test_a_gap_that_only_kafkas_newest_dump_sees_is_told_and_is_no_mismatch(partition, kidx):
    later = next(path for path in sorted(partition.glob("*.log")) if path.name != LOG)
    done = kidx("--kafka", "4.3.1", "--deep-iteration", later)
    assert done.returncode == 0
    assert "  -1 is followed by " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no file was given"),
        (("--kafka", "3.9.99", "x.log"), "unknown Kafka release '3.9.99'; kidx knows 2.4.0"),
        (("--format", "xml", "x.log"), "there is no format 'xml'"),
        (("--key-decoder-class", "org.example.Avro", "x.log"), "there is no decoder 'org.example.Avro' without Java"),
        (("00000000000000000000.log",), "00000000000000000000.log is missing"),
        (("/",), "/ is not a file"),
    ],
)
def test_bad_input_is_one_line(arguments, message, kidx):
    done = kidx(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"kidx: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("missing", "dumped"), [(LOG, INDEX), (INDEX, TIME_INDEX)])
def test_a_file_beside_it_that_is_missing_is_not_made(partition, missing, dumped, kidx):
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
def test_a_release_that_is_not_known_has_a_hint(release, hint, tmp_path, in_process):
    told = in_process("kidx", "dump", __file__, "--kafka", release, work=tmp_path)
    assert told.returncode == 2
    assert told.stderr.startswith(f"kidx: unknown Kafka release {release!r}; {hint}")
    assert told.stderr.count("\n") == 1


def test_help_is_also_h(tmp_path, in_process):
    for words in ((), ("verify",), ("repair",)):
        assert in_process("kidx", *words, "-h", work=tmp_path) == in_process("kidx", *words, "--help", work=tmp_path)
    assert in_process("conformance", "run", "-h", work=tmp_path).returncode == 0
