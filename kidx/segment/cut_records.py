"""Records that end before they should, as each release reads them (``DefaultRecord.readFrom``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kidx.errors import OutOfBoundsError
from kidx.records import HeaderCutError, Record, RecordCutError
from kidx.segment.errors import MissingBytesError

if TYPE_CHECKING:
    from kidx.dialect import Dialect


def records_of(records: Iterable[Record], dialect: Dialect) -> Iterator[Record]:
    """The records of a batch, which somebody is going to look at.

    Raises:
        OutOfBoundsError: the key of a header ends behind the batch, before 2.7 (SEG-47).
        MissingBytesError: one claims more bytes than there are, and was null before 3.0 (SEG-46).
        KidxError: as reading records.
    """
    try:
        yield from records
    except HeaderCutError as error:
        if dialect.cut_headers_are_out_of_bounds:
            raise OutOfBoundsError("a header whose key is longer than the rest of its batch", None) from error
        raise
    except RecordCutError as error:
        if dialect.cut_records_are_null and error.was_null:
            raise MissingBytesError("a record that is longer than the rest of its batch", None) from error
        raise
