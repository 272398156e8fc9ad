"""Files of a participant: how they are read, and how they differ."""

from __future__ import annotations

import os
from pathlib import Path
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.implementations.kidx.log import ReferenceLog
from conformance.lockstep.divergence import FileDifference, file_differences
from conformance.lockstep.file_reader import StepFileReader, corrupt
from conformance.lockstep.scopes.log import LogLockstep
from conformance.operations import FILE_OPERATIONS, SIGNATURES, Operation
from conformance.operations.batches import encode

# -- The bytes on disk after every step: whatever happened to the file since the last look -------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "0.index"


@pytest.fixture
def watched(path):
    file = StepFileReader()
    file.watch(str(path))
    yield file
    file.release()


@pytest.fixture(params=["read", "read_again"])
def read(request, watched):
    """Read a file that has not been replaced, in both ways."""
    return getattr(watched, request.param)


def test_no_file_is_none_and_an_empty_one_is_not(read, path):
    assert read() is None
    path.touch()
    assert read() == b""
    assert read() == b""


def test_a_change_is_seen(read, path):
    path.write_bytes(b"1234")
    assert read() == b"1234"
    with path.open("r+b") as file:
        file.write(b"56")
    assert read() == b"5634"
    os.truncate(path, 1)
    assert read() == b"5"
    os.truncate(path, 3)
    assert read() == b"5\0\0"
    os.truncate(path, 0)
    assert read() == b""
    path.write_bytes(bytes(5000))
    assert read() == bytes(5000)


def test_a_deleted_file_is_gone_and_a_new_one_with_its_name_is_read(watched, path):
    path.write_bytes(b"old")
    assert watched.read() == b"old"
    path.unlink()
    assert watched.read() is None
    path.write_bytes(b"new")
    assert watched.read() == b"new"


def test_a_file_that_replaces_another_one_is_read(watched, path):
    path.write_bytes(b"old")
    assert watched.read() == b"old"
    other = path.with_suffix(".swap")
    other.write_bytes(b"new")
    other.replace(path)
    assert watched.read() == b"new"


def test_a_path_that_is_set_again_may_be_another_file(watched, path):
    path.write_bytes(b"old")
    assert watched.read_again() == b"old"
    path.unlink()
    watched.watch(str(path))
    assert watched.read_again() is None


def test_another_path_is_read_from_then_on(watched, path):
    path.write_bytes(b"old")
    assert watched.read() == b"old"
    moved = path.with_suffix(".deleted")
    path.rename(moved)
    watched.watch(str(moved))
    assert watched.read() == b"old"
    watched.watch(str(path))
    assert watched.read() is None


def test_a_released_file_is_opened_again(watched, path):
    path.write_bytes(b"1")
    assert watched.read() == b"1"
    watched.release()
    watched.release()
    path.write_bytes(b"2")
    assert watched.read() == b"2"


def test_nothing_to_watch_is_no_file():
    assert StepFileReader().read() is None


# -- corruption -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "after"),
    [
        ("flip_bit", (0, 0), b"1" + b"1234567"),
        ("flip_bit", (8, 0), b"1" + b"1234567"),
        ("flip_bit", (-1, 7), b"0123456" + bytes([ord("7") ^ 0x80])),
        ("cut_file", (3,), b"012"),
        ("cut_file", (100,), b"01234567"),
        ("cut_file", (0,), b""),
        ("pad_file", (2, 0xFF), b"01234567\xff\xff"),
        ("zero_range", (2, 4), b"01\0\x004567"),
        ("zero_range", (4, 2), b"01\0\x004567"),
        ("zero_range", (0, 8), bytes(8)),
        ("swap_ranges", (0, 1, 4), b"45670123"),
        ("swap_ranges", (0, -1, 2), b"67234501"),
        ("swap_ranges", (0, 1, 3), b"34501267"),
        ("swap_ranges", (0, 1, 5), b"01234567"),
        ("swap_ranges", (3, 3, 2), b"01234567"),
    ],
)
def test_damage(path, name, arguments, after):
    path.write_bytes(b"01234567")
    corrupt(path, name, arguments)
    assert path.read_bytes() == after


