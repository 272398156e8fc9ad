"""End-to-end tests of ``kidx verify``."""

import json
import os
import re
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from kidx.cli import main
from kidx.findings import COLUMNS, in_order, read_findings

GOLDEN = Path(__file__).parents[1] / "golden" / "3.9.2"
LOG, INDEX, TIME_INDEX = (f"{0:020d}{suffix}" for suffix in (".log", ".index", ".timeindex"))


@pytest.fixture
def kidx(capfd, monkeypatch):
    """Run a command line in this process; return its exit code and output."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["kidx", "verify", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capfd.readouterr()
        return SimpleNamespace(returncode=left.value.code, stdout=out, stderr=err)

    return run


@pytest.fixture
def disk(tmp_path):
    for name in ("create-time-0", "transactions-0"):
        shutil.copytree(GOLDEN / name, tmp_path / "disk" / name)
    return tmp_path / "disk"


def snapshot(directory):
    return {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in directory.rglob("*")}


def test_sound_files_exit_with_0_and_are_unchanged(disk, kidx):
    before = snapshot(disk)
    done = kidx(disk, "--kafka", "3.9.2", "--index-interval-bytes", 250)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(
        "EXACT: 25 files, 7 segments, 103 batches in 2 partitions\n"
        "start: not checked: server.properties (Kafka's defaults are assumed; --config FILE reads it), other brokers "
        "and controllers, free space and memory\n"
        "may I start the broker? yes\n"
    )
    assert snapshot(disk) == before


@pytest.mark.thorough
def test_findings_that_differ_only_in_their_places_are_one_line_and_a_count(disk, kidx):
    for number in range(1, 14):
        shutil.copytree(disk / "create-time-0", disk / f"create-time-{number}")
    for path in disk.glob("create-time-*/leader-epoch-checkpoint"):
        path.unlink()
    done = kidx(disk, "--kafka", "3.9.2", "-q")
    assert done.stdout.count("leader-epoch-checkpoint: it is missing") == 1
    last = disk / "create-time-9" / "leader-epoch-checkpoint"
    assert f"  and 13 more like it in 14 files, this one included, the last at {last}; --verbose" in done.stdout
    assert kidx(disk, "-v").stdout.count("leader-epoch-checkpoint: it is missing") == 14


def test_sound_files_are_not_called_sound_if_a_start_would_do_harm(disk, kidx):
    """Every file is right, and a start would delete a whole log."""
    (disk / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    (disk / "create-time-0" / "foo.log").touch()
    done = kidx(disk, "--kafka", "3.9.2", "--index-interval-bytes", 250, "--html", disk.parent / "page.html")
    assert done.returncode == 1
    assert "\nEXACT: " not in done.stdout
    assert "\nDO NOT START, though each single file is exact: 25 files" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("may I start the broker? no")
    page = (disk.parent / "page.html").read_text("utf-8")
    assert '<strong class="tag broken">✗ exact, do not start</strong>' in page


def test_json_is_one_document(disk, kidx):
    index = disk / "create-time-0" / INDEX
    data = bytearray(index.read_bytes())
    data[7] += 1
    index.write_bytes(data)
    done = kidx(disk, "--json")
    assert (done.returncode, done.stderr) == (1, "")
    document = json.loads(done.stdout)
    assert list(document)[:3] == ["verdict", "files", "findings"]
    assert document["verdict"] == "broken"
    assert {file["path"] for file in document["files"] if file["verdict"] == "broken"} == {str(index)}
    (finding,) = document["findings"]
    assert tuple(finding) == COLUMNS
    assert (finding["clause"], finding["slot"], finding["position"]) == ("SEG-5", 0, data[7] + data[6] * 256)


def test_findings_are_one_table_in_every_format(disk, tmp_path, kidx):
    os.truncate(disk / "create-time-0" / TIME_INDEX, 12)
    (disk / "create-time-0" / INDEX).unlink()
    tables = [tmp_path / "findings.parquet", tmp_path / "findings.ndjson"]
    done = kidx(disk, "--findings", tables[0], "--html", tmp_path / "page.html", "-q")
    assert done.returncode == 1
    assert done.stdout.count("\n") == 4
    assert kidx(disk / "create-time-0", "--findings", tables[1], "-v").returncode == 1
    found = [read_findings(table) for table in tables]
    assert found[0] == found[1] == in_order(found[0])
    assert [(finding.file, finding.verdict) for finding in found[0]] == [(INDEX, "missing"), (TIME_INDEX, "broken")]
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.count("<svg") >= 3
    assert all(finding.message in page for finding in found[0])


def test_the_page_has_the_overview_first_and_folds_the_consequences(disk, tmp_path, kidx):
    """Findings are by topic, the worst first; a corrupt log is reported once, with its indexes; one palette."""
    log = disk / "create-time-0" / LOG
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 255
    log.write_bytes(data)
    assert kidx(disk, "--html", tmp_path / "page.html", "-q").returncode == 1
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.index("<h2>Overview</h2>") < page.index("<h2>Findings</h2>")
    topics = re.findall(r'<details class="topic">\n<summary><b>([^<]*)</b>', page)
    assert topics[0] == "create-time"
    assert len(topics) == len({path.name for path in disk.glob("*-0")})
    assert page.count('<details class="part" open>') == 1
    assert page.count('<details class="topic" open>') == 0
    assert '<div class="banner broken" role="status">' in page
    assert page.count("--broken: #") == 2  # light and dark, and nothing else has a colour for it
    ends = [float(x) for x in re.findall(r'<circle class="broken" cx="([0-9.]+)"', page)]
    assert all(x <= 900 for x in ends)


BAD = {
    "nothing there": (lambda d: [d / "none"], "none: No such file or directory"),
    "no log directory": (lambda d: [(d / "empty").mkdir() or d / "empty"], "is not a log directory"),
    "no segment file": (lambda d: [(d / "a.txt").touch() or d / "a.txt"], "is not a segment file"),
    "an unknown release": (lambda d: [d, "--kafka", "1.0"], "unknown Kafka release '1.0'"),
    "an unknown engine": (lambda d: [d, "--engine", "flink"], "unknown engine 'flink'; choose from local, spark"),
    "an unknown format": (lambda d: [d, "--findings", d / "x.csv"], "choose from .parquet, .ndjson"),
    "nowhere to write": (lambda d: [d, "--html", d / "none" / "x.html"], "is not a directory"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(disk, name, kidx):
    make, said = BAD[name]
    before = snapshot(disk)
    arguments = make(disk)
    before |= snapshot(disk)
    done = kidx(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert snapshot(disk) == before


def test_one_file_that_cannot_be_read_does_not_stop_the_rest(disk, kidx):
    log = disk / "create-time-0" / LOG
    log.unlink()
    log.symlink_to(LOG)
    done = kidx(disk)
    assert done.returncode == 1
    assert f"unreadable {log}: cannot be read" in done.stdout
    assert "\nUNREADABLE, DO NOT START: 1 of " in done.stdout


def test_the_exit_code_is_2_if_nothing_could_be_read(tmp_path, kidx):
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / LOG).symlink_to(LOG)
    done = kidx(tmp_path)
    assert done.returncode == 2
    assert done.stderr == "kidx: no file could be read; the output lists the reasons\n"


def test_an_empty_segment_and_a_single_file_are_fine(tmp_path, kidx):
    (tmp_path / LOG).touch()
    done = kidx(tmp_path / LOG)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("EXACT: 1 file, 1 segment, 0 batches in 1 partition\n")


def test_singular_of_one_byte(disk, kidx):
    """In findings and in the next steps."""
    log, index = disk / "create-time-0" / LOG, disk / "transactions-0" / INDEX
    with log.open("ab") as file:
        file.write(b"\x01")
    index.unlink()
    done = kidx(disk, "--kafka", "3.9.2")
    assert f"{log}: position {log.stat().st_size - 1} " in done.stdout
    assert "the file ends with 1 byte, no whole batch" in done.stdout
    assert f"next: 1 index file of {disk / 'transactions-0'} can be rebuilt from its log\n" in done.stdout
    assert " 1 batches" not in done.stdout


def in_no_order(disk):
    (disk / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    (disk / "create-time-0" / "foo.log").touch()


WORST_FIRST = {
    "start": in_no_order,
    "loss": lambda disk: (disk / "replication-offset-checkpoint").write_text("0\n1\ncreate-time 0 9999\n"),
    "broken": lambda disk: os.truncate(disk / "create-time-0" / TIME_INDEX, 12),
    "sound-only": lambda disk: os.truncate(disk / "create-time-0" / INDEX, 0),
    "remark": lambda disk: (disk / "log-start-offset-checkpoint").write_text("0\n1\ncreate-time 0 3\n"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("gravity", [*WORST_FIRST, None])
def test_fail_on_chooses_the_least_grave_result_with_exit_code_1(disk, kidx, gravity):
    if gravity is not None:
        WORST_FIRST[gravity](disk)
    names = list(WORST_FIRST)
    codes = {name: kidx(disk, "--index-interval-bytes", 250, "-q", "--fail-on", name).returncode for name in names}
    place = len(names) if gravity is None else names.index(gravity)
    assert codes == {name: int(number >= place) for number, name in enumerate(names)}
    assert kidx(disk, "--index-interval-bytes", 250, "-q").returncode == codes["broken"]


def test_an_unknown_gravity_is_one_line(disk, kidx):
    done = kidx(disk, "--fail-on", "warning")
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown gravity 'warning'; choose from start, loss, broken, sound-only, remark" in done.stderr


@pytest.mark.parametrize(
    ("gravity", "said", "command"),
    [
        ("start", "would not start", "kidx verify {disk} --kafka 3.9.2"),
        ("loss", "1 partition lost records before", "kidx verify {disk} --kafka 3.9.2"),
        ("broken", "the start repairs 1 file", "kidx repair {disk}/create-time-0 --kafka 3.9.2 --dry-run"),
        ("sound-only", "may I start the broker? yes", ""),
    ],
)
def test_the_last_line_of_a_quiet_verification_stands_for_itself(disk, kidx, gravity, said, command):
    """It may be the subject of a mail: it refers to no other line, and has the command to type next."""
    WORST_FIRST[gravity](disk)
    last = kidx(disk, "--kafka", "3.9.2", "-q").stdout.splitlines()[-1]
    assert said in last
    assert "above" not in last
    assert last.partition("; next: ")[2] == command.format(disk=disk)


def test_commands_in_the_page_have_absolute_paths(disk, kidx, monkeypatch):
    WORST_FIRST["broken"](disk)
    monkeypatch.chdir(disk.parent)
    page = disk.parent / "page.html"
    kidx("disk", "--html", page)
    commands = re.findall(r"kidx repair [^<]*", page.read_text("utf-8"))
    assert commands
    assert all(str(disk) in command for command in commands)


SAMPLE = re.compile(r'(kidx_\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (-?\d+(?:\.\d+)?)')
"""Line with a value in Prometheus's text format; in a label, a backslash and a quote are escaped."""


