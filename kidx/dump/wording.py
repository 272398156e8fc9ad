"""Differences between the texts of the releases' dumps, as data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kidx.dialect.release_range import ReleaseRange

if TYPE_CHECKING:
    from kidx.dialect import Dialect

_HEADERS: Final = " sequence: {sequence} headerKeys: {headerKeys}"
_BATCH_AGAIN: Final = (
    " baseOffset: {batch[baseOffset]} lastOffset: {batch[lastOffset]} baseSequence: {batch[baseSequence]} lastSequence:"
    " {batch[lastSequence]} producerEpoch: {batch[producerEpoch]} partitionLeaderEpoch: {batch[partitionLeaderEpoch]}"
    " batchSize: {batch[size]} magic: {batch[magic]} compressType: {batch[compresscodec]} position: {batch[position]}"
)
"""Text with which 2.8 repeats the batch after every record."""


@dataclass(frozen=True, slots=True)
class Wording:
    """Texts of one release.

    Attributes:
        heading: text before the base offset of a log.
        record, legacy_record: line of a record, up to its key and value, in v2 and in v0 and v1. The names are the
            fields of :func:`kidx.dump.logs.record_fields`; ``time`` is the timestamp type, ``batch`` the fields of the
            batch.
        lower_case_codec: True for ``lz4``, False for the name of the enum constant ``LZ4``.
        delete_horizon: True if a batch's line has ``deleteHorizonMs``.
        empty_before_sanity: True if an empty ``.index`` is reported as empty before it is checked.
        last_timestamp: True if a producer's line in a snapshot has ``lastTimestamp``.
        optional_is_java: True if an offset that may be missing is ``OptionalLong[7]``, False for Scala's ``Some(7)``.
        first_offset_alarms: True if the first record of a log that does not begin at 0 counts as not consecutive, which
            is an error of Kafka's dump, not of the log.
        latest_first: kinds of mismatch that are reported in reverse order.
        missing_batch_shown: True if a producer without a batch has the fields of a batch nevertheless.
        trailing_space: end of the line of a producer without a batch.
        keyless_bar: True if the line of a record without metadata and key still begins with a bar.
        names_file_not_found: True if the list of offsets not found has the name of the file.
    """

    heading: str = "Starting offset: "
    record: str = "offset: {offset} {time}: {timestamp} keysize: {keySize} valuesize: {valueSize}" + _HEADERS
    legacy_record: str = (
        "offset: {offset} {time}: {timestamp} keysize: {keySize} valuesize: {valueSize} crc: {crc} isvalid: {isValid}"
    )
    lower_case_codec: bool = False
    delete_horizon: bool = False
    empty_before_sanity: bool = False
    last_timestamp: bool = False
    optional_is_java: bool = False
    first_offset_alarms: bool = False
    latest_first: frozenset[str] = frozenset({"index_mismatch", "non_consecutive_offsets"})
    missing_batch_shown: bool = True
    trailing_space: str = " "
    keyless_bar: bool = False
    names_file_not_found: bool = False


_SIZES: Final = "offset: {offset} {time}: {timestamp} keySize: {keySize} valueSize: {valueSize}"
_REPEATING: Final = (
    "offset: {offset} isValid: {isValid} crc: {crc} keySize: {keySize} valueSize: {valueSize} {time}: {timestamp}"
    + _BATCH_AGAIN
)
# fmt: off
_CHANGES: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    (">=2.4.1", {"missing_batch_shown": False}),
    (">=2.8.0", {"record": _REPEATING + _HEADERS, "legacy_record": _REPEATING + " crc: {crc} isvalid: {isValid}",
               "empty_before_sanity": True}),
    # The surplus brace is in Kafka's output.
    (">=3.0.0", {"record": _SIZES + _HEADERS, "legacy_record": _SIZES + " isValid: {isValid} crc: {crc}}}",
               "lower_case_codec": True}),
    (">=3.1.0", {"last_timestamp": True}),
    (">=3.2.0", {"delete_horizon": True}),
    (">=3.3.0", {"heading": "Log starting offset: "}),
    (">=3.5.0", {"optional_is_java": True}),
    (">=4.3.0", {"names_file_not_found": True, "first_offset_alarms": True,
               "latest_first": frozenset({"index_mismatch"}), "trailing_space": "",
               "keyless_bar": True,
               "legacy_record": _SIZES + " isValid: {isValid} crc: {crc}"}),
)
# fmt: on
"""Changes of the texts by release; a later entry replaces an earlier one."""

assert {name for _, change in _CHANGES for name in change} <= {field.name for field in fields(Wording)}


@cache
def wording_of(dialect: Dialect) -> Wording:
    """Return the texts of a release."""
    words: dict[str, Any] = {}
    for releases, change in _CHANGES:
        if dialect.like in ReleaseRange.parse(releases):
            words |= change
    return Wording(**words)
