"""Control records, which Kafka writes for its own use. Key and value begin with a version; numbers are big-endian."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from kidx.records.errors import InvalidArgumentError, InvalidRecordError

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.records.record import Record

_KEY: Final = struct.Struct(">hh")  # version, type
_MARKER: Final = struct.Struct(">hi")  # version, coordinator epoch


class ControlRecordType(IntEnum):
    """Type of a control record (``ControlRecordType.java``). Releases before KRaft know the first two."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6

    def name_in(self, dialect: Dialect) -> str:
        """Return the name of this type in a release, or ``UNKNOWN`` if the release has no type with this number."""
        if self <= ControlRecordType.COMMIT:
            return self.name
        names, index = dialect.other_control_types, self - ControlRecordType.LEADER_CHANGE
        return names[index] if index < len(names) else ControlRecordType.UNKNOWN.name

    @classmethod
    def parse(cls, key: bytes | None) -> ControlRecordType:
        """Return the type that a control record's key states; UNKNOWN for a number that Kafka does not have.

        A version above 0 is read as version 0, as Kafka does.

        Raises:
            InvalidRecordError: the key is null, shorter than 4 bytes, or has a negative version.
        """
        if key is None or len(key) < _KEY.size:
            raise InvalidRecordError(
                "Invalid value size found for control record key. Must have at least "
                f"{_KEY.size} bytes, but found only {len(key or b'')}"
            )
        version, number = _KEY.unpack_from(key)
        if version < 0:
            raise InvalidRecordError(
                f"Invalid version found for control record: {version}. May indicate data corruption"
            )
        return cls(number) if number in cls._value2member_map_ else cls.UNKNOWN

    @property
    def record_key(self) -> bytes:
        """Key of a control record of this type, version 0.

        Raises:
            InvalidArgumentError: the type is UNKNOWN, which has no key.
        """
        if self is ControlRecordType.UNKNOWN:
            raise InvalidArgumentError("Cannot serialize UNKNOWN control record type")
        return _KEY.pack(0, self)


@dataclass(frozen=True, slots=True)
class EndTransactionMarker:
    """End of a transaction: commit or abort (``EndTransactionMarker.java``).

    Attributes:
        control_type: COMMIT or ABORT.
        coordinator_epoch: epoch of the transaction coordinator that wrote the marker.

    Raises:
        InvalidArgumentError: ``control_type`` is neither COMMIT nor ABORT.
    """

    control_type: ControlRecordType
    coordinator_epoch: int = 0

    def __post_init__(self) -> None:
        if self.control_type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            raise InvalidArgumentError(
                f"Invalid control record type for end transaction marker {self.control_type.name}"
            )

    @property
    def value(self) -> bytes:
        """Value of the control record."""
        return _MARKER.pack(0, self.coordinator_epoch)

    @classmethod
    def parse(cls, record: Record) -> EndTransactionMarker:
        """Return the marker that a control record holds.

        Raises:
            InvalidRecordError: key or value is too short or has a negative version.
            InvalidArgumentError: the control record has another type.
        """
        control_type = ControlRecordType.parse(record.key)
        marker = cls(control_type)
        value = record.value
        if value is None or len(value) < _MARKER.size:
            raise InvalidRecordError(
                "Invalid value size found for end transaction marker. Must have at least "
                f"{_MARKER.size} bytes, but found only {len(value or b'')}"
            )
        version, epoch = _MARKER.unpack_from(value)
        if version < 0:
            raise InvalidRecordError(
                f"Invalid version found for end transaction marker: {version}. May indicate data corruption"
            )
        return cls(marker.control_type, epoch)
