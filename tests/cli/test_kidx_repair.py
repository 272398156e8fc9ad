"""End-to-end tests of ``kidx repair``, which is also killed at every writing system call."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kidx.dialect import NEWEST, dialect_of
from kidx.producers.manager import load_producers_before
from kidx.rebuild import rebuild
from kidx.repair import advice
from kidx.verify import verify_paths

GOLDEN = Path(__file__).parents[1] / "golden" / "3.9.2"
SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture
def kidx(in_process, tmp_path):
    """Return a function that runs a command line; a repair follows the newest release if no other is given."""

    def run(*words):
        given = words[0] != "repair" or "--kafka" in words or "--help" in words
        return in_process("kidx", *words, *(() if given else ("--kafka", NEWEST)), work=tmp_path)

    return run


@pytest.fixture
def disk(tmp_path):
    """Make a log directory of a broker."""
    for partition in sorted(GOLDEN.glob("*-0")):
        shutil.copytree(partition, tmp_path / "disk" / partition.name)
    (tmp_path / "disk" / ".lock").touch()
    return tmp_path / "disk"


def content(directory):
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def segments(partition, suffix):
    return sorted(partition.glob(f"*{suffix}"))


def damage(disk):
    """Apply seven kinds of corruption; return the names of the files that must be rebuilt."""
    times, offsets = segments(disk / "create-time-0", ".timeindex"), segments(disk / "create-time-0", ".index")
    (aborted,) = [path for path in segments(disk / "transactions-0", ".txnindex") if path.stat().st_size][:1]
    times[0].unlink()
    times[1].write_bytes(b"")
    offsets[0].write_bytes(bytes(offsets[0].stat().st_size))
    offsets[1].write_bytes(offsets[1].read_bytes()[:8] + b"\1\2\3")
    aborted.write_bytes(b"")
    swapped = segments(disk / "log-append-time-0", ".timeindex")[0]
    swapped.write_bytes(times[2].read_bytes())
    missing = segments(disk / "restarted-0", ".index")[0]
    missing.unlink()
    return sorted(str(path.relative_to(disk)) for path in (*times[:2], *offsets[:2], aborted, swapped, missing))


def test_everything_broken_is_rebuilt_and_nothing_else_is_touched(disk, kidx, tmp_path):
    names = damage(disk)
    before = content(disk)
    assert kidx("verify", disk, "--kafka", "3.9.2").returncode == 1
    tried = kidx("repair", disk, "--kafka", "3.9.2", "--dry-run")
    assert tried.returncode == 1
    assert content(disk) == before
    assert f"DRY RUN: {len(names)} index files would be rebuilt; nothing was changed" in tried.stdout
    assert tried.stdout.splitlines()[-1] == f"next: kidx repair {disk} --kafka 3.9.2"
    done = kidx("repair", disk, "--kafka", "3.9.2", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert sorted(os.path.relpath(change["path"], disk) for change in told["changed"]) == names
    assert told["sound"]
    after = content(disk)
    kept = {name for name in after if name.endswith(".old")}
    assert kept == {f"{name}.old" for name in names if name in before}
    assert {name: after[f"{name}.old"] for name in names if name in before} == {
        name: before[name] for name in names if name in before
    }
    assert {name for name in after if after[name] != before.get(name)} - kept == {*names}
    assert kidx("verify", disk, "--kafka", "3.9.2").returncode == 0
    for change in told["changed"]:  # the bytes of that release's recovery
        path = Path(change["path"])
        log = path.with_suffix(".log")
        producers = load_producers_before(log, dialect_of("3.9.2"))
        interval = change["index_interval_bytes"]
        rebuild(log, tmp_path / "r", dialect="3.9.2", index_interval_bytes=interval, producer_state=producers)
        assert path.read_bytes() == (tmp_path / "r" / path.name).read_bytes(), path
    again = kidx("repair", disk, "--kafka", "3.9.2")
    assert (again.returncode, again.stdout.splitlines()[-1]) == (0, "SOUND: there is nothing to repair")
    assert content(disk) == after


def test_the_interval_comes_from_the_indexes_and_a_guess_is_a_warning(disk, kidx):
    """The corpus was written with index.interval.bytes=250: with the default the indexes would have no entries."""
    index = segments(disk / "create-time-0", ".index")[0]
    exact, times = index.read_bytes(), index.with_suffix(".timeindex").read_bytes()
    index.with_suffix(".timeindex").unlink()
    assert kidx("repair", disk, "--kafka", "3.9.2").stderr == ""  # the other index of the segment determines it
    assert index.with_suffix(".timeindex").read_bytes() == times
    index.unlink()
    from_siblings = kidx("repair", disk, "--kafka", "3.9.2")
    assert f"guessed in 1 partition ({disk / 'create-time-0'}: 256 of 2" in from_siblings.stderr
    assert len(index.read_bytes()) >= len(exact)
    for each in segments(disk / "create-time-0", ".index"):
        each.unlink()
    guessed = kidx("repair", disk, "--kafka", "3.9.2")
    assert guessed.returncode == 0
    assert guessed.stderr.count("warning: ") == 1
    default = "4096, the default, because no index limits the value"
    assert f"guessed in 1 partition ({disk / 'create-time-0'}: {default}" in guessed.stderr
    index.unlink()
    given = kidx("repair", disk, "--kafka", "3.9.2", "--index-interval-bytes", 250)
    assert (given.returncode, given.stderr) == (0, "")
    assert index.read_bytes() == exact


def test_a_broken_log_is_rejected_with_its_indexes_and_the_rest_is_repaired(disk, kidx):
    names = damage(disk)
    log = segments(disk / "create-time-0", ".log")[0]
    data = bytearray(log.read_bytes())
    data[80] ^= 1
    log.write_bytes(data)
    before = content(disk)
    done = kidx("repair", disk, "--kafka", "3.9.2")
    assert done.returncode == 1
    remaining = [line for line in done.stdout.splitlines() if line.startswith("remains")]
    assert [line.split()[1] for line in remaining] == [
        f"{log.with_suffix(each)}:" for each in (".index", ".log", ".timeindex")
    ]
    assert "its log is broken: the batch of 117 bytes at 0 fails its checksum" in remaining[0]
    assert "only index files and leader epochs are rebuilt, from logs that are sound" in remaining[1]
    assert (
        done.stdout.splitlines()[-1]
        == f"BROKEN: {len(names) - 2} index files rebuilt and verified, 3 faults not repaired"
    )
    after = content(disk)
    same = f"create-time-0/{log.stem}"
    assert {name: data for name, data in after.items() if name.startswith(same)} == {
        name: data for name, data in before.items() if name.startswith(same)
    }


def test_transactions_are_not_read_from_broken_logs(disk, kidx):
    partition = disk / "transactions-0"
    logs = segments(partition, ".log")
    later = [path for path in segments(partition, ".txnindex") if path.stat().st_size][-1]
    assert later.stem > logs[0].stem
    later.write_bytes(b"")
    (disk / ".kafka_cleanshutdown").touch()  # without it, the last segment may lack entries
    logs[0].write_bytes(logs[0].read_bytes()[:-1])
    done = kidx("repair", partition, "--kafka", "3.9.2")
    assert done.returncode == 1
    assert f"{later}: transactions may begin in earlier segments, and {logs[0].name} is broken" in done.stdout
    assert later.read_bytes() == b""
    alone = kidx("repair", later, "--kafka", "3.9.2")
    assert alone.returncode in (0, 1)
    assert later.read_bytes() == b""


def test_links_are_rejected(disk, kidx, tmp_path):
    index = segments(disk / "create-time-0", ".index")[0]
    (tmp_path / "elsewhere").write_bytes(b"\0\0\0\1" * 4)
    index.unlink()
    index.symlink_to(tmp_path / "elsewhere")
    done = kidx("repair", disk, "--kafka", "3.9.2")
    assert done.returncode == 1
    why = f"it is a symbolic link, which is not replaced; repair {tmp_path / 'elsewhere'} instead"
    assert f"remains    {index}: {why}" in done.stdout
    assert index.is_symlink()
    (tmp_path / "elsewhere").unlink()
    advised = kidx("verify", disk, "--kafka", "3.9.2").stdout
    assert "remove the link while the broker is stopped" in advised
    assert "kidx repair /" not in advised


def test_a_link_to_the_file_is_not_accepted_as_its_backup(disk, kidx):
    index = segments(disk / "create-time-0", ".index")[0]
    index.write_bytes(b"\0\0\0\1" * 4)
    index.with_name(f"{index.name}.old").symlink_to(index.name)
    assert kidx("repair", disk).returncode == 0
    assert index.with_name(f"{index.name}.old2").read_bytes() == b"\0\0\0\1" * 4


def test_backups_are_made_once(disk, kidx):
    index = segments(disk / "create-time-0", ".index")[0]
    for data in (b"\0\0\0\1" * 4, b"\0\0\0\1" * 4, b"\0\0\0\2" * 4, b"\0\0\0\1" * 4):
        index.write_bytes(data)
        assert kidx("repair", disk).returncode == 0
    kept = sorted(path.name for path in index.parent.glob("*.old*"))
    assert kept == [f"{index.name}.old", f"{index.name}.old2"]


def test_a_backup_has_each_file_that_changes_and_one_command_restores_it(disk, kidx, tmp_path):
    """Also if a path needs quotes; what the repair created is removed."""
    odd = disk / "it's\n here"
    odd.mkdir()
    (disk / "create-time-0").rename(odd / "create-time-0")
    (disk / "create-time-0").symlink_to(odd / "create-time-0")
    damage(disk)
    before, backup = content(disk), tmp_path / "it's a backup"
    done = kidx("repair", disk / "create-time-0", disk / "transactions-0", "--kafka", "3.9.2", "--backup", backup)
    assert "release    3.9.2: files are rebuilt as its recovery writes them" in done.stdout.splitlines()
    after = content(disk)
    replaced = {name for name, data in before.items() if after.get(name) != data}
    assert replaced
    assert sorted(path.read_bytes() for path in (backup / "files").rglob("*") if path.is_file()) == sorted(
        before[name] for name in replaced
    )
    (command,) = (line[29:] for line in done.stdout.splitlines() if line.startswith("to restore the former files: "))
    subprocess.run(["sh", "-c", command], check=True)
    assert {name: data for name, data in content(disk).items() if ".old" not in name} == before


@pytest.mark.parametrize("place", ["full", "in the log directory", "below a file", "no space"])
def test_nothing_is_written_without_the_backup(place, disk, kidx, tmp_path, monkeypatch):
    damage(disk)
    backup = {"in the log directory": disk / "backup", "below a file": disk.parent / "file" / "b"}.get(place)
    backup = backup or tmp_path / "backup"
    (tmp_path / "file").touch()
    if place == "full":
        backup.mkdir()
        (backup / "mine").touch()
    if place == "no space":
        copies, copy = iter([shutil.copy2]), shutil.copy2

        def copy2(source, target):
            if next(copies, None) is None:
                raise OSError(28, "No space left on device")
            return copy(source, target)

        monkeypatch.setattr(shutil, "copy2", copy2)
    before = content(tmp_path)
    done = kidx("repair", disk, "--backup", backup)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "backup" in done.stderr
    assert content(tmp_path) == before
    assert backup.exists() == (place == "full")


def test_no_backup_is_made_if_nothing_changes(disk, kidx, tmp_path):
    damage(disk)
    done = kidx("repair", disk, "--backup", tmp_path / "backup", "--dry-run")
    assert done.stdout.splitlines()[-1].endswith(f" --backup {tmp_path / 'backup'}")
    assert not (tmp_path / "backup").exists()


def test_nothing_is_changed_while_the_lock_is_held(disk, kidx, monkeypatch):
    damage(disk)
    # Of an index file from the recovery point on, only the broker knows which entries count.
    points = [f"{path.name.removesuffix('-0')} 0 1000000\n" for path in disk.glob("*-0")]
    (disk / "recovery-point-offset-checkpoint").write_text(f"0\n{len(points)}\n{''.join(points)}")
    before = content(disk)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, disk / ".lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        done = kidx("repair", disk)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"kidx: {disk} is in use: a broker holds {disk / '.lock'}; stop it first\n"
        tried = kidx("repair", disk, "--dry-run")
        assert tried.returncode == 1
        assert f"a broker is running with {disk}" in tried.stderr
        assert f"1. stop the broker: it holds {disk / '.lock'}" in kidx("verify", disk).stdout
        monkeypatch.chdir(disk.parent)  # paths are printed as given
        assert kidx("repair", disk.name).stderr.startswith(f"kidx: {disk.name} is in use: a broker holds {disk.name}/")
        assert f"it holds {disk.name}/.lock" in kidx("verify", disk.name).stdout
    finally:
        holder.communicate()
    assert content(disk) == before
    assert kidx("repair", disk).returncode == 0


HOLD = """
import fcntl, sys
with open(sys.argv[1], "r+") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_repairs_of_one_directory_exclude_each_other(disk, kidx):
    """No broker has used the directory, so that it has no lock file yet."""
    (disk / ".lock").unlink()
    damage(disk)
    descriptor = os.open(disk / "create-time-0", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    done = kidx("repair", disk / "create-time-0")
    os.close(descriptor)
    assert (done.returncode, done.stdout) == (2, "")
    assert "another kidx is rebuilding indexes there" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("/nowhere",), "/nowhere: No such file or directory"),
        ((GOLDEN, "--kafka", "0.8"), "unknown Kafka release '0.8'"),
        ((Path(__file__),), "is not a segment file"),
        (("--dry-run",), "Missing argument 'PATH ...'"),
    ],
)
def test_bad_input_is_one_line(words, message, kidx):
    done = kidx("repair", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [("repair", "--dry-run"), ("rebuild", "--in-place")])
