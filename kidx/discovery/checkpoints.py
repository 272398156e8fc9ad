"""The checkpoints of offsets in a log directory (``OffsetCheckpointFile``)."""

from __future__ import annotations

import os
from typing import Final

from kidx.files import read_text
from kidx.java_numbers import INT_MAX
from kidx.printable import counted, shortened

_OFFSET_MAX: Final = 2**63 - 1


def read_offset_checkpoint(path: str | os.PathLike[str]) -> dict[tuple[str, int], int]:
    """Return the offsets of a checkpoint file of a log directory, by topic and partition (``OffsetCheckpointFile``).

    Raises:
        FileNotFoundError: the file does not exist.
        OSError: the file cannot be read, or is not a checkpoint.
    """
    lines = read_text(path).splitlines()
    if not lines:
        return {}  # a broker creates the file empty, a minute before it writes the first offsets
    try:
        version, count = int(lines[0]), int(lines[1])
    except (IndexError, ValueError):
        version, count = -1, -1
    if version != 0 or count != len(lines) - 2:
        raise OSError(
            f"{path} is not a checkpoint of offsets of version 0: it begins with {shortened(lines[0])} and has "
            f"{counted(max(len(lines) - 2, 0), 'entry')}"
        )
    return dict(_offset(line, number, path) for number, line in enumerate(lines[2:], 3))


def _offset(line: str, number: int, path: str | os.PathLike[str]) -> tuple[tuple[str, int], int]:
    try:
        topic, partition, offset = line.rsplit(None, 2)
        entry = (topic, int(partition)), int(offset)
    except ValueError:
        entry = ("", -1), 0
    if not (0 <= entry[0][1] <= INT_MAX and abs(entry[1]) <= _OFFSET_MAX):
        raise OSError(
            f"{os.fspath(path)} is not a checkpoint of offsets: line {number} is not a topic, partition and offset: "
            f"{shortened(line)}"
        )
    return entry
