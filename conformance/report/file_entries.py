"""Text about the first difference of two files: the differing entry, batch, line or bytes, field by field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.report.fields import MARK
from kidx.layout import (
    ABORTED_TXN,
    LOG_OVERHEAD,
    MESSAGE_V0,
    MESSAGE_V1,
    OFFSET_INDEX,
    PREFIX,
    RECORD_BATCH,
    TIME_INDEX,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kidx.layout import Layout

# Layouts of the entries of a file, by its suffix or its machine, and of a batch's header, by its magic.
_LAYOUTS: Final = {".index": OFFSET_INDEX, ".timeindex": TIME_INDEX, ".txnindex": ABORTED_TXN}
_OF_MACHINE: Final = {"offset": OFFSET_INDEX, "time": TIME_INDEX, "transaction": ABORTED_TXN}
_OF_MAGIC: Final = (MESSAGE_V0, MESSAGE_V1, RECORD_BATCH)
_ALWAYS_SHOWN: Final = frozenset({"base_offset", "offset", "length", "partition_leader_epoch", "crc", "record_count"})
"""Fields of a batch that are shown even if they are equal."""
_ROW: Final = 16
"""Number of bytes that are shown of a file in another format."""
_END: Final = "(end of file)"


class FileDifference(NamedTuple):
    """First difference of two files.

    Attributes:
        title: file, lengths, and position of the difference.
        expected: expected content at the difference.
        actual: actual content at the difference.
        more: names of other files that differ.
        where: file and part of the file with the difference.
    """

    title: str
    expected: str
    actual: str
    more: tuple[str, ...] = ()
    where: str = ""


def first_difference(machine: str, expected: Any, actual: Any) -> FileDifference | None:
    """Return the first difference of two files or directories; None if the values are not files.

    Args:
        machine: machine of the trace, which determines the format of a file without a name.
        expected: content in hexadecimal, or None for no file; for a directory, a list of (name, content).
        actual: the actual content, in the same form.
    """
    try:
        files = list(_files(expected, actual))
    except (TypeError, ValueError):
        return _listing(expected, actual)
    if not files:
        return None
    (name, expected_bytes, actual_bytes), *others = files
    found = _of_file(machine, name, expected_bytes, actual_bytes)
    return found._replace(more=tuple(each for each, _, _ in others))


def _listing(expected: Any, actual: Any) -> FileDifference | None:
    """Return the difference of two lists of names; None if a value is not such a list."""
    if not all(isinstance(side, list) and all(isinstance(name, str) for name in side) for side in (expected, actual)):
        return None
    missing = [name for name in expected if name not in actual]
    extra = [name for name in actual if name not in expected]
    parts = [f"without {', '.join(missing)}"] * bool(missing) + [f"with {', '.join(extra)} as well"] * bool(extra)
    return FileDifference("", _names(expected), f"{_names(actual)} ({' and '.join(parts)})")


def _names(names: list[str]) -> str:
    return ", ".join(names) or "no file"


def _files(expected: Any, actual: Any) -> Iterator[tuple[str, bytes | None, bytes | None]]:
    """Yield name, expected content and actual content of every differing file; the name is empty outside directories.

    Raises:
        TypeError: A value is not a file or directory.
        ValueError: A content is not hexadecimal, or a list has no pairs.
    """
    if isinstance(expected, list) and isinstance(actual, list):
        expected_files, actual_files = ({str(name): _bytes(data) for name, data in side} for side in (expected, actual))
        yield from (
            (n, expected_files.get(n), actual_files.get(n))
            for n in {**expected_files, **actual_files}
            if expected_files.get(n) != actual_files.get(n)
        )
    elif expected != actual:
        yield "", _bytes(expected), _bytes(actual)


def _bytes(data: Any) -> bytes | None:
    return None if data is None else bytes.fromhex(data)


def _of_file(machine: str, name: str, expected: bytes | None, actual: bytes | None) -> FileDifference:
    label = f"{name}: " if name else ""
    if expected is None or actual is None:
        one, other = ("no file" if data is None else f"a file of {len(data)} bytes" for data in (expected, actual))
        return FileDifference(f"{label}one side has no file", one, other, where=name)
    pairs = enumerate(zip(expected, actual, strict=False))
    at = next((place for place, (a, b) in pairs if a != b), min(len(expected), len(actual)))
    if name.endswith(".log") or ".log." in name:
        where, sides = _batches(expected, actual, at)
    elif lines := _lines(expected, actual):
        where, sides = lines
    else:
        layout = _LAYOUTS.get(_suffix(name)) if name else _OF_MACHINE.get(machine)
        where, sides = _entries(layout, expected, actual, at)
    title = f"{label}expected {len(expected)} bytes, actual {len(actual)}; first difference at byte {at}, in {where}"
    return FileDifference(title, sides[0], sides[1], where=f"{label}{where}")


def _suffix(name: str) -> str:
    return "".join(re.findall(r"\.(?:index|timeindex|txnindex)(?=\.|$)", name)[:1])


# -- content at the difference -------------------------------------------------------------------------------------


def _entries(layout: Layout | None, expected: bytes, actual: bytes, at: int) -> tuple[str, list[str]]:
    """Return the name of the entry at a position, and its text on both sides; in an unknown format, a row of bytes."""
    size = _ROW if layout is None else layout.size
    start = at - at % size
    rows = [data[start : start + size] for data in (expected, actual)]
    if layout is None:
        return f"the bytes from {start}", [row.hex(" ") or _END for row in rows]
    return f"entry {start // size}", _decoded(layout, rows, [field.name for field in layout.fields])


def _batches(expected: bytes, actual: bytes, at: int) -> tuple[str, list[str]]:
    """Return the name of the batch at a position, and its header on both sides, or the bytes after the header."""
    start = 0
    while start + PREFIX.size <= len(expected):
        end = start + LOG_OVERHEAD + int.from_bytes(expected[start + 8 : start + LOG_OVERHEAD])
        if at < end or end <= start + LOG_OVERHEAD:
            break
        start = end
    base = int.from_bytes(expected[start : start + 8], signed=True)
    where = f"the batch from byte {start}" + (f", base offset {base}" if start + 8 <= len(expected) else "")
    magics = {data[start + 16] for data in (expected, actual) if len(data) > start + 16}
    layout = _OF_MAGIC[max(magics)] if magics and max(magics) < len(_OF_MAGIC) else None
    if layout is None or at >= start + layout.size:
        row, sides = _entries(None, expected, actual, at)
        return f"{where}, {row}", sides
    rows = [data[start : start + layout.size] for data in (expected, actual)]
    names = [
        field.name
        for field in layout.fields
        if field.name in _ALWAYS_SHOWN or len({row[field.offset : field.offset + field.size] for row in rows}) > 1
    ]
    return where, _decoded(layout, rows, names)


def _lines(expected: bytes, actual: bytes) -> tuple[str, list[str]] | None:
    """Return the number of the first line that differs, and this line on both sides; None if the files are not text."""
    try:
        texts = [data.decode("ascii").split("\n") for data in (expected, actual)]
    except UnicodeDecodeError:
        return None
    if not all(line.isprintable() for lines in texts for line in lines):
        return None
    number = next((number for number, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    return f"line {number + 1}", [repr(lines[number]) if number < len(lines) else _END for lines in texts]


def _decoded(layout: Layout, rows: list[bytes], names: list[str]) -> list[str]:
    """Return both rows field by field, with a mark before differing fields; if all fields are shown, also as bytes."""
    cells: list[list[str]] = [[], []]
    for field in layout.fields:
        parts = [row[field.offset : field.offset + field.size] for row in rows]
        mark = MARK if parts[0] != parts[1] else " "
        if field.name in names:
            texts = [_cell(field.name, part, field.size) for part in parts]
            width = max(map(len, texts))
            for side, text in zip(cells, texts, strict=True):
                side.append(mark + text.ljust(width))
    lines = [" ".join(side) for side in cells]
    if len(names) == len(layout.fields):
        widths = max(map(len, lines))
        lines = [f"{line.ljust(widths)}  {' '.join(_hex(layout, row))}" for line, row in zip(lines, rows, strict=True)]
    return [_END if not row else line.rstrip() for line, row in zip(lines, rows, strict=True)]


def _cell(name: str, part: bytes, size: int) -> str:
    if len(part) < size:
        return f"{name}=(truncated)" if part else f"{name}=-"
    return f"{name}=0x{part.hex()}" if name == "crc" else f"{name}={int.from_bytes(part, signed=True)}"


def _hex(layout: Layout, row: bytes) -> list[str]:
    return [row[field.offset : field.offset + field.size].hex() for field in layout.fields]
