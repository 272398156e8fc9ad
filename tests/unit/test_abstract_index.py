"""The mapped file under .index and .timeindex, from creation to deletion (AI-1 to AI-44), in every dialect."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from kidx import OffsetIndex, TimeIndex
from kidx.errors import (
    ClosedError,
    CorruptIndexError,
    IllegalStateError,
    IndexOffsetOverflowError,
    InvalidArgumentError,
    OutOfBoundsError,
)

RELEASES = ("2.4.1", "3.4.1", "3.9.1", "3.9.2", "4.0.1", "4.3.1", "4.4.0")
EVERY_RELEASE = pytest.mark.parametrize("release", RELEASES)
BOTH = pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])


def file_of(kind, *offsets: int, base: int = 0) -> bytes:
    """Write an index file with entries of these offsets; position and timestamp are ten times as large."""
    if kind is OffsetIndex:
        return b"".join(struct.pack(">ii", offset - base, 10 * offset) for offset in offsets)
    return b"".join(struct.pack(">qi", 10 * offset, offset - base) for offset in offsets)


def add(index, *offsets: int) -> None:
    """Append entries of these offsets; position and timestamp are ten times as large."""
    for offset in offsets:
        if isinstance(index, OffsetIndex):
            index.append(offset, 10 * offset)
        else:
            index.maybe_append(10 * offset, offset, skip_full_check=True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "00000000000000000000.index"


# Creating and opening.


@pytest.mark.parametrize(("kind", "length", "entries"), [(OffsetIndex, 64, 8), (TimeIndex, 60, 5)])
def test_a_new_file_is_preallocated_in_whole_entries(kind, length, entries, path):
    """67 bytes are 64 of .index and 60 of .timeindex, all zeros, and hold no entry yet (AI-1, AI-3a, AI-7)."""
    with kind(path, 5, 67) as index:
        assert path.read_bytes() == bytes(length)
        assert (index.entries, len(index), index.max_entries, index.length) == (0, 0, entries, length)
        assert (index.size_in_bytes, index.is_full, list(index)) == (0, False, [])
        add(index, 6, 7)
        assert index.size_in_bytes == 2 * index.entry_size
        assert path.read_bytes() == file_of(kind, 6, 7, base=5) + bytes(length - index.size_in_bytes)


@pytest.mark.parametrize("size", [7, 0, -1])
@pytest.mark.parametrize("writable", [True, False])
@BOTH
def test_a_new_file_without_capacity_is_rejected_and_left_empty(kind, size, writable, path):
    """The error follows the creation: an empty file remains and counts as existing (AI-3b, AI-3c, AI-4a)."""
    with pytest.raises(InvalidArgumentError) as refusal:
        kind(path, 0, size, writable)
    assert refusal.value.kafka_message == f"Invalid max index size: {size}"
    assert path.read_bytes() == b""
    with kind(path, 0, 80) as index:
        assert (index.length, index.max_entries, index.entries, index.is_full) == (0, 0, 0, True)
        with pytest.raises(InvalidArgumentError):
            add(index, 1) if kind is OffsetIndex else index.maybe_append(1, 1)


@BOTH
def test_a_new_file_cannot_be_created_read_only(kind, path):
    """The length of a read-only handle cannot be set: EINVAL, and a file of 0 bytes remains (AI-2, AI-4a, AI-4b)."""
    with pytest.raises(OSError, match="read-only") as refusal:
        kind(path, 0, 80, writable=False)
    assert (refusal.value.errno, refusal.value.filename) == (22, str(path))
    assert path.read_bytes() == b""


@BOTH
def test_a_missing_directory_is_an_io_error(kind, tmp_path):
    """Opening an index creates no directory (AI-4c)."""
    with pytest.raises(FileNotFoundError):
        kind(tmp_path / "missing" / "a", 0, 80)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("writable", [True, False])
@BOTH
def test_an_existing_file_opens_as_full(kind, writable, path):
    """The length counts, not the requested size; zeros at the end are entries, a partial entry is not (AI-5, AI-9)."""
    content = file_of(kind, 3, -1, 0) + b"part"
    path.write_bytes(content)
    index = kind(path, 100, 800, writable)
    assert (index.entries, index.max_entries, index.length, index.is_full) == (3, 3, len(content), True)
    assert [entry.offset for entry in index] == [103, 99, 100]
    index.close_handler()
    assert path.read_bytes() == content


def test_a_time_index_is_full_one_entry_earlier(path):
    """The last slot is reserved for the roll; with capacity for one entry or none it is always full (AI-6)."""
    for size, appended, full in ((36, 1, False), (36, 2, True), (12, 0, True)):
        path.unlink(missing_ok=True)
        with TimeIndex(path, 0, size) as index:
            add(index, *range(1, appended + 1))
            assert index.is_full is full


@BOTH
def test_a_path_may_be_text_and_is_always_a_path(kind, path):
    """Text in, Path out; repr names the file, the counters and the release."""
    with kind(str(path), 3, 80, dialect="3.9.2") as index:
        assert index.path == path
        assert repr(index) == (
            f"{kind.__name__}({str(path)!r}, base_offset=3, entries=0, max_entries={index.max_entries},"
            " dialect='3.9.2')"
        )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@BOTH
def test_read_only_opening_needs_no_write_permission(kind, tmp_path, path):
    """Another user, file and directory not writable: lookups work, writes raise, nothing changes (AI-2)."""
    path.write_bytes(file_of(kind, 1, 2))
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    program = f"""
import os
from kidx import {kind.__name__} as Index
from kidx.errors import ReadOnlyError
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    Index("a", 0, writable=True)
except PermissionError:
    pass