def test_a_command_that_writes_requires_the_release(words, disk, in_process, tmp_path):
    damage(disk)
    before = content(disk)
    done = in_process("kidx", *words, disk, work=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"kidx: {words[0]} requires --kafka RELEASE")
    assert content(disk) == before


# -- what verify says of it --------------------------------------------------------------------------------------------


def test_the_commands_that_verify_suggests_repair_the_files(disk, kidx):
    """Also if a path needs quotes, or contains control characters of a terminal."""
    odd = disk / "it's \x1b[2J here"
    odd.mkdir()
    for name in ("create-time-0", "restarted-0"):
        (disk / name).rename(odd / name)
    segments(odd / "create-time-0", ".timeindex")[0].unlink()
    os.truncate(segments(odd / "restarted-0", ".index")[0], 11)
    told = kidx("verify", odd, "--kafka", "3.9.2").stdout
    assert "\x1b" not in told
    steps = told.partition("\nnext: ")[2].splitlines()
    names = ", ".join(str(odd / name).replace("\x1b", "\\x1b") for name in ("create-time-0", "restarted-0"))
    assert steps[0] == f"2 index files of {names} can be rebuilt from their logs"
    assert "none is running on this machine now" in steps[1]
    commands = [line[5:] for line in steps if line[2:].startswith(("2. kidx repair", "3. kidx repair"))]
    assert commands[0] == f"{commands[1]} --dry-run"
    words = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {commands[1]}"], capture_output=True, check=True
    ).stdout.split(b"\0")[:-1]
    names = [os.fsdecode(word) for word in words]
    assert names == ["kidx", "repair", str(odd / "create-time-0"), str(odd / "restarted-0"), "--kafka", "3.9.2"]
    assert kidx(*names[1:]).returncode == 0
    assert "next:" not in kidx("verify", odd, "--kafka", "3.9.2").stdout


