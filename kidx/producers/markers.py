"""Reader of transaction markers with the errors of each release (``EndTransactionMarker.java``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kidx.errors import InvalidArgumentError
from kidx.producers.errors import MissingBytesError, ShortMarkerError
from kidx.records import ControlRecordType, EndTransactionMarker

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.records import Record

_MARKER_SIZE: Final = 6
"""Size in bytes of a marker's value: version and coordinator epoch."""


def read_marker(record: Record, dialect: Dialect) -> EndTransactionMarker:
    """Return the marker that a control record holds.

    Raises:
        InvalidRecordError: the key is too short, a version is negative, or (before 4.1) the value is too short.
        InvalidArgumentError: the control record has another type.
        MissingBytesError: key or value is null.
        ShortMarkerError: the value is too short, from 4.1 on.
    """
    if record.key is None:
        raise MissingBytesError("a control record without a key", None)
    kind = ControlRecordType.parse(record.key)
    if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        gap = " " if dialect.markers_parsed_by_generated_code else ""
        raise InvalidArgumentError(
            f"Invalid control record type for end transaction marker{gap}{kind.name_in(dialect)}"
        )
    if record.value is None:
        raise MissingBytesError("a transaction marker without a value", None)
    if len(record.value) < _MARKER_SIZE and dialect.markers_parsed_by_generated_code and not _is_negative(record.value):
        raise ShortMarkerError(f"a transaction marker of {len(record.value)} bytes, which needs {_MARKER_SIZE}", None)
    return EndTransactionMarker.parse(record)


def _is_negative(value: bytes) -> bool:
    """Return True if the version, which is read first, is present and negative."""
    return len(value) >= 2 and value[0] > 127
