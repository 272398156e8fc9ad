"""``kidx`` on directories that hold anything: FIFOs, sparse files of gigabytes, bytes that are no text, forgery."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from thorough_params import thorough_except

from kidx.findings import read_findings
from kidx.records import SimpleRecord, build_batch

GOLDEN = Path(__file__).parents[1] / "golden" / "4.4.0"
LOG, INDEX, TIME_INDEX, TXN_INDEX = (f"{0:020d}{suffix}" for suffix in (".log", ".index", ".timeindex", ".txnindex"))
EPOCHS, STARTS, POINTS = (
    "leader-epoch-checkpoint",
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
)
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from kidx.cli import main
main()
"""
SEVERAL = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from kidx.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as end:
        print("exit code", end.code)
"""
EVIL = "a\n\x1b[2J\x1b[31mEXACT: 7 files\u202e\x9b-0"


def kidx(*arguments, program=LIMITED, check_lines=True):
    done = subprocess.run(
        [sys.executable, "-c", program, *map(os.fsencode, map(str, arguments))],
        capture_output=True,
        timeout=400,
        check=False,
    )
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()  # UTF-8, or this fails
    assert "Traceback" not in done.stderr
    if check_lines:
        for text in (done.stdout, done.stderr):
            assert all(line.isprintable() for line in text.split("\n")), text
    return done


@pytest.fixture
def data(tmp_path):
    """Make a log directory of two partitions, one of which remains unchanged."""
    for name in ("create-time-0", "transactions-0"):
        shutil.copytree(GOLDEN / name, tmp_path / "data" / name)
    return tmp_path / "data"


def make_fifo(path):
    os.mkfifo(path)


def make_socket(path):
    here = os.getcwd()  # noqa: PTH109 -- a socket's path is short
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def make_device(path):
    path.symlink_to("/dev/zero")


def make_sparse(path):
    with path.open("wb") as file:
        file.truncate(3 << 30)


def make_no_text(path):
    path.write_bytes(b"0\n1\n\xff 0\n")


KINDS = [make_fifo, make_socket, make_device, make_sparse]
NAMES = [LOG, INDEX, TIME_INDEX, TXN_INDEX, f"{0:020d}.snapshot", EPOCHS, f"../{STARTS}", f"../{POINTS}"]


@pytest.mark.parametrize("make", thorough_except([make_fifo, make_no_text], [*KINDS, make_no_text]))
def test_one_file_is_one_finding(data, make):
    """Neither hangs, nor runs out of memory, nor hides what is to be said of the other partitions."""
    places = []
    for number, name in enumerate(NAMES):
        disk = data if number == 0 else data.parent / f"disk{number}"
        if number:
            shutil.copytree(GOLDEN / "create-time-0", disk / "create-time-0")
        path = Path(os.path.normpath(disk / "create-time-0" / name))
        path.unlink(missing_ok=True)
        make(path)
        places.append((disk / "create-time-0", path))
    done = kidx("verify", *(place.parent for place, _ in places), "--json", "-j", 1)
    assert done.returncode == 1
    result = json.loads(done.stdout)
    sound = [file for file in result["files"] if "/transactions-0/" in file["path"]]
    assert len(sound) > 3
    assert {file["verdict"] for file in sound} <= {"exact", "sound"}
    for _, path in places:
        about = [finding for finding in result["findings"] if finding["path"] == str(path)]
        if path.suffix != ".snapshot":  # which nothing is verified by
            assert about, path
        if path.name.endswith("checkpoint"):
            assert len(about) == 1
    if make is make_sparse:  # ninety million transactions of zeros are read and dumped as such, which takes its time
        places = [(place, path) for place, path in places if path.name != TXN_INDEX]
    commands = [["lookup", str(place), "--offset", "1"] for place, _ in places]
    commands += [["dump", str(path)] for _, path in places]
    done = kidx(json.dumps(commands), program=SEVERAL)
    codes = [line for line in done.stdout.splitlines() if line.startswith("exit code ")]
    assert len(codes) == len(commands)
    assert set(codes) <= {"exit code 0", "exit code 1", "exit code 2"}


@pytest.mark.thorough
def test_a_sparse_index_of_gigabytes_is_broken(data):
    """Only as many entries are read as the log can have, and a few more."""
    for name in (INDEX, TIME_INDEX, TXN_INDEX):
        with (data / "create-time-0" / name).open("ab") as file:
            file.truncate(3 << 30)
            file.seek(0, 2)
            file.write(b"\1" * 340)
    done = kidx("verify", data, "--json", "-j", 1)
    files = [file for file in json.loads(done.stdout)["files"] if "create-time-0" in file["path"]]
    verdicts = {Path(file["path"]).name: file["verdict"] for file in files}
    assert [verdicts[name] for name in (INDEX, TIME_INDEX, TXN_INDEX)] == ["broken"] * 3
    assert done.returncode == 1


@pytest.mark.parametrize("command", ["verify", "lookup", "repair"])
def test_a_log_of_a_terabyte_is_rejected_by_its_size(data, command, in_process):
    """Reading its zeros would take hours."""
    log = data / "create-time-0" / LOG
    os.truncate(log, 1 << 40)
    options = {"verify": ["-q"], "lookup": ["--offset", 1], "repair": ["--dry-run", "-q", "--kafka", "4.4.0"]}
    done = in_process("kidx", command, log if command == "lookup" else log.parent, *options[command], work=data)
    assert done.returncode == 1
    told = (done.stdout + done.stderr).replace(",", "")
    assert "1099511627776" in told
    assert "2147483647" in told


@pytest.mark.thorough
@pytest.mark.parametrize(("make", "said"), [(make_no_text, "not UTF-8"), (make_fifo, "Is a FIFO")])
def test_a_checkpoint_that_is_no_text_is_one_line_with_its_name(data, make, said):
    """Of a lookup, which needs it."""
    for name in (f"create-time-0/{EPOCHS}", STARTS, POINTS):
        (data / name).unlink(missing_ok=True)
        make(data / name)
        done = kidx("lookup", data / "create-time-0", "--offset", 1)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert said in done.stderr
        assert str(data / name) in done.stderr
        (data / name).unlink()
    assert kidx("lookup", data / "create-time-0", "--offset", 1).returncode == 0


@pytest.fixture
def named(tmp_path):
    """Make broken partitions whose names are no text, and forge output."""
    for name in (EVIL, os.fsdecode(b"top\xffic-0")):
        directory = shutil.copytree(GOLDEN / "create-time-0", tmp_path / "data" / name)
        (directory / INDEX).write_bytes(b"\1" * 16)
    return tmp_path / "data"


@pytest.mark.thorough
def test_names_are_shown_and_written_escaped(named, tmp_path):
    """They are escaped on the terminal, in JSON, in tables and on the page; no other file is created."""
    out = tmp_path / "out"
    out.mkdir()
    targets = ["--html", out / "page.html", "--findings", out / "findings.ndjson"]
    done = kidx("verify", named, "-v", *targets)
    assert done.returncode == 1
    assert r"a\n\x1b[2J\x1b[31mEXACT: 7 files\u202e\x9b-0" in done.stdout
    assert r"top\xffic-0" in done.stdout
    page = (out / "page.html").read_bytes().decode()
    assert all(line.isprintable() for line in page.split("\n"))
    assert r"top\xffic-0" in page
    paths = {finding.path for finding in read_findings(out / "findings.ndjson")}
    assert any(EVIL in path for path in paths), "a table has exactly this name"
    assert any(r"top\xffic-0" in path for path in paths)
    assert sorted(path.name for path in out.iterdir()) == ["findings.ndjson", "page.html"]
    result = json.loads(kidx("verify", named, "--json").stdout)
    assert {finding["path"] for finding in result["findings"]} == paths


@pytest.mark.thorough
def test_tables_of_names_that_are_no_text(named, tmp_path):
    """Arrow and Parquet hold UTF-8 only."""
    pytest.importorskip("pyarrow")
    path = tmp_path / "findings.parquet"
    assert kidx("verify", named, "--findings", path).returncode == 1
    assert any(r"top\xffic-0" in finding.path for finding in read_findings(path))


@pytest.mark.thorough
@pytest.mark.parametrize("name", [EVIL, os.fsdecode(b"top\xffic-0")])
def test_every_command_shows_names_escaped(named, tmp_path, name):
    directory = named / name
    commands = (
        ("lookup", directory, "--timestamp", 0, "--explain"),
        ("lookup", directory, "--timestamp", 0, "--json", "--explain"),
        ("lookup", directory / "none", "--offset", 1),
        ("dump", directory / LOG, directory / INDEX),
        ("dump", "--json", directory / LOG, directory / INDEX),
        ("rebuild", directory / LOG, "--out", tmp_path / "new", "--kafka", "4.4.0"),
        ("rebuild", directory, "--out", tmp_path / "newer", "--json", "--kafka", "4.4.0"),
        ("rebuild", directory / "none.log", "--out", tmp_path / "new", "--kafka", "4.4.0"),
        ("verify", directory / "none"),
    )
    done = kidx(json.dumps([[str(each) for each in command] for command in commands]), program=SEVERAL)
    assert done.stdout.count("exit code ") == len(commands)
    assert "exit code None" not in done.stdout


def test_a_dump_for_a_program_has_the_very_bytes_of_values(tmp_path):
    """As kafka-dump-log; a terminal gets them escaped."""
    log = tmp_path / LOG
    log.write_bytes(build_batch([SimpleRecord(0, None, b"\x1b[2J\nEXACT")]))
    done = kidx("dump", "--print-data-log", log, check_lines=False)
    assert "payload: \x1b[2J\nEXACT" in done.stdout
    program = f"import pty, sys; sys.exit(pty.spawn([sys.executable, '-c', {LIMITED!r}, *sys.argv[1:]]) >> 8)"
    shown = kidx("dump", "--print-data-log", log, program=program, check_lines=False).stdout
    assert r"payload: \x1b[2J\nEXACT" in shown
    assert "\x1b" not in shown


@pytest.mark.thorough
def test_a_log_that_is_truncated_during_a_dump_is_reported(tmp_path):
    """A follower truncates; earlier bytes are dumped, and no signal ends the process."""
    log = tmp_path / LOG
    size = 100
    with log.open("wb") as file:
        for number in range(40_000):
            file.write(build_batch([SimpleRecord(0, None, bytes(size))], base_offset=number))
    command = [sys.executable, "-c", LIMITED, "dump", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as dump:
        lines = [dump.stdout.readline() for _ in range(100)]  # it waits for its reader
        os.truncate(log, 4096)
        rest, complaint = dump.communicate()
    assert dump.returncode == 2
    assert all(lines)
    assert rest
    assert complaint.startswith("kidx: ")
    assert "became shorter while it was read" in complaint
    assert complaint.count("\n") == 1


@pytest.mark.thorough
def test_logs_and_indexes_that_are_repeatedly_truncated_end_no_process(tmp_path):
    """Every command: verify, lookup, dump and rebuild have an answer or one line."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    log = directory / LOG
    content = b"".join(build_batch([SimpleRecord(n, None, bytes(5000))], base_offset=n) for n in range(800))
    entries = b"".join(n.to_bytes(4) + (n * (len(content) // 800)).to_bytes(4) for n in range(800))
    stop = threading.Event()

    def cut():
        while not stop.is_set():
            for path, whole in ((log, content), (directory / INDEX, entries * 100), (directory / TIME_INDEX, b"")):
                with path.open("wb") as file:
                    file.write(whole)
            time.sleep(0.001)

    writer = threading.Thread(target=cut)
    writer.start()
    try:
        while not (directory / TIME_INDEX).exists():
            time.sleep(0.01)
        for arguments in (
            ("dump", log),
            ("dump", directory / INDEX),
            ("lookup", directory, "--timestamp", 700),
            ("rebuild", log, "--out", tmp_path / "new", "--force", "--kafka", "4.4.0"),
            ("verify", directory),
        ):
            done = kidx(*arguments)
            assert done.returncode in (0, 1, 2), (arguments, done.stderr)
    finally:
        stop.set()
        writer.join()
