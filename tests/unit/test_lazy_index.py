"""An index that is opened on first use (LZ-1 to LZ-4)."""

from __future__ import annotations

import threading

import pytest

from kidx import LazyIndex, OffsetIndex, TimeIndex
from kidx.errors import InvalidArgumentError

BOTH = pytest.mark.parametrize(("make", "kind"), [(LazyIndex.for_offset, OffsetIndex), (LazyIndex.for_time, TimeIndex)])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a"


@BOTH
def test_the_first_get_opens_the_index(make, kind, path):
    """Until then no file is touched; later calls return the same object, opened with these arguments (LZ-1, LZ-2)."""
    with make(path, 7, 120, dialect="2.4.1") as lazy:
        assert not lazy.is_loaded
        assert not path.exists()
        index = lazy.get()
        assert lazy.is_loaded
        assert lazy.get() is index
        assert isinstance(index, kind)
        assert (index.base_offset, index.length, index.writable, index.dialect.release) == (7, 120, True, "2.4.1")
    assert path.stat().st_size == 0


@BOTH
def test_a_lazy_index_can_be_read_only(make, kind, path):
    """All arguments are the index's own (LZ-2)."""
    path.write_bytes(bytes(24))
    with make(str(path), 0, writable=False) as lazy:
        assert lazy.path == path
        assert not lazy.get().writable
        assert isinstance(lazy.get(), kind)


def test_a_get_that_fails_may_be_tried_again(path):
    """The error comes from get, not from the constructor; the empty file of AI-3c is then opened."""
    lazy = LazyIndex.for_offset(path, 0, 4)
    with pytest.raises(InvalidArgumentError):
        lazy.get()
    assert not lazy.is_loaded
    assert lazy.get().length == 0
    lazy.close()


def test_an_unknown_release_is_rejected_immediately(path):
    """Not by the first get, which may come hours later."""
    with pytest.raises(ValueError, match="unknown Kafka release"):
        LazyIndex.for_time(path, 0, dialect="1.0")


@BOTH
def test_an_index_that_was_never_opened_remains_unopened(make, kind, path):
    """Close, unmap and rename open nothing; the name changes although there is no file (LZ-3b)."""
    lazy = make(path, 0, 120)
    lazy.close()
    lazy.close_handler()
    lazy.rename_to(path.with_name("b"))
    assert lazy.path == path.with_name("b")
    assert not lazy.delete_if_exists()
    assert not lazy.is_loaded
    assert list(path.parent.iterdir()) == []
    assert kind is not None


def test_an_unopened_file_is_moved_and_deleted(path):
    """Its content is not read, so it may be anything (LZ-3b)."""
    path.write_bytes(b"anything")
    lazy = LazyIndex.for_offset(path, 0)
    lazy.rename_to(str(path.with_name("b")))
    assert path.with_name("b").read_bytes() == b"anything"
    assert lazy.delete_if_exists()
    assert not path.with_name("b").exists()
    assert not lazy.is_loaded


def test_an_unopened_file_that_cannot_be_moved(path):
    """A missing target directory is an error only if there is a file to move; the name changes in any case (LZ-3b)."""
    target = path.parent / "missing" / "b"
    lazy = LazyIndex.for_offset(path, 0)
    lazy.rename_to(target)
    assert lazy.path == target
    path.touch()
    lazy = LazyIndex.for_offset(path, 0)
    with pytest.raises(FileNotFoundError):
        lazy.rename_to(target)
    assert lazy.path == target
    assert path.exists()


def test_a_directory_that_moved(tmp_path, path):
    """Opened or not, only the name changes (AI-22)."""
    (tmp_path / "moved").mkdir()
    lazy = LazyIndex.for_offset(path, 0, 80)
    lazy.update_parent_dir(tmp_path / "moved")
    assert lazy.path == tmp_path / "moved" / "a"
    index = lazy.get()
    lazy.update_parent_dir(str(tmp_path))
    assert lazy.path == index.path == path
    index.close_handler()


def test_an_opened_index_does_it_itself(path):
    """Rename, unmap, close and delete reach the index; the name is the index's own."""
    lazy = LazyIndex.for_offset(path, 0, 80, dialect="4.3.1")
    index = lazy.get()
    index.append(1, 1)
    lazy.rename_to(path.with_name("b"))
    assert lazy.path == index.path == path.with_name("b")
    lazy.close()
    assert path.with_name("b").stat().st_size == 8
    lazy.close_handler()
    assert lazy.delete_if_exists()
    assert not lazy.delete_if_exists()
    assert lazy.get() is index


def test_two_threads_get_the_same_index(path):
    """Eight threads call get; one opens the file, and all have the same object (LZ-4)."""
    lazy = LazyIndex.for_offset(path, 0, 80)
    barrier = threading.Barrier(8)
    found = []

    def ask() -> None:
        barrier.wait()
        found.append(lazy.get())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len({id(index) for index in found}) == 1
    lazy.close()


def test_a_second_thread_does_not_open_the_index_again(path):
    """While one thread opens, another waits for the lock and then finds the index there (LZ-1)."""
    opened = []
    entered = threading.Event()
    go_on = threading.Event()

    def load(file) -> OffsetIndex:
        entered.set()
        assert go_on.wait(60)
        opened.append(file)
        return OffsetIndex(file, 0, 80)

    lazy = LazyIndex(path, load)
    first = threading.Thread(target=lazy.get)
    first.start()
    assert entered.wait(60)
    second = threading.Thread(target=lazy.get)
    second.start()  # is_loaded is still False: this one has to wait for the lock
    go_on.set()
    first.join()
    second.join()
    assert opened == [path]
    lazy.get().close()