def test_a_file_is_removed(path):
    path.touch()
    corrupt(path, "remove_file", ())
    assert not path.exists()


@pytest.mark.parametrize("name", sorted(FILE_OPERATIONS - {"write_file"}))
def test_a_missing_file_remains_missing_and_an_empty_one_is_no_error(path, name):
    arguments = tuple(1 for _ in SIGNATURES[name])
    corrupt(path, name, arguments)
    assert not path.exists()
    path.touch()
    corrupt(path, name, arguments)
    assert path.exists() == (name != "remove_file")


def test_a_file_is_written_whole_and_created_if_it_is_missing(path):
    corrupt(path, "write_file", ("00ff",))
    assert path.read_bytes() == b"\x00\xff"
    corrupt(path, "write_file", ("",))
    assert path.read_bytes() == b""


@given(
    content=st.binary(max_size=40), first=st.integers(-50, 50), second=st.integers(-50, 50), width=st.integers(1, 12)
)
def test_exchanged_entries_are_still_the_same_bytes(tmp_path_factory, content, first, second, width):
    path = tmp_path_factory.getbasetemp() / "swapped"
    path.write_bytes(content)
    corrupt(path, "swap_ranges", (first, second, width))
    assert sorted(path.read_bytes()) == sorted(content)
    corrupt(path, "swap_ranges", (first, second, width))
    assert path.read_bytes() == content


# -- Index files that differ: in padding only, or with entries that are equally true of the log; a wrong entry counts


BASE = 100
STEM = f"{BASE:020d}"
BATCHES = [
    encode([{"base": BASE + n, "epoch": 0, "records": [[0, time], [1, time]]}])
    for n, time in ((0, 50), (5, 90), (9, 70))
]
LOG = b"".join(BATCHES)
SECOND, THIRD = len(BATCHES[0]), len(BATCHES[0]) + len(BATCHES[1])


def offsets(*entries, room=0):
    return b"".join(pack(">ii", *entry) for entry in entries) + bytes(room)


def times(*entries, room=0):
    return b"".join(pack(">qi", *entry) for entry in entries) + bytes(room)


def how(suffix, mine, theirs, log=LOG):
    (found,) = file_differences(
        {f"{STEM}{suffix}": mine, f"{STEM}.log": log}, {f"{STEM}{suffix}": theirs, f"{STEM}.log": log}
    )
    assert found.name == f"{STEM}{suffix}"
    return found.how


def test_equal_files_are_no_divergence():
    assert file_differences({"a": b"1", "b": None}, {"a": b"1"}) == ()


def test_a_missing_index_has_no_entry():
    assert how(".index", bytes(16), None) == {"room", "tail", "absent.index"}
    assert how(".timeindex", times((50, 1), room=24), times((50, 1))) == {"room", "tail", "sound"}
    assert how(".txnindex", b"", None) == {"empty", "absent.txnindex"}


def test_the_log_of_a_renamed_index_is_renamed_as_well():
    names = [f"{STEM}{suffix}.deleted" for suffix in (".log", ".index")]
    mine, theirs = (dict(zip(names, (LOG, offsets(entry)), strict=True)) for entry in ((6, SECOND), (10, THIRD)))
    (found,) = file_differences(mine, theirs)
    assert found.how == {"sound"}


def test_bytes_that_a_truncation_left_after_the_entries_are_none():
    mine, theirs = ({f"{STEM}.log": LOG, f"{STEM}.timeindex": times(entry, room=12)} for entry in ((90, 6), (1000, 0)))
    assert file_differences(mine, theirs)[0].how == frozenset()
    (found,) = file_differences(mine, theirs, {".timeindex": 1}, {".timeindex": 0})
    assert found.how == {"sound", "sparse.timeindex"}


def test_trailing_bytes_after_records_are_no_padding():
    (found,) = file_differences({"0.log": LOG + bytes(5)}, {"0.log": LOG})
    assert found == FileDifference("0.log")


