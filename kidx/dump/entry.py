"""Lines of a dump: named fields in the words of a release, printed as Kafka prints them, and the errors that are found.

The differences between the texts of the releases are data. Errors are collected over all files and written to stderr
after the dump (DL-5, DL-7).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from kidx.dialect.release_range import ReleaseRange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kidx.dialect import Dialect

Kind = Literal[
    "file",
    "heading",
    "verdict",
    "batch",
    "record",
    "offset",
    "timestamp",
    "transaction",
    "producer",
    "unknown",
    "corrupt",
]
"""Subject of a line: an entry of a file, or a remark. *unknown*: a file that Kafka ignores; *corrupt*: an error."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a dump.

    Attributes:
        kind: subject of the line.
        fields: Kafka's names and their values, in Kafka's order.
        text: the line, if it differs from the sequence of the fields.
    """

    kind: Kind
    fields: dict[str, Any] = field(default_factory=dict)
    text: str | None = None

    @property
    def is_error(self) -> bool:
        """True if Kafka prints the line on stderr."""
        return self.kind in ("unknown", "corrupt")

    def line(self) -> str:
        """Return the line that ``kafka-dump-log`` prints."""
        return named(self.fields) if self.text is None else self.text


def named(fields: dict[str, Any]) -> str:
    """Return ``name: value name: value``, with values as Java prints them."""
    return " ".join(f"{name}: {java_value(value)}" for name, value in fields.items())


def java_value(value: object) -> str:
    """Return a value as Java's string conversion prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(str, value))}]"
    return "null" if value is None else str(value)


def java_optional(value: int | None) -> str:
    """Return a number that may be missing as ``java.util.OptionalLong`` prints it."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


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


MismatchKind = Literal[
    "index_mismatch", "timestamp_mismatch", "timestamp_out_of_order", "offset_not_found", "non_consecutive_offsets"
]

# kind: (heading with the file, line), in the order in which Kafka prints them.
_TEXTS: Final[dict[MismatchKind, tuple[str, str]]] = {
    "index_mismatch": ("Mismatches in :{}", "  Index offset: {}, log offset: {}"),
    "timestamp_mismatch": ("Found timestamp mismatch in :{}", "  Index timestamp: {}, log timestamp: {}"),
    "timestamp_out_of_order": (
        "Found out of order timestamp in :{}",
        "  Index timestamp: {}, Previously indexed timestamp: {}",
    ),
    "offset_not_found": (
        "The following indexed offsets are not found in the log.",
        "Indexed offset: {}, found log offset: {}",
    ),
    "non_consecutive_offsets": ("Non-consecutive offsets in {}", "  {} is followed by {}"),
}
_NOT_FOUND_IN: Final = "The following indexed offsets are not found in :{}"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One error.

    Attributes:
        kind: kind of the error.
        path: absolute path of the file.
        found: value in the file.
        expected: value in the log, or in the entry before.
    """

    kind: MismatchKind
    path: str
    found: int
    expected: int

    @property
    def is_false_alarm(self) -> bool:
        """True if Kafka reports a gap that valid logs have, too.

        Compaction leaves gaps. Kafka 4.3 even reports a gap before the first record of a log that does not begin at 0.
        """
        return self.kind == "non_consecutive_offsets" and self.expected > self.found


@dataclass(slots=True)
class Mismatches:
    """All errors, in the order in which they were found."""

    found: list[Mismatch] = field(default_factory=list)

    def add(self, kind: MismatchKind, path: str, found: int, expected: int) -> None:
        """Add an error; the arguments are the fields of :class:`Mismatch`."""
        self.found.append(Mismatch(kind, path, found, expected))

    def __bool__(self) -> bool:
        return not all(mismatch.is_false_alarm for mismatch in self.found)

    def lines(self, wording: Wording) -> Iterator[str]:
        """Yield the lines that a release prints on stderr."""
        for kind, (heading, line) in _TEXTS.items():
            if kind == "offset_not_found" and wording.names_file_not_found:
                heading = _NOT_FOUND_IN  # noqa: PLW2901
            files: dict[str, list[Mismatch]] = {}
            for mismatch in self.found:
                if mismatch.kind == kind:
                    files.setdefault(mismatch.path, []).append(mismatch)
            for path, mismatches in files.items():
                yield heading.format(path)
                for mismatch in reversed(mismatches) if kind in wording.latest_first else mismatches:
                    yield line.format(mismatch.found, mismatch.expected)
