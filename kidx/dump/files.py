"""Dump of several files, each by its suffix (``DumpLogSegments.main``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kidx.dump.entry import Entry
from kidx.dump.indexes import IndexOptions, dump_offset_index, dump_time_index, dump_transaction_index
from kidx.dump.logs import CHECKPOINT_SUFFIX, LogOptions, dump_log
from kidx.dump.mismatches import Mismatches
from kidx.dump.producers import dump_producer_snapshot
from kidx.dump.wording import wording_of
from kidx.segment.files import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)

if TYPE_CHECKING:
    from kidx.dialect import Dialect

SNAPSHOT_SUFFIX: Final = ".snapshot"


@dataclass(frozen=True, slots=True)
class Options:
    """Options that apply to every file."""

    index: IndexOptions = field(default_factory=IndexOptions)
    log: LogOptions = field(default_factory=LogOptions)


class Dump:
    """Dump of several files in one run.

    Args:
        dialect: rules of the release whose texts and checks are used.
        options: options of the dump.

    Attributes:
        mismatches: the errors found so far.
    """

    def __init__(self, dialect: Dialect, options: Options | None = None) -> None:
        self.dialect = dialect
        self.options = options or Options()
        self.mismatches = Mismatches()

    def file(self, name: str) -> Iterator[Entry]:
        """Yield the lines of one file, beginning with its name; a file with an unknown suffix has no other line.

        Raises:
            KidxError: a part cannot be read; Kafka ends there with a stack trace.
            OSError: the file, or another file of the segment that it needs, cannot be read.
        """
        path, shown = Path(name), as_java_shows(name)
        yield Entry("file", {"file": shown}, f"Dumping {shown}")
        suffix = path.suffix
        if suffix == LOG_SUFFIX or (suffix == CHECKPOINT_SUFFIX and self.dialect.dumps_checkpoints):
            yield from dump_log(path, self.options.log, self.mismatches, self.dialect)
        elif suffix == OFFSET_INDEX_SUFFIX:
            yield from dump_offset_index(path, shown, self.options.index, self.mismatches, self.dialect)
        elif suffix == TIME_INDEX_SUFFIX:
            yield from dump_time_index(path, shown, self.options.index, self.mismatches, self.dialect)
        elif suffix == TRANSACTION_INDEX_SUFFIX:
            yield from dump_transaction_index(path, self.dialect)
        elif suffix == SNAPSHOT_SUFFIX:
            yield from dump_producer_snapshot(path, wording_of(self.dialect))
        else:
            yield Entry("unknown", {"file": shown}, f"Ignoring unknown file {shown}")

    def mismatch_lines(self) -> Iterator[str]:
        """Yield the lines that Kafka prints on stderr at the end."""
        return self.mismatches.lines(wording_of(self.dialect))


def as_java_shows(name: str) -> str:
    """Return a path as ``java.io.File`` shows it: without repeated slashes and without one at the end."""
    return re.sub("/+", "/", name).rstrip("/") or "/"
