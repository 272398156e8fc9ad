"""One line of a dump: named fields, printed as Kafka prints them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

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
