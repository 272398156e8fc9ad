"""What the readable reference finds of a batch, remembered by the place and the bytes of the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.experiments.fuzz.scripts import BODY_SIZE
from kidx.errors import KidxError
from kidx.records import CorruptRecordError, InvalidRecordError, OffsetTimestamp, RecordBatch, iter_batches
from kidx.records.layout import LOG_OVERHEAD, PREFIX, RECORD_BATCH_OVERHEAD
from kidx.segment.file_records import offset_timestamps_of

if TYPE_CHECKING:
    from kidx.dialect import Dialect

_MOST: Final = 4096
"""Batches that are remembered."""


class LeftToReferenceError(Exception):
    """Only the readable reference knows what has to come of a content."""


class KnownBatch:
    """One batch at its place in a file, and what reading it gives.

    Args:
        batch: of a file.
        dialect: of a release.

    Raises:
        LeftToReferenceError: it has no whole header of its own, or one that answers otherwise after some questions.
    """

    __slots__ = (
        "_base_offset",
        "_dialect",
        "_refusal",
        "_stamps",
        "batch",
        "is_valid",
        "last_offset",
        "magic",
        "max_timestamp",
        "position",
        "size",
    )

    def __init__(self, batch: RecordBatch, dialect: Dialect) -> None:
        self.batch = batch
        self.position, self.size, self.magic = batch.position, batch.size_in_bytes, batch.magic
        if self.magic < 0 or (self.magic >= 2 and self.size < RECORD_BATCH_OVERHEAD):
            raise LeftToReferenceError
        self._dialect = dialect
        self._base_offset: int | KidxError | None = None
        self._stamps: list[OffsetTimestamp] | None = None
        self._refusal: KidxError | None = None
        try:
            self.last_offset = batch.last_offset
            self.max_timestamp = batch.max_timestamp
            self.is_valid = _is_valid(batch)
        except KidxError:
            raise LeftToReferenceError from None

    @property
    def base_offset(self) -> int:
        """Offset of the first record.

        Raises:
            KidxError: it cannot be read.
        """
        if self._base_offset is None:
            try:
                self._base_offset = self.batch.base_offset
            except KidxError as error:
                self._base_offset = error
        if isinstance(self._base_offset, KidxError):
            raise self._base_offset.with_traceback(None)
        return self._base_offset

    def first_stamp(self, timestamp: int, offset: int) -> OffsetTimestamp | None:
        """The first record that is neither before a time nor below an offset; None if there is none.

        Raises:
            KidxError: a record cannot be read.
        """
        if self._stamps is None:
            self._stamps = []
            try:
                self._stamps.extend(offset_timestamps_of(self.batch, BODY_SIZE, self._dialect))
            except KidxError as error:
                self._refusal = error
        for stamp in self._stamps:
            if stamp.timestamp >= timestamp and stamp.offset >= offset:
                return stamp
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)
        return None


def _is_valid(batch: RecordBatch) -> bool:
    try:
        batch.ensure_valid()
    except (CorruptRecordError, InvalidRecordError):
        return False
    return True


class KnownBatches:
    """The batches of contents, most of which are those of contents before.

    Args:
        dialect: of a release.
        source: the file, as errors call it.
    """

    def __init__(self, dialect: Dialect, source: str) -> None:
        self._dialect = dialect
        self._source = source
        self._known: dict[tuple[int, bytes], KnownBatch] = {}

    def of(self, content: bytes) -> tuple[list[KnownBatch], KidxError | None]:
        """The batches of a file, and the error that reading on behind them ends with, if it does.

        Raises:
            LeftToReferenceError: as :class:`KnownBatch`.
        """
        found: list[KnownBatch] = []
        position, end = 0, len(content) - PREFIX.size
        while position < end:
            size = LOG_OVERHEAD + int.from_bytes(content[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
            # Bytes behind which the file ends, or none, are those of no batch.
            key = position, content[position : max(position, position + size)]
            known = self._known.get(key)
            if known is None:
                try:
                    decompressor = self._dialect.decompressor
                    batches = iter_batches(content, position, source=self._source, decompressor=decompressor)
                    batch = next(batches, None)
                except KidxError as error:
                    return found, error
                if batch is None:
                    break
                if len(self._known) >= _MOST:
                    self._known.clear()
                known = self._known[key] = KnownBatch(batch, self._dialect)
            found.append(known)
            position += known.size
        return found, None