def samples(text):
    """Parse Prometheus's text format, in which each metric has its help and its type before its values."""
    lines, found, typed = text.splitlines(), {}, set()
    for line in lines:
        if line.startswith("# TYPE "):
            typed.add(line.split()[2])
        elif not line.startswith("# HELP "):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert name in typed
            found[name, labels or ""] = float(value)
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("gravity", ["start", "loss", "broken", None])
def test_prometheus_and_nagios_say_the_same_as_the_exit_code(disk, kidx, gravity):
    if gravity is not None:
        WORST_FIRST[gravity](disk)
    plain = kidx(disk, "--kafka", "3.9.2", "-q")
    done = kidx(disk, "--kafka", "3.9.2", "--format", "prometheus")
    assert (done.returncode, done.stderr) == (plain.returncode, "")
    found = samples(done.stdout)
    assert (found["kidx_faulty_files", ""] > 0) == (gravity == "broken")
    assert found["kidx_start_safe", ""] == (gravity != "start")
    assert found["kidx_partitions_with_losses", ""] == (gravity == "loss")
    assert sum(value for (name, _), value in found.items() if name == "kidx_start_answer") == 1
    assert abs(found["kidx_look_timestamp_seconds", ""] - time.time()) < 60
    watched = kidx(disk, "--kafka", "3.9.2", "--format", "nagios")
    assert watched.returncode == plain.returncode
    (line,) = watched.stdout.splitlines()
    assert line.startswith(f"KIDX {('OK', 'WARNING')[plain.returncode]} - ")
    assert re.fullmatch(r"[^|]* \| files=\d+ faulty=\d+ records_at_risk=\d+ lost_partitions=\d+", line)


def test_a_look_that_fails_is_critical_for_nagios_and_no_text_for_prometheus(tmp_path, kidx):
    failed = kidx(tmp_path / "nothing", "--format", "nagios")
    assert failed.returncode == 2
    assert failed.stdout.startswith("KIDX CRITICAL - ")
    assert len(failed.stdout.splitlines()) == 1
    assert kidx(tmp_path / "nothing", "--format", "prometheus").stdout == ""


def test_a_hostile_name_forges_no_metric(disk, kidx):
    hostile = disk / "create-time-0" / '00000000000000000000.log.x"} 1 |\nkidx_start_safe 1'
    hostile.write_bytes(b"x")
    (disk / "create-time-0" / f"{0:020d}.log").write_bytes(b"\0" * 100)
    assert samples(kidx(disk, "--format", "prometheus").stdout)
    assert len(kidx(disk, "--format", "nagios").stdout.splitlines()) == 1