def test_verify_says_what_not_to_do_and_when_a_broker_checks(disk, kidx):
    (disk / ".kafka_cleanshutdown").touch()
    os.truncate(segments(disk / "restarted-0", ".index")[0], 11)
    told = kidx("verify", disk).stdout
    assert "A broker does not check the size" in told
    assert "earlier segments, and all segments after a clean stop, keep their files [OI-11, broken]" in told
    assert "write the broker's release for RELEASE in these commands" in told
    assert f"kidx repair {disk / 'restarted-0'} --kafka RELEASE --dry-run" in told
    assert "do not count on a restart" in told
    assert "do not delete or cut a .timeindex" not in told
    segments(disk / "create-time-0", ".timeindex")[0].write_bytes(b"")
    assert "do not delete or cut a .timeindex" in kidx("verify", disk).stdout


def test_no_command_is_suggested_for_a_url(disk):
    segments(disk / "create-time-0", ".timeindex")[0].unlink()
    found = advice(verify_paths([disk]), ["s3://bucket/data"], "3.9.2")
    assert (found.steps, found.commands) == ((), ())
    assert "1 index file can be rebuilt: kidx repair, where these are files" in found.reason


def test_verify_does_not_promise_to_repair_a_log(disk, kidx):
    log = segments(disk / "create-time-0", ".log")[0]
    data = bytearray(log.read_bytes())
    data[80] ^= 1
    log.write_bytes(data)
    told = kidx("verify", log).stdout
    assert "next: 1 file at fault, and no index file whose log is sound: a log cannot be repaired from itself" in told
    assert "kidx repair" not in told
    told = kidx("verify", disk).stdout
    assert "do not start the broker before these are copied" in told
    assert "kidx repair" not in told


