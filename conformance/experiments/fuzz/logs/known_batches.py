"""Cache of the readable reference's results for batches, by position and bytes of the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.experiments.fuzz.probes import BODY_SIZE
from kidx.errors import KidxError
from kidx.records import CorruptRecordError, InvalidRecordError, OffsetTimestamp, RecordBatch, iter_batches
from kidx.records.layout import LOG_OVERHEAD, PREFIX, RECORD_BATCH_OVERHEAD
from kidx.segment.file_records import offset_timestamps_of

if TYPE_CHECKING:
    from kidx.dialect import Dialect

_MOST: Final = 4096
"""Maximum number of cached batches."""


class NeedsReferenceError(Exception):
    """Content whose expected results need the readable reference."""


class KnownBatch:
    """Batch at its position in a file, with cached results of reading it.

    Args:
        batch: A batch of a file.
        dialect: The dialect of a release.

    Raises:
        NeedsReferenceError: The header is incomplete, or results depend on earlier queries.
    """

    __slots__ = (
        "_base_offset",
        "_dialect",
        "_error",
        "_records",
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
            raise NeedsReferenceError
        self._dialect = dialect
        self._base_offset: int | KidxError | None = None
        self._records: list[OffsetTimestamp] | None = None
        self._error: KidxError | None = None
        try:
            self.last_offset = batch.last_offset
            self.max_timestamp = batch.max_timestamp
            self.is_valid = _is_valid(batch)
        except KidxError:
            raise NeedsReferenceError from None

    @property
    def base_offset(self) -> int:
        """Offset of the first record.

        Raises:
            KidxError: The offset cannot be read.
        """
        if self._base_offset is None:
            try:
                self._base_offset = self.batch.base_offset
            except KidxError as error:
                self._base_offset = error
        if isinstance(self._base_offset, KidxError):
            raise self._base_offset.with_traceback(None)
        return self._base_offset

    def first_record(self, timestamp: int, offset: int) -> OffsetTimestamp | None:
        """Return the first record from a timestamp and from an offset on, or None.

        Raises:
            KidxError: A record cannot be read.
        """
        if self._records is None:
            self._records = []
            try:
                self._records.extend(offset_timestamps_of(self.batch, BODY_SIZE, self._dialect))
            except KidxError as error:
                self._error = error
        for stamp in self._records:
            if stamp.timestamp >= timestamp and stamp.offset >= offset:
                return stamp
        if self._error is not None:
            raise self._error.with_traceback(None)
        return None


def _is_valid(batch: RecordBatch) -> bool:
    try:
        batch.ensure_valid()
    except (CorruptRecordError, InvalidRecordError):
        return False
    return True


class KnownBatches:
    """Cache of the batches of contents, most of which occurred in earlier contents.

    Args:
        dialect: The dialect of a release.
        source: The name of the file in error texts.
    """

    def __init__(self, dialect: Dialect, source: str) -> None:
        self._dialect = dialect
        self._source = source
        self._known: dict[tuple[int, bytes], KnownBatch] = {}

    def of(self, content: bytes) -> tuple[list[KnownBatch], KidxError | None]:
        """Return the batches of a file, and the error that ends reading after them, or None.

        Raises:
            NeedsReferenceError: As :class:`KnownBatch`.
        """
        found: list[KnownBatch] = []
        position, end = 0, len(content) - PREFIX.size
        while position < end:
            size = LOG_OVERHEAD + int.from_bytes(content[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
            # With an invalid size, the key is different from the keys of all batches.
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
