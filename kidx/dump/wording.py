"""What the releases' dumps word differently, as data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Final

from kidx.dialect import Dialect, version_of

_HEADERS: Final = " sequence: {sequence} headerKeys: {headerKeys}"
_BATCH_AGAIN: Final = (
    " baseOffset: {batch[baseOffset]} lastOffset: {batch[lastOffset]} baseSequence: {batch[baseSequence]} lastSequence:"
    " {batch[lastSequence]} producerEpoch: {batch[producerEpoch]} partitionLeaderEpoch: {batch[partitionLeaderEpoch]}"
    " batchSize: {batch[size]} magic: {batch[magic]} compressType: {batch[compresscodec]} position: {batch[position]}"
)
"""What 2.8 repeats of the batch behind every record."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of one release.

    Attributes:
        heading: what stands before the base offset of a log.
        record, legacy_record: the line of a record, up to its key and value, in v2 and in v0 and v1. The names are
            those of :func:`kidx.dump.logs.record_fields`; ``time`` is that of the timestamp type, ``batch`` the batch's
            fields.
        lower_case_codec: ``lz4``, or the name of the enum constant ``LZ4``.
        delete_horizon: whether a batch's line has ``deleteHorizonMs``.
        empty_before_sanity: an empty ``.index`` is reported as empty, before any check of it.
        last_timestamp: whether a producer's line in a snapshot has ``lastTimestamp``.
        optional_is_java: an offset that may be missing is ``OptionalLong[7]``, or Scala's ``Some(7)``.
        first_offset_alarms: the first record of a log that does not begin at 0 counts as not consecutive: an error of
            Kafka's dump, not of the log.
        latest_first: the kinds whose last mismatch is reported first.
        missing_batch_shown: whether a producer without a batch has the fields of one all the same.
        trailing_space: what ends the line of a producer without a batch.
        keyless_bar: whether the line of a record without metadata and key still begins with a bar.
        names_file_not_found: whether the list of offsets not found names the file.
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
    ("2.4.1", {"missing_batch_shown": False}),
    ("2.8.0", {"record": _REPEATING + _HEADERS, "legacy_record": _REPEATING + " crc: {crc} isvalid: {isValid}",
               "empty_before_sanity": True}),
    # The brace too many is Kafka's.
    ("3.0.0", {"record": _SIZES + _HEADERS, "legacy_record": _SIZES + " isValid: {isValid} crc: {crc}}}",
               "lower_case_codec": True}),
    ("3.1.0", {"last_timestamp": True}),
    ("3.2.0", {"delete_horizon": True}),
    ("3.3.0", {"heading": "Log starting offset: "}),
    ("3.5.0", {"optional_is_java": True}),
    ("4.3.0", {"names_file_not_found": True, "first_offset_alarms": True,
               "latest_first": frozenset({"index_mismatch"}), "trailing_space": "",
               "keyless_bar": True,
               "legacy_record": _SIZES + " isValid: {isValid} crc: {crc}"}),
)
# fmt: on
"""From which release on which words."""

assert {name for _, change in _CHANGES for name in change} <= {field.name for field in fields(Wording)}


@cache
def wording_of(dialect: Dialect) -> Wording:
    """The words of a release."""
    words: dict[str, Any] = {}
    for release, change in _CHANGES:
        if dialect.version >= version_of(release):
            words |= change
    return Wording(**words)
