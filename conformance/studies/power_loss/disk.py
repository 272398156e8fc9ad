"""Possible contents of a disk after a power failure, from a journal of writes, renames and syncs.

The rules come from POSIX and Java's documentation, not from one file system:

* A sync of a file makes its content and its length durable. A sync of a mapping, or of data alone, makes the content
  and an increased length durable; a decrease of the length may still be lost.
* Writes since the last sync may be lost or kept page by page (4 KiB), with any of the contents that the page
  has had. A page that is being written when power fails is torn between its sectors (512 bytes), which are atomic.
* The length of a file is its length at the last sync, its current length, or any length in between.
* Each creation, rename and removal since the directory was last synced may be lost. A rename is atomic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from conformance.implementations.jvm.journal import (
    DirectorySynced,
    Event,
    Renamed,
    StepBegins,
    Synced,
    SyncKind,
    Written,
)

PAGE: Final = 4096
SECTOR: Final = 512
_ZEROS: Final = bytes(PAGE)


@dataclass(frozen=True)
class Page:
    """Page of a file whose latest content is lost."""

    file: int  # number of the file in the journal
    number: int  # index of the page in the file


@dataclass(frozen=True)
class Length:
    """Length of a file whose latest value is lost."""

    file: int  # number of the file in the journal


@dataclass(frozen=True)
class Name:
    """Creation, rename or removal that is lost, by its number since the last sync of the directory."""

    number: int


Item = Page | Length | Name
"""Something that is lost by a power failure."""
Loss = Mapping[Item, bytes | int | None]
"""Lost items: for a page its remaining content, for a length its value, for a name None; all else is up to date."""


@dataclass
class FileHistory:
    """History of a file since it was last synced.

    Attributes:
        content: content as a process sees it.
        pages: contents that each page has had, the durable one first; each is a whole page.
        lengths: lengths that the file has had, the durable one first.
    """

    content: bytes = b""
    pages: dict[int, list[bytes]] = field(default_factory=dict)
    lengths: list[int] = field(default_factory=lambda: [0])

    def write(self, content: bytes) -> None:
        """Replace the content."""
        self.content = content
        for number in range(_pages(len(content))):
            page = _page(content, number)
            known = self.pages.setdefault(number, [_ZEROS])
            if known[-1] != page:
                known.append(page)
        if self.lengths[-1] != len(content):
            self.lengths.append(len(content))

    def sync(self, kind: SyncKind) -> None:
        """Make durable what a sync of that kind makes durable."""
        length = len(self.content)
        for number in range(_pages(length)):
            self.pages[number] = [_page(self.content, number)]
        if kind is SyncKind.WHOLE:
            self.lengths = [length]
            self.pages = {number: self.pages[number] for number in range(_pages(length))}
        else:
            self.lengths = [each for each in self.lengths if each >= length]

    def copy(self) -> FileHistory:
        """Return a copy."""
        return FileHistory(self.content, {k: list(v) for k, v in self.pages.items()}, list(self.lengths))


@dataclass
class Disk:
    """All files of a directory at one moment.

    Attributes:
        files: files by their numbers.
        names: numbers of the files by name, as a process sees them.
        durable_names: names when the directory was last synced.
        changes: creations, renames and removals since then.
        event: number of events in the journal that have happened.
        step: number of the current or last operation.
    """

    files: dict[int, FileHistory] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    durable_names: dict[str, int] = field(default_factory=dict)
    changes: list[Renamed] = field(default_factory=list)
    event: int = 0
    step: int = -1

    def apply(self, event: Event) -> None:
        """Apply an event."""
        self.event += 1
        match event:
            case StepBegins(number):
                self.step = number
            case Written(file, content):
                self.files.setdefault(file, FileHistory()).write(content)
            case Renamed():
                _apply(self.names, event)
                self.changes.append(event)
            case Synced(file, kind, _):
                self.files.setdefault(file, FileHistory()).sync(kind)
            case DirectorySynced():
                self.durable_names = dict(self.names)
                self.changes = []

    def copy(self) -> Disk:
        """Return a copy that later events do not change."""
        files = {number: file.copy() for number, file in self.files.items()}
        names, durable = dict(self.names), dict(self.durable_names)
        return Disk(files, names, durable, list(self.changes), self.event, self.step)

    def live(self) -> dict[str, bytes]:
        """Return name and content of every file as a process sees them."""
        return {name: self._history(number).content for name, number in self.names.items()}

    def _history(self, number: int) -> FileHistory:
        return self.files.get(number) or FileHistory()

    def surviving(self, loss: Loss) -> dict[str, bytes]:
        """Return the files after a power failure with this loss."""
        names = dict(self.durable_names)
        for number, change in enumerate(self.changes):
            if Name(number) not in loss:
                _apply(names, change)
        return {name: self._content(file, loss) for name, file in names.items()}

    def _content(self, file: int, loss: Loss) -> bytes:
        history = self._history(file)
        length = loss.get(Length(file), history.lengths[-1])
        assert isinstance(length, int)
        pages = list[bytes]()
        for number in range(_pages(length)):
            page = loss.get(Page(file, number), history.pages.get(number, [_ZEROS])[-1])
            assert isinstance(page, bytes)
            pages.append(page)
        return b"".join(pages)[:length]

    def options(self) -> dict[Item, list[bytes | int | None]]:
        """Return the items that may be lost, each with the values that may remain, the durable one first."""
        found: dict[Item, list[bytes | int | None]] = {}
        reachable = {*self.durable_names.values(), *(change.file for change in self.changes)} - {-1}
        for file in sorted(reachable):
            history = self._history(file)
            others = _without_last(history.lengths)
            if others:
                found[Length(file)] = [*others]
            for number, pages in sorted(history.pages.items()):
                if older := _without_last(pages):
                    found[Page(file, number)] = [*older]
        for number in range(len(self.changes)):
            found[Name(number)] = [None]
        return found

    def described(self, item: Item, value: bytes | int | None) -> str:
        """Return a description of a lost item."""
        if isinstance(item, Name):
            old, new, _ = self.changes[item.number]
            if not old:
                return f"the creation of {new}"
            return f"the rename of {old} to {new}" if new else f"the removal of {old}"
        history, name = self._history(item.file), self.name_of(item.file)
        if isinstance(item, Length):
            return f"the length of {name}: {value!r} instead of {history.lengths[-1]}"
        pages = history.pages[item.number]
        if value == pages[0]:
            return f"the writes to page {item.number} of {name} since it was last synced"
        if value in pages:
            return f"the last writes to page {item.number} of {name}"
        return f"some sectors of page {item.number} of {name}"

    def name_of(self, file: int) -> str:
        """Return the current or last name of a file."""
        for names in (self.names, self.durable_names):
            for name, number in names.items():
                if number == file:
                    return name
        return next((change.new for change in reversed(self.changes) if change.file == file), f"file {file}")

    def is_ordered(self, loss: Loss) -> bool:
        """Return True if no change of a name survives a lost earlier one, as in a journalling file system."""
        lost = [item.number for item in loss if isinstance(item, Name)]
        return sorted(lost) == list(range(len(self.changes) - len(lost), len(self.changes)))


def torn(pages: Sequence[bytes], sectors: Iterable[bool]) -> bytes:
    """Return a page with the durable content in the lost sectors, and the latest in the others.

    Args:
        pages: contents of the page, the durable one first.
        sectors: True for each sector that is lost.
    """
    return b"".join(
        pages[0 if lost else -1][number * SECTOR : (number + 1) * SECTOR] for number, lost in enumerate(sectors)
    )


def disks(events: Iterable[Event]) -> Iterator[Disk]:
    """Yield the disk after each event, always the same object; use :meth:`Disk.copy` to keep a state."""
    disk = Disk()
    for event in events:
        disk.apply(event)
        yield disk


_Value = TypeVar("_Value", bytes, int)


def _apply(names: dict[str, int], change: Renamed) -> None:
    if change.old:
        names.pop(change.old, None)
    if change.new:
        names[change.new] = change.file


def _pages(length: int) -> int:
    return -(-length // PAGE)


def _page(content: bytes, number: int) -> bytes:
    return content[number * PAGE : (number + 1) * PAGE].ljust(PAGE, b"\0")


def _without_last(values: Sequence[_Value]) -> list[_Value]:
    """Return the distinct values in their order, without the last one."""
    return [value for value in dict.fromkeys(values) if value != values[-1]]