else:
    raise AssertionError("opened for writing")
with Index("a", 0, writable=False) as index:
    index.sanity_check()
    assert [entry.offset for entry in index] == [1, 2]
    assert index.lookup(10**9).offset == index.ceiling(0).offset + 1 == 2
    index.truncate_to(2)
    try:
        index.{"append(5, 1)" if kind is OffsetIndex else "maybe_append(50, 5, True)"}
    except ReadOnlyError:
        pass
    index.truncate_to(10**9)
    index.flush()
    index.close_handler()
try:
    Index("b", 0, 80, writable=False)
except PermissionError:
    print("done")
"""
    path.rename(tmp_path / "a")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == file_of(kind, 1, 2)


@BOTH
def test_no_descriptor_remains_open(kind, path):
    """An unmapped index holds no descriptor, also after an error, a resize and a flush."""
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    with pytest.raises(InvalidArgumentError):
        kind(path, 0, 1)
    for release in RELEASES:
        index = kind(path, 0, 120, dialect=release)
        index.resize(240)
        index.flush()
        with pytest.raises(OSError, match="Invalid argument"):
            index.resize(-24)
        index.close_handler()
    assert len(list(descriptors.iterdir())) <= before


# Offsets.


@pytest.mark.parametrize("base", [0, 100, -5, 2**63 - 3, -(2**63)])
def test_an_offset_fits_within_31_bits_of_the_base(base, path):
    """The base itself and 2,147,483,647 above it fit, their neighbours do not; the difference wraps (AI-8)."""
    with OffsetIndex(path, base, 80) as index:
        wrapped = (base + 2**31 - 1 + 2**63) % 2**64 - 2**63
        for offset, fits in ((base, True), (wrapped, True), (base - 1, False), (wrapped + 1, False)):
            assert index.can_append_offset(offset) is fits
            if fits:
                assert index.relative_offset(offset) == (0 if offset == base else 2**31 - 1)
                continue
            with pytest.raises(IndexOffsetOverflowError) as refusal:
                index.relative_offset(offset)
            assert refusal.value.kafka_message == f"Integer overflow for offset: {offset} ({path})"


@BOTH
def test_offsets_beyond_a_long_wrap(kind, path):
    """Entries 0, 5 and 9 above a base five below the end: the last two are negative, and found there (AI-8, AI-9)."""
    path.write_bytes(file_of(kind, 0, 5, 9))
    with kind(path, 2**63 - 5) as index:
        assert [entry.offset for entry in index] == [2**63 - 5, -(2**63), -(2**63) + 4]
        index.truncate_to(-(2**63) + 1)
        assert len(index) == 0


@BOTH
def test_texts_name_the_absolute_path(kind, tmp_path, monkeypatch):
    """An error of an index that was opened by a relative name has its absolute name, as in Kafka (AI-8)."""
    monkeypatch.chdir(tmp_path)
    with kind("a", 10, 80) as index, pytest.raises(IndexOffsetOverflowError) as refusal:
        index.relative_offset(9)
    assert str(refusal.value).startswith("a: ")
    assert refusal.value.kafka_message == f"Integer overflow for offset: 9 ({tmp_path}/a)"


# Entries.


@EVERY_RELEASE
@BOTH
def test_a_slot_past_the_end_raises_with_the_text_of_the_dialect(kind, release, path):
    """A comma for offset indexes; two blanks and a full stop in Scala's time index (OI-8b, OI-8c, TI-8b, TI-8c)."""
    scala = release in ("2.4.1", "3.4.1")
    name = f"index {path}, which" if kind is OffsetIndex else f"{' ' if scala else ''}time index {path} which"
    with kind(path, 0, 80, dialect=release) as index:
        add(index, 1, 2)
        assert index.entry(1) == list(index)[1]
        with pytest.raises(InvalidArgumentError) as refusal:
            index.entry(2)
    assert refusal.value.kafka_message == (
        f"Attempt to fetch the 2th entry from {name} has size 2{'.' if scala else ''}"
    )


