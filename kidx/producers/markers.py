"""Reading the end of a transaction as a release does, also where it makes no sense (``EndTransactionMarker.java``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kidx.errors import InvalidArgumentError
from kidx.producers.errors import MissingBytesError, ShortMarkerError
from kidx.records import ControlRecordType, EndTransactionMarker

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.records import Record

_MARKER_SIZE: Final = 6
"""Bytes of a marker's value: version and coordinator epoch."""


def read_marker(record: Record, dialect: Dialect) -> EndTransactionMarker:
    """The marker that a control record holds.

    Raises:
        InvalidRecordError: the key is too short, a version negative, or (before 4.1) the value too short.
        InvalidArgumentError: it is a control record of another type.
        MissingBytesError: key or value are null.
        ShortMarkerError: the value is too short, from 4.1 on.
    """
    if record.key is None:
        raise MissingBytesError("a control record without a key", None)
    kind = ControlRecordType.parse(record.key)
    if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        number = int.from_bytes(record.key[2:4], signed=True) - 2
        names = dialect.other_control_types
        name = names[number] if 0 <= number < len(names) else ControlRecordType.UNKNOWN.name
        gap = " " if dialect.markers_are_generated else ""
        raise InvalidArgumentError(f"Invalid control record type for end transaction marker{gap}{name}")
    if record.value is None:
        raise MissingBytesError("a transaction marker without a value", None)
    if len(record.value) < _MARKER_SIZE and dialect.markers_are_generated and not _is_negative(record.value):
        raise ShortMarkerError(f"a transaction marker of {len(record.value)} bytes", None)
    return EndTransactionMarker.parse(record)


def _is_negative(value: bytes) -> bool:
    """Whether the version, which is read first, can be read and is negative."""
    return len(value) >= 2 and value[0] > 127
