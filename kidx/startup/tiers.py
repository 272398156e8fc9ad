"""Start of a broker with tiered storage: it opens the cache of remote index files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kidx.remote.entry import DIRECTORY
from kidx.remote.loading import faults_of
from kidx.startup.answers import Remark

if TYPE_CHECKING:
    from kidx.dialect import Dialect


def check_cache(directory: Path, dialect: Dialect) -> list[Remark]:
    """Return the obstacles to opening the cache of a log directory (RC-2, RC-5).

    Args:
        directory: directory in the log directory: the cache, or another directory.
        dialect: rules of the broker's release.
    """
    if directory.name != DIRECTORY or not dialect.has_remote_index_cache:
        return []
    try:
        return [Remark(fault.path, fault.reason) for fault in faults_of(directory, dialect)]
    except OSError as error:
        return [Remark(directory, f"cannot be read: {error.strerror}")]
