"""Classification of differences between files of two participants.

Two index files may differ only in the unused bytes after their entries, or have different entries that are both correct
for the log. In both cases, lookups find the same records.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from conformance.attribution.verdict_levels import suffix_of
from kidx.errors import KidxError
from kidx.layout import OFFSET_INDEX, TIME_INDEX
from kidx.records import iter_memory_batches

if TYPE_CHECKING:
    from kidx.layout import Layout

Files = Mapping[str, bytes | None]


class FileDifference(NamedTuple):
    """File that differs.

    Attributes:
        name: The name of the file.
        how: The keywords for the difference.
            ``room``: only zeros or a partial entry at the end differ; a missing file counts as empty.
            ``tail``: only bytes after the last expected entry that is not zeros differ.
            ``longer``: the actual file has more of these bytes.
            ``sound``: the actual file's entries are correct for its log. If segments follow, a time index ends with
            the largest timestamp.
            ``sparse`` and the suffix: the actual file has no entry, and needs none.
            ``empty``: one side has an empty file, the other none.
            ``absent`` and the suffix: one side has no such file.
    """

    name: str
    how: frozenset[str] = frozenset()


def file_differences(expected: Files, actual: Files) -> tuple[FileDifference, ...]:
    """Return the files that differ, by name."""
    names = sorted(name for name in {*expected, *actual} if expected.get(name) != actual.get(name))
    return tuple(FileDifference(name, frozenset(_how(name, expected.get(name), actual))) for name in names)


def _how(name: str, expected: bytes | None, files: Files) -> list[str]:
    content, path = files.get(name), PurePath(name)
    if path.suffix != (suffix := suffix_of(name)):
        path = PurePath(path.stem.removesuffix(suffix) + suffix)
    is_index = path.suffix in _SOUND
    found = []
    if is_index and _used(path, expected) == _used(path, content):
        found += ["room", "tail"]
        if len(content or b"") > len(expected or b""):
            found.append("longer")
    elif is_index and (content or b"").startswith(_used(path, expected)):
        found.append("tail")
    if is_index and content and path.stem.isdecimal():
        log = files.get(f"{path.stem}.log")
        if log is not None and _SOUND[path.suffix](content, log, int(path.stem)) and _is_finished(path, content, files):
            found.append("sound")
    if is_index and _used(path, expected) and not _used(path, content) and _is_finished(path, b"", files):
        found.append(f"sparse{path.suffix}")
    if not expected and not content:
        found.append("empty")
    if expected is None or content is None:
        found.append(f"absent{path.suffix}")
    return found


class _Place(NamedTuple):
    """Position, first and last offset, and largest timestamp of a batch."""

    position: int
    first: int
    last: int
    largest: int


def _places(log: bytes) -> list[_Place]:
    """Return the batches of a log, up to the first unreadable batch."""
    found, position = [], 0
    try:
        for batch in iter_memory_batches(log):
            found.append(_Place(position, batch.base_offset, batch.last_offset, batch.max_timestamp))
            position += batch.size_in_bytes
    except KidxError:
        pass
    return found


def _is_sound_offset_index(data: bytes, log: bytes, base: int) -> bool:
    """Return True if each entry is the last offset of a batch and the position of this batch or an earlier one."""
    places = _places(log)
    starts, ends = {place.position: place for place in places}, {place.last: place for place in places}
    before = -1
    for relative, position in _entries(data, OFFSET_INDEX):
        start, end = starts.get(position), ends.get(base + relative)
        if start is None or end is None or start.position > end.position or relative <= before:
            return False
        before = relative
    return True


def _is_sound_time_index(data: bytes, log: bytes, base: int) -> bool:
    """Return True if each entry has the timestamp of a batch that no earlier batch exceeds, and both fields ascend."""
    places = _places(log)
    known = {place.largest for place in places}
    before = (-1, -1)
    for timestamp, relative in _entries(data, TIME_INDEX):
        larger = any(place.largest > timestamp for place in places if place.last < base + relative)
        if timestamp not in known or larger or timestamp <= before[0] or relative < before[1]:
            return False
        before = timestamp, relative
    return True


def _used(path: PurePath, data: bytes | None) -> bytes:
    """Return an index without the zeros after its entries and without a partial entry at its end."""
    size = (OFFSET_INDEX if path.suffix == ".index" else TIME_INDEX).size
    whole = (data or b"")[: len(data or b"") // size * size]
    return whole.rstrip(b"\0")


def _is_finished(path: PurePath, data: bytes, files: Files) -> bool:
    """Return True if the last entry of a time index has the largest timestamp, or if no segment follows."""
    if path.suffix != ".timeindex" or not any(name.endswith(".log") and name > f"{path.stem}.log" for name in files):
        return True
    entries = _entries(data, TIME_INDEX)
    largest = max((place.largest for place in _places(files.get(f"{path.stem}.log") or b"")), default=-1)
    of_zeros = 0 if len(data or b"") >= TIME_INDEX.size else -1  # the entry of the first record, with timestamp 0
    return (entries[-1][0] if entries else of_zeros) == largest


def _entries(data: bytes, layout: Layout) -> list[tuple[int, int]]:
    """Return the entries of an index, without the preallocated tail."""
    whole = len(data) - len(data) % layout.size
    found = [layout.struct.unpack_from(data, at) for at in range(0, whole, layout.size)]
    while found and not any(found[-1]):
        found.pop()
    return found


_SOUND = {".index": _is_sound_offset_index, ".timeindex": _is_sound_time_index}
"""The check of whether the entries of an index are correct for its log, by suffix."""