@pytest.mark.parametrize(
    ("entries", "is_sound"),
    [
        ([(6, SECOND)], True),
        ([(6, SECOND), (10, THIRD)], True),
        # One entry for a call of two batches: where the call begins, and its last offset.
        ([(10, SECOND)], True),
        # After its own record, in the middle of a batch, of no batch, twice, and of an offset within a batch.
        ([(6, THIRD)], False),
        ([(6, SECOND + 1)], False),
        ([(8, SECOND)], False),
        ([(6, SECOND), (6, SECOND)], False),
        ([(5, SECOND)], False),
    ],
)
def test_entries_of_an_offset_index_are_true_of_the_log(entries, is_sound):
    assert ("sound" in how(".index", offsets((1, 0)), offsets(*entries, room=8))) is is_sound


@pytest.mark.parametrize(
    ("entries", "is_sound"),
    [
        ([(50, 1)], True),
        ([(50, 1), (90, 6)], True),
        ([(90, 5)], True),
        ([(90, 10)], True),
        # A later record has a smaller timestamp than one before it; of no batch; going back.
        ([(70, 10)], False),
        ([(60, 1)], False),
        ([(90, 6), (50, 7)], False),
    ],
)
def test_entries_of_a_time_index_are_true_of_the_log(entries, is_sound):
    assert ("sound" in how(".timeindex", times((50, 6)), times(*entries, room=12))) is is_sound


@pytest.mark.parametrize(("entries", "is_sound"), [([(50, 1), (90, 6)], True), ([(50, 1)], False)])
def test_a_time_index_that_others_follow_has_its_largest_timestamp(entries, is_sound):
    files = {f"{STEM}.log": LOG, f"{BASE + 11:020d}.log": b""}
    name = f"{STEM}.timeindex"
    (found,) = file_differences(files | {name: times((90, 10))}, files | {name: times(*entries)})
    assert ("sound" in found.how) is is_sound


def test_without_a_log_no_entry_is_true():
    (found,) = file_differences({f"{STEM}.index": None}, {f"{STEM}.index": offsets((6, SECOND))})
    assert "sound" not in found.how
    assert "sound" in how(".index", None, offsets((6, SECOND)), LOG + b"torn")


RELEASE = "4.3.1"
SETTINGS = {"segment.bytes": 1000, "segment.index.bytes": 120, "index.interval.bytes": 0}
SCENARIO = (
    Operation("open_log", (SETTINGS, 0, 0, True, 10_000)),
    *(Operation("append_as_leader", ([{"records": [[0, 1000 + n]]}], 0)) for n in range(3)),
    Operation("list_offsets", ((1001, 1002),)),
)


class Sparser(ReferenceLog):
    """It has one entry in four kilobytes, whatever the topic wants."""

    directory = Path()

    def begin(self, directory):
        self.directory = directory
        super().begin(directory)

    def perform(self, operation):
        if operation.name == "open_log":
            settings, *rest = operation.args
            operation = Operation("open_log", (settings | {"index.interval.bytes": 4096}, *rest))
        return super().perform(operation)


class Astray(ReferenceLog):
    """Index whose second entry points after its record."""

    directory = Path()

    def begin(self, directory):
        self.directory = directory
        super().begin(directory)

    def perform(self, operation):
        seen = super().perform(operation)
        if operation == SCENARIO[3]:
            (path,) = self.directory.rglob("*.index")
            with path.open("r+b") as file:
                file.seek(12)
                file.write((137).to_bytes(4, "big"))
        return seen


@pytest.mark.parametrize(("kind", "is_accident"), [(Sparser, True), (Astray, False)])
def test_other_entries_are_an_accident_and_wrong_ones_are_not(tmp_path, kind, is_accident):
    found = []
    lockstep = LogLockstep([kind(RELEASE)], tmp_path, on_divergence=lambda divergence: not found.append(divergence))
    lockstep.begin()
    for operation in SCENARIO:
        lockstep.perform(operation)
    lockstep.end()
    assert found[0].aspects == ("bytes",)
    assert found[0].operation.name == "append_as_leader"
    assert set(found[0].clauses) == {"SEG-4", "SEG-5"}, "where an entry is due; LG-1 covers the records"
    assert found[0].counts("must") is not is_accident
