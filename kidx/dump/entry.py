"""One line of a dump: fields with names and values, which print as Kafka prints them."""

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


@dataclass(frozen=True, slots=True)
class Entry:
    """One line.

    Attributes:
        kind: what it is about.
        fields: Kafka's names and their values, in Kafka's order.
        text: the line, where it is not simply the fields one after another.
    """

    kind: Kind
    fields: dict[str, Any] = field(default_factory=dict)
    text: str | None = None

    @property
    def is_complaint(self) -> bool:
        """Whether Kafka prints it on stderr."""
        return self.kind in ("unknown", "corrupt")

    def line(self) -> str:
        """The line that ``kafka-dump-log`` prints."""
        return named(self.fields) if self.text is None else self.text


def named(fields: dict[str, Any]) -> str:
    """``name: value name: value``, values as Java writes them."""
    return " ".join(f"{name}: {java_value(value)}" for name, value in fields.items())


def java_value(value: object) -> str:
    """A value as Java's string conversion writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(str, value))}]"
    return "null" if value is None else str(value)


def java_optional(value: int | None) -> str:
    """A number that may be missing as ``java.util.OptionalLong`` writes it."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
