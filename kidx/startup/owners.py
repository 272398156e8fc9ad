"""Owners of files: a log directory goes offline if the broker's user cannot read or write one of its files."""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kidx.discovery import EPOCHS, parse_segment_file
from kidx.printable import printable
from kidx.startup.answers import Remark
from kidx.startup.checkpoints import PARTITION_METADATA
from kidx.startup.names import is_partition_name

_READ, _WRITE, _SEARCH = 4, 2, 1
_ROOT: Final = 0


def inaccessible(log_directory: Path) -> Remark | None:
    """Return a file that the broker's user cannot use; None without such a file.

    The broker is assumed to run as the user who owns most files of the log directory.
    """
    found = list(_needed(log_directory))
    owners = Counter((status.st_uid, status.st_gid) for _, status, _ in found)
    (user, group), _ = owners.most_common(1)[0] if owners else ((_ROOT, _ROOT), 0)
    if user == _ROOT:
        return None
    for path, status, needed in found:
        if status.st_uid != user and _granted(status, group) & needed != needed:
            reason = (
                f"it belongs to {_name(status.st_uid)}, and most files of the log directory to {_name(user)}: a broker "
                f"that runs as {_name(user)} gets Permission denied"
            )
            return Remark(path, reason, f"give it to {_name(user)} (chown), if the broker runs as {_name(user)}")
    return None


def _granted(status: os.stat_result, group: int) -> int:
    """Return the permissions that a user has who is not the owner."""
    return (status.st_mode >> 3 if status.st_gid == group else status.st_mode) & (_READ | _WRITE | _SEARCH)


def _needed(log_directory: Path) -> Iterator[tuple[Path, os.stat_result, int]]:
    """Yield the files and directories that a start opens, with the permissions that it needs."""
    with contextlib.suppress(OSError):
        for directory in sorted(log_directory.iterdir()):
            status = directory.stat()
            if not stat.S_ISDIR(status.st_mode) or not is_partition_name(directory.name):
                continue
            yield directory, status, _READ | _WRITE | _SEARCH
            for path in sorted(directory.iterdir()):
                if parse_segment_file(path.name) is not None:
                    yield path, path.stat(), _READ | _WRITE
                elif path.name in {EPOCHS, PARTITION_METADATA}:
                    yield path, path.stat(), _READ


def _name(user: int) -> str:
    try:
        return printable(pwd.getpwuid(user).pw_name)
    except KeyError:
        return f"user {user}"
