"""The bytes on disk after every step: whatever happened to the file since the last look."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.lockstep.file_reader import StepFileReader, corrupt
from conformance.operations import FILE_OPERATIONS, SIGNATURES


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
