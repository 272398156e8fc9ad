"""Log directories that have lost the id under which KRaft's metadata know them (from 3.7)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kidx.discovery import META_PROPERTIES, parse_partition
from kidx.startup.answers import Blocker
from kidx.startup.checkpoints import UnreadableError, properties_of
from kidx.startup.directories import names_in
from kidx.startup.remedies import NEW_DIRECTORY_ID, NEW_ID

if TYPE_CHECKING:
    from pathlib import Path


def without_directory_ids(directories: Iterable[Path], recorded: Iterable[str]) -> Iterator[Blocker]:
    """Yield a remark about each log directory with partitions whose ``meta.properties`` has no ``directory.id``.

    Args:
        directories: log directories of a broker.
        recorded: ids of log directories in KRaft's metadata; an id that consists of ``A`` means that no id is assigned.
    """
    if not any(directory_id.strip("A") for directory_id in recorded):
        return
    for directory in directories:
        with contextlib.suppress(UnreadableError):
            properties = properties_of(directory)
            lacks_id = properties is not None and "directory.id" not in properties
            if lacks_id and any(map(parse_partition, names_in(directory))):
                yield Blocker(directory / META_PROPERTIES, NEW_DIRECTORY_ID, NEW_ID)
