"""Log directories that have lost the id under which KRaft's metadata know them (from 3.7)."""

from __future__ import annotations

import contextlib
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kidx.discovery import META_PROPERTIES, parse_partition
from kidx.startup.answers import Remark
from kidx.startup.checkpoints import UnreadableError, properties_of
from kidx.startup.directories import names_in
from kidx.startup.remedies import NEW_DIRECTORY_ID, NEW_ID

if TYPE_CHECKING:
    from pathlib import Path


def is_reserved(directory_id: str) -> bool:
    """Return True if an id names no log directory: it is empty, or reserved for *migrating*, *unassigned* or *lost*.

    As ``DirectoryId.reserved``; a partition that was created while its broker was stopped is *unassigned*.
    """
    number = urlsafe_b64decode(f"{directory_id}==") if directory_id else bytes(16)
    return not any(number[:8]) and int.from_bytes(number[8:], signed=True) < 100


def without_directory_ids(directories: Iterable[Path], recorded: Iterable[str]) -> Iterator[Remark]:
    """Yield a remark about each log directory with partitions whose ``meta.properties`` has no ``directory.id``.

    Args:
        directories: log directories of a broker.
        recorded: ids of log directories in KRaft's metadata, some of which may be reserved.
    """
    if all(map(is_reserved, recorded)):
        return
    for directory in directories:
        with contextlib.suppress(UnreadableError):
            properties = properties_of(directory)
            lacks_id = properties is not None and "directory.id" not in properties
            if lacks_id and any(map(parse_partition, names_in(directory))):
                yield Remark(directory / META_PROPERTIES, NEW_DIRECTORY_ID, NEW_ID)
