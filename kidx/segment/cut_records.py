"""Records that end before they should, as each release reads them (``DefaultRecord.readFrom``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kidx.records import Record, RecordCutError
from kidx.segment.errors import MissingBytesError

if TYPE_CHECKING:
    from kidx.dialect import Dialect


def records_of(records: Iterable[Record], dialect: Dialect) -> Iterator[Record]:
    """The records of a batch, which somebody is going to look at.

    Raises:
        MissingBytesError: one claims more bytes than there are, and was null before 3.0 (SEG-46).
        KidxError: as reading records.
    """
    try:
        yield from records
    except RecordCutError as error:
        if dialect.cut_records_are_null and error.was_null:
            raise MissingBytesError("a record that is longer than the rest of its batch", None) from error
        raise