@BOTH
def test_a_negative_slot_is_out_of_bounds_or_wraps(kind, path):
    """The buffer rejects -1, it does not count from the end; 32-bit products may wrap to inside (OI-8d, AI-41)."""
    with kind(path, 0, 80) as index:
        add(index, 1, 2)
        for n in (-1, -(2**28) if kind is OffsetIndex else -(2**29)):
            with pytest.raises(OutOfBoundsError):
                index.entry(n)
        assert index.entry(-(2**29) if kind is OffsetIndex else -(2**30)) == index.entry(0)


def test_iteration_sees_the_file_as_it_is(path):
    """An index that is closed during an iteration raises, and is not read from unmapped memory (AI-19a)."""
    index = OffsetIndex(path, 0, 80)
    add(index, 1, 2)
    entries = iter(index)
    assert next(entries) == (1, 10)
    index.close()
    with pytest.raises(ClosedError, match="is closed"):
        next(entries)


# Length: resize, trim, truncate, reset.


@EVERY_RELEASE
@BOTH
def test_resize_rounds_and_keeps_the_entries(kind, release, path):
    """A resize to 51 bytes gives 48; the same again returns False; later appends follow the old entries (AI-10)."""
    with kind(path, 0, 120, dialect=release) as index:
        add(index, 1, 2)
        assert index.resize(51)
        assert not index.resize(48)
        assert not index.resize(50)
        assert (index.length, path.stat().st_size, index.max_entries) == (48, 48, 48 // index.entry_size)
        add(index, 3)
        assert [entry.offset for entry in index] == [1, 2, 3]
        assert index.resize(1200)
        assert path.read_bytes() == file_of(kind, 1, 2, 3) + bytes(1200 - 3 * index.entry_size)


@BOTH
def test_resizing_a_read_only_index_makes_it_writable(kind, path):
    """Kafka maps the resized file for writing whatever it was opened for (AI-10)."""
    path.write_bytes(file_of(kind, 1))
    with kind(path, 0, writable=False) as index:
        index.resize(120)
        add(index, 2)
    assert path.read_bytes()[: 2 * index.entry_size] == file_of(kind, 1, 2)


@EVERY_RELEASE
@BOTH
def test_shrinking_below_the_entries_fails_half_way(kind, release, path):
    """The file is cut, length and capacity follow, the entries are still counted and reading them fails (AI-11)."""
    index = kind(path, 0, 120, dialect=release)
    add(index, 1, 2, 3)
    size = index.entry_size
    with pytest.raises(
        InvalidArgumentError, match=f"3 entries take {3 * size} bytes and do not fit in {size}"
    ) as refusal:
        index.resize(size)
    assert refusal.value.kafka_message == f"newPosition > limit: ({3 * size} > {size})"
    assert (index.entries, index.max_entries, index.length, path.stat().st_size) == (3, 1, size, size)
    assert index.entry(0) == index.entry(0)
    for read in (lambda: index.entry(1), lambda: index.lookup(10**6), lambda: index.ceiling(10**6)):
        with pytest.raises(OutOfBoundsError, match=str(path)):
            read()
    with pytest.raises(OutOfBoundsError, match=f"3 entries in memory but {size} bytes"):
        index.truncate_to(3)
    index.close_handler()


@EVERY_RELEASE
@BOTH
def test_after_a_failed_shrink_the_cursor_is_at_the_start(kind, release, path):
    """Trimming grows the file back with zeros, and the next append goes to slot 0 and trips the last check (AI-40)."""
    index = kind(path, 0, 120, dialect=release)
    add(index, 1, 2, 3)
    with pytest.raises(InvalidArgumentError):
        index.resize(0)
    index.trim_to_valid_size()
    assert path.read_bytes() == bytes(3 * index.entry_size)
    index.resize(120)
    state, text = (
        (InvalidArgumentError, "requirement failed: 4 entries but file position in index is {}.")
        if release in ("2.4.1", "3.4.1")
        else (IllegalStateError, "4 entries but file position in index is {}")
    )
    with pytest.raises(state) as refusal:
        add(index, 7)
    assert refusal.value.kafka_message == text.format(index.entry_size)
    assert path.read_bytes()[: index.entry_size] == file_of(kind, 7)
    assert index.entries == 4
    index.close_handler()


@BOTH
def test_growth_is_zeros_but_removed_entries_remain(kind, path):
    """Bytes cut off come back as zeros; bytes of entries that were only truncated are still there (AI-13, AI-14)."""
    with kind(path, 0, 120) as index:
        add(index, 1, 2, 3)
        index.truncate_to(2)
        assert (index.entries, index.length) == (1, 120)
        index.resize(240)
        assert path.read_bytes()[: 3 * index.entry_size] == file_of(kind, 1, 2, 3)
        index.trim_to_valid_size()
        index.resize(240)
        assert path.read_bytes() == file_of(kind, 1) + bytes(240 - index.entry_size)
        index.truncate()
        assert (index.entries, index.length, path.read_bytes()[: index.entry_size]) == (0, 240, file_of(kind, 1))


@BOTH
def test_reset_restores_the_size_and_keeps_stale_bytes(kind, path):
    """At full length nothing is cleared; from another length the maximum size comes back (AI-15a, AI-15b)."""
    with kind(path, 0, 120) as index:
        add(index, 1, 2)
        index.reset()
        assert (index.entries, path.read_bytes()[: 2 * index.entry_size]) == (0, file_of(kind, 1, 2))
        index.resize(60)
        index.reset()
        assert index.length == path.stat().st_size == 120


@BOTH
def test_reset_without_a_size_empties_the_file(kind, path):
    """-1 rounds to 0: no bytes, no capacity, full; a lookup still answers with nothing (AI-15c, AI-31)."""
    path.write_bytes(file_of(kind, 1, 2))
    with kind(path, 7) as index:
        index.reset()
        assert (path.read_bytes(), index.max_entries, index.is_full) == (b"", 0, True)
        assert index.lookup(10**6) == ((7, 0) if kind is OffsetIndex else (-1, 7))
        assert index.ceiling(0) is None


@EVERY_RELEASE
@BOTH
def test_trimming_cuts_the_tail_and_a_partial_entry(kind, release, path):
    """A file that the sanity check rejected passes after trimming (AI-16a)."""
    path.write_bytes(file_of(kind, 1, 2) + b"part")
    with kind(path, 0, dialect=release) as index:
        with pytest.raises(CorruptIndexError):
            index.sanity_check()
        index.trim_to_valid_size()
        index.sanity_check()
        assert path.read_bytes() == file_of(kind, 1, 2)


@EVERY_RELEASE
@BOTH
def test_a_length_that_the_system_rejects(kind, release, path):
    """A negative length: an OSError, and the index is usable or, with the remap lock, unmapped (AI-44a, AI-44b)."""
    index = kind(path, 0, 120, dialect=release)
    add(index, 1)
    with pytest.raises(OSError, match="Invalid argument"):
        index.resize(-24)
    assert (index.length, path.stat().st_size) == (120, 120)
    if release in ("3.9.2", "4.3.1", "4.4.0"):
        with pytest.raises(ClosedError):
            index.lookup(5)
    else:
        assert index.lookup(50).offset == 1
    index.close_handler()


# Unmapped: close, close_handler, delete.


@EVERY_RELEASE
@BOTH
def test_close_trims_up_to_4_3(kind, release, path):
    """A close leaves only the entries, from 4.4 on the whole preallocated file; it may be repeated (AI-20a, AI-42)."""
    with kind(path, 0, 120, dialect=release) as index:
        add(index, 1, 2)
    content = file_of(kind, 1, 2)
    expected = content + bytes(120 - len(content)) if release == "4.4.0" else content
    assert path.read_bytes() == expected
    index.close()
    index.close_handler()
    assert path.read_bytes() == expected
    assert index.length == len(expected)


@EVERY_RELEASE
@BOTH
def test_a_closed_index_knows_its_counters_and_nothing_else(kind, release, path):
    """Counters and last entry remain, other operations raise; a truncation changes the count before (AI-19)."""
    index = kind(path, 3, 120, dialect=release)
    add(index, 4, 5)
    index.close_handler()
    assert (index.entries, index.length, index.size_in_bytes) == (2, 120, 2 * index.entry_size)
    assert (index.last_offset if kind is OffsetIndex else index.last_entry.offset) == 5
    assert not index.resize(120)
    for use in (
        lambda: index.lookup(5),
        lambda: index.ceiling(5),
        lambda: index.entry(0),
        lambda: list(index),
        lambda: index.truncate_to(4),
        lambda: index.resize(60),
        lambda: add(index, 9),
        index.truncate,
        index.reset,
    ):
        with pytest.raises(ClosedError, match=str(path)) as refusal:
            use()
        assert refusal.value.kafka_message is None
    assert index.entries == 0
    assert list(index) == []


@EVERY_RELEASE
@BOTH
def test_trim_and_flush_when_unmapped(kind, release, path):
    """Up to 3.9.1 a trim re-creates a deleted file empty and fails; later it has no effect (AI-16)."""
    index = kind(path, 0, 120, dialect=release)
    add(index, 1)
    assert index.delete_if_exists()
    if release in ("2.4.1", "3.4.1", "3.9.1"):
        for trim in (index.trim_to_valid_size, index.close):
            with pytest.raises(ClosedError):
                trim()
            assert path.read_bytes() == b""
    else:
        index.trim_to_valid_size()
        index.close()
        assert not path.exists()
    if release == "4.4.0":
        index.flush()
    else:
        with pytest.raises(ClosedError):
            index.flush()


@EVERY_RELEASE
@BOTH
def test_a_with_block_closes_an_open_index(kind, release, path):
    """An index deleted inside the block remains deleted; up to 3.9.1 Kafka's close would re-create it (AI-16b)."""
    with kind(path, 0, 120, dialect=release) as index:
        add(index, 1)
        index.delete_if_exists()
    assert not path.exists()
    with pytest.raises(ZeroDivisionError), kind(path, 0, 120, dialect=release) as index:
        raise ZeroDivisionError
    with pytest.raises(ClosedError):
        index.entry(-1)


@EVERY_RELEASE
def test_appending_to_a_closed_index(release, path):
    """Up to 4.3 close trims the file, so the index is full; in 4.4 the error is the missing mapping (AI-19d)."""
    index = OffsetIndex(path, 0, 80, dialect=release)
    add(index, 1)
    index.close()
    with pytest.raises(ClosedError if release == "4.4.0" else InvalidArgumentError):
        index.append(2, 2)
    assert index.entries == 1


@BOTH
def test_delete_unmaps_and_returns_whether_the_file_existed(kind, path):
    """Deletion does not trim the file: ``length`` still includes the preallocated tail (AI-18, AI-20b)."""
    index = kind(path, 0, 120, dialect="4.3.1")
    assert index.delete_if_exists()
    assert not index.delete_if_exists()
    assert (index.length, path.exists()) == (120, False)


@EVERY_RELEASE
@pytest.mark.parametrize("writable", [True, False])
def test_flush_leaves_content_unchanged(release, writable, path, monkeypatch):
    """Every release writes changed pages; 4.4.0 also syncs the file if it has the index's name (AI-23)."""
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    path.write_bytes(file_of(OffsetIndex, 1, 2))
    index = OffsetIndex(path, 0, writable=writable, dialect=release)
    index.flush()
    assert len(synced) == (release == "4.4.0")
    path.unlink()
    index.flush()
    assert len(synced) == (release == "4.4.0")
    index.close_handler()


@pytest.mark.parametrize("release", RELEASES[:-1])
def test_closing_a_read_only_index_trims_a_partial_entry(release, path):
    """Kafka's close trims a read-only file, too (AI-16a, AI-42a); close_handler changes nothing."""
    path.write_bytes(file_of(OffsetIndex, 1) + b"part")
    OffsetIndex(path, 0, writable=False, dialect=release).close_handler()
    assert path.stat().st_size == 12
    OffsetIndex(path, 0, writable=False, dialect=release).close()
    assert path.stat().st_size == 8


# Names.


@EVERY_RELEASE
@BOTH
def test_rename_moves_the_file_under_the_mapping(kind, release, path):
    """The index is usable under its new name, appends and resizes included (AI-21a)."""
    with kind(path, 0, 120, dialect=release) as index:
        target = path.with_suffix(".deleted")
        index.rename_to(str(target))
        assert index.path == target
        add(index, 1)
        assert index.resize(240)
    assert [file.name for file in target.parent.iterdir()] == [target.name]
    assert target.read_bytes().startswith(file_of(kind, 1))


@BOTH
def test_a_failed_rename_changes_the_name(kind, path):
    """The file is not renamed, but the index has the new name: a resize uses it, a delete finds no file (AI-21b)."""
    index = kind(path, 0, 120)
    target = path.parent / "missing" / "a"
    with pytest.raises(FileNotFoundError):
        index.rename_to(target)
    assert index.path == target
    with pytest.raises(FileNotFoundError):
        index.resize(240)
    assert not index.delete_if_exists()
    assert path.stat().st_size == 120


def test_a_directory_that_moved(tmp_path, path):
    """Only the name changes, mapped or not; another program has moved the file (AI-22)."""
    with OffsetIndex(path, 0, 80, dialect="4.3.1") as index:
        moved = tmp_path / "moved"
        moved.mkdir()
        path.rename(moved / path.name)
        index.update_parent_dir(moved)
        assert index.path == moved / path.name
        add(index, 1)
    assert (moved / path.name).read_bytes() == file_of(OffsetIndex, 1)
    index.update_parent_dir(str(tmp_path))
    assert index.path == Path(tmp_path / path.name)


# Larger than Java can map.


@BOTH
def test_a_file_of_two_gibibytes_cannot_be_opened(kind, path):
    """Sparse, so it costs nothing: Kafka of any release cannot map it and says the same; a byte less opens."""
    path.touch()
    os.truncate(path, 2**31)
    with pytest.raises(InvalidArgumentError, match=str(path)) as refusal:
        kind(path, 0)
    assert refusal.value.kafka_message == "Size exceeds Integer.MAX_VALUE"
    os.truncate(path, 2**31 - 1)
    index = kind(path, 0, writable=False)
    assert index.entries == (2**31 - 1) // index.entry_size
    assert index.entry(index.entries - 1).offset == 0
    index.close_handler()