def test_help_says_which_checkpoints_are_rebuilt_and_which_are_not(kidx):
    said = " ".join(kidx("repair", "--help").stdout.split())
    assert "leader-epoch-checkpoint" in said
    assert "the checkpoints of the log directory are never touched" in said


@pytest.mark.thorough
def test_after_a_kill_before_any_writing_call_nothing_is_lost_and_a_second_repair_completes(tmp_path):
    disk = tmp_path / "disk"
    shutil.copytree(GOLDEN / "transactions-0", disk / "transactions-0")
    (disk / ".lock").touch()
    names = []
    for number, log in enumerate(segments(disk / "transactions-0", ".log")[:2]):
        index, times, aborted = (log.with_suffix(suffix) for suffix in (".index", ".timeindex", ".txnindex"))
        index.write_bytes(b"\0\0\0\1" * 4)
        if number != 1:
            times.unlink()
        aborted.write_bytes(b"\0" * 68)  # replaced where transactions were aborted, removed where none was
        names += [index, aborted, *([times] if number != 1 else [])]
    done = subprocess.run(
        [sys.executable, SUPPORT / "interrupted_repair.py", disk],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["problems"] == []
    assert {str(path.relative_to(disk)) for path in names} <= {*told["changed"]}
    calls = told["calls"]
    assert len(calls) > 30
    _check_order(calls, Path(told["whole"]))


def _check_order(calls, whole):
    """Check the syncs: a file and the second name of its predecessor are synced before the rename."""
    seen, replaced = [], 0
    for call in calls:
        if call[0] == "os.rename":
            new, path = Path(call[1]), Path(call[2])
            assert ["fsync", str(new)] in seen
            links = [number for number, each in enumerate(seen) if each[0] == "os.link" and each[1] == str(path)]
            if (whole / path.parent.name / f"{path.name}.old").exists():
                assert ["fsync", str(path.parent)] in seen[links[-1] :]
            replaced += 1
        seen.append(call)
    assert replaced > 2
    last = max(number for number, each in enumerate(calls) if each[0] in ("os.rename", "os.link"))
    assert any(each[0] == "fsync" and each[1].endswith("transactions-0") for each in calls[last:])
