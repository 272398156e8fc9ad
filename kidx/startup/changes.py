"""Changes of a log directory that an operator can make before a start, and the view in which each is tried first.

A view is a scratch directory with the checkpoints of the log directory and links to the files of one partition. A
change replaces links and copies of the view, never a file of the log directory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kidx.discovery import CLEAN_SHUTDOWN, OFFSET_CHECKPOINTS, RECOVERY_POINTS, START_OFFSETS, parse_partition
from kidx.files import read_small
from kidx.printable import shell_word
from kidx.startup.checkpoints import UnreadableError, offsets_of
from kidx.startup.views import Shown

_COPIED: Final = (*OFFSET_CHECKPOINTS, CLEAN_SHUTDOWN)
"""Files of a log directory that decide what a start does with a log."""
_LARGEST_CHECKPOINT: Final = 64 << 20
"""Maximum size in bytes of a file that is copied whole."""

_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


class Change(NamedTuple):
    """Change of a partition, or of its line in a checkpoint.

    Attributes:
        command: shell command for the operator.
        apply: the same on a view, given the directory of the partition in it.
    """

    command: str
    apply: Callable[[Path], None]


def make_directory_view(partition: Path, scratch: Path) -> Path:
    """Fill a scratch directory with the view of a log directory and one of its partitions.

    Args:
        partition: directory of the partition; only read.
        scratch: an empty directory.

    Returns:
        The directory of the partition in the view.

    Raises:
        OSError: the directory or a checkpoint cannot be read.
    """
    for name in _COPIED:
        source = partition.parent / name
        if source.exists():
            (scratch / name).write_bytes(read_small(source, limit=_LARGEST_CHECKPOINT))
    view = scratch / partition.name
    view.mkdir()
    with os.scandir(partition) as entries:
        for entry in entries:
            (view / entry.name).symlink_to(Path(entry.path).absolute())
    return view


def set_recovery_point(partition: Path, offset: int) -> Iterator[Change]:
    """Yield the change that makes a start recover a log from an offset on only."""
    return _checkpointed(partition, RECOVERY_POINTS, offset)


def forget_log_start(partition: Path) -> Iterator[Change]:
    """Yield the change that makes a log start with its first segment."""
    return _checkpointed(partition, START_OFFSETS, None)


def forget_clean_stop(partition: Path) -> Change:
    """Return the change that makes a start recover all logs of the log directory."""
    return _moved(partition.parent / CLEAN_SHUTDOWN, lambda view: view.parent / CLEAN_SHUTDOWN)


def move_out(path: Path) -> Change:
    """Return the change that moves a file out of its partition."""
    return _moved(path, lambda view: view / path.name)


def _moved(path: Path, viewed: Callable[[Path], Path]) -> Change:
    aside = _aside(path)
    command = f"mkdir -p {aside} && mv -n {shell_word(path.absolute())} {aside}"
    return Change(command, lambda view: viewed(view).unlink())


def _aside(path: Path) -> str:
    """Return the directory for a file that is moved out of its directory, as a word of a command.

    It is next to the log directory, and each partition has a directory in it: their files have the same names.
    """
    directory = path.absolute().parent
    if path.name == CLEAN_SHUTDOWN:
        return shell_word(f"{directory}.aside")
    return shell_word(f"{directory.parent}.aside/{directory.name}")


def rename(path: Path, name: str) -> Change:
    """Return the change that gives a file of a partition another name."""
    command = f"mv -n {shell_word(path.absolute())} {shell_word(path.absolute().with_name(name))}"
    return Change(command, lambda view: _rename(view / path.name, name))


def _rename(path: Path, name: str) -> None:
    path.replace(path.with_name(name))


def cut(path: Path, size: int) -> Change:
    """Return the change that leaves the first bytes of a file, of which a copy is kept."""

    def apply(view: Path) -> None:
        _show(Shown(path, size), view / path.name)

    return Change(f"{_kept_copy(path)} && truncate -s {size} {shell_word(path.absolute())}", apply)


def _kept_copy(path: Path) -> str:
    """Return the command that copies a file before a change; the copy's name has its size, and replaces no other."""
    aside, size = _aside(path), path.stat().st_size
    return f"mkdir -p {aside} && cp {shell_word(path.absolute())} {aside}/{shell_word(f'{path.name}.{size}')}"


def write_number(path: Path, position: int, number: int) -> Change:
    """Return the change that writes a 64-bit number into a file, of which a copy is kept."""
    data = number.to_bytes(8, "big", signed=True)
    octal = "".join(f"\\{byte:03o}" for byte in data)

    def apply(view: Path) -> None:
        _show(Shown(path, None, position, data), view / path.name)

    write = f"printf '{octal}' | dd of={shell_word(path.absolute())} bs=1 seek={position} conv=notrunc"
    return Change(f"{_kept_copy(path)} && {write}", apply)


def _show(shown: Shown, link: Path) -> None:
    """Show a file instead of the file of a link, without a copy."""
    link.unlink()
    shown.write(link)


def _checkpointed(partition: Path, name: str, offset: int | None) -> Iterator[Change]:
    """Yield the change of a line in a checkpoint of offsets, if that is legible; no offset removes the line."""
    topic, number, _ = parse_partition(partition.name) or ("", 0, "")
    path, key = (partition.parent / name).absolute(), (topic, number)
    try:
        before = offsets_of(path)
    except UnreadableError:
        return
    if _TOPIC.fullmatch(topic) is None or before.get(key) == offset:
        return
    after = {each: value for each, value in before.items() if each != key}
    if offset is not None:
        after[key] = offset
    line, file = f"{topic} {number} {offset}", shell_word(path)
    pattern = rf"^{topic}[[:space:]]+{number}[[:space:]]".replace(".", r"\.")
    count = f"2s/.*/{len(after)}/"
    if not before:
        command = f"printf '0\\n1\\n{line}\\n' > {file}"
    elif offset is None:
        command = f"sed -E -i -e '{count}' -e '/{pattern}/d' {file}"
    elif key in before:
        command = f"sed -E -i 's/{pattern}.*/{line}/' {file}"
    else:
        command = f"sed -E -i -e '{count}' -e '$a {line}' {file}"

    def apply(view: Path) -> None:
        lines = ["0", str(len(after)), *(f"{topic} {number} {value}" for (topic, number), value in after.items())]
        (view.parent / name).write_text("".join(f"{each}\n" for each in lines), "utf-8")

    yield Change(command, apply)
