"""Outcomes: the value of an operation or the kind of its error, as plain data with a JSON form.

An outcome has the same form for every implementation. As JSON, it is the reply of the line protocol.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

Json = dict[str, Any]

ERRORS: Final = {
    "invalid_offset": "an offset is not above the last one; in a time index, it is below the last one",
    "offset_overflow": "an offset is below the base offset, or more than 2147483647 above it",
    "corrupt": "sanity_check finds a file that cannot be right",
    "invalid_argument": "the index is full, a new file is too small for one entry, or the slot does not exist",
    "illegal_state": "a timestamp is below the last one, or (from 3.5; before, invalid_argument) an entry is misplaced",
    "unsupported_version": "a record of a transaction index has a version that the release does not know",
    "read_only": "an index that was opened with writable false is written to",
    "closed": "the operation needs an index that is open",
    "buffer_overflow": "a write ends past the end of the file",
    "out_of_bounds": "a read is outside the file, such as a negative slot",
    "io": "the operating system reports an error",
}
"""The meaning of each error kind of an operation on an index file."""
ERROR_KINDS: Final = tuple(ERRORS)


class Outcome(NamedTuple):
    """Outcome of an operation.

    Attributes:
        error: The kind of the error, such as one of :data:`ERROR_KINDS`; ``"unsupported"`` if the implementation does
            not have the operation; None without an error.
        value: The result: None, a bool, or (nested) tuples of integers; None with an error.
        text: The message of the exception, without directories; None if the implementation has other messages
            than Kafka.
    """

    error: str | None = None
    value: Any = None
    text: str | None = None

    @property
    def is_empty(self) -> bool:
        """True for an error, and without a result."""
        return bool(self.error) or self.value is None

    def to_json(self) -> Json:
        """Return the reply of the line protocol."""
        if self.error == "unsupported":
            return {"unsupported": True}
        if self.error is not None:
            return {"error": self.error, "message": self.text or ""}
        if is_collected(self.value):
            return {"ok": {"aborted": self.value[0], "complete": self.value[1]}}
        return {"ok": self.value}

    @classmethod
    def from_json(cls, data: Json) -> Outcome:
        """Return the outcome of a reply.

        Raises:
            ValueError: The reply has neither ``ok``, ``error`` nor ``unsupported``.
        """
        if "ok" in data:
            value = data["ok"]
            if isinstance(value, dict) and value.keys() == {"aborted", "complete"}:
                return cls(None, (as_tuples(value["aborted"]), value["complete"]))
            return cls(None, as_tuples(value))
        if "error" in data:
            return cls(data["error"], None, data.get("message") or None)
        if data.get("unsupported"):
            return cls("unsupported")
        raise ValueError(f"an outcome has a key ok, error or unsupported, not {data!r}")

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.error}: {self.text}" if self.text else self.error
        return "nothing" if self.value is None else repr(self.value)


OK: Final = Outcome()
UNSUPPORTED: Final = Outcome("unsupported")  # the implementation does not have the operation

FAILURE: Final = "failure"
"""Error of an outcome that no Kafka error causes: the implementation crashed, hung or sent a malformed reply."""

OUT_OF_MEMORY: Final = "out_of_memory"
"""Error of an outcome that says nothing about the implementation.

Kafka allocates the size that a corrupt record states before it reads the record, and with a larger heap the outcome
could differ. Such an outcome ends the example for that implementation.
"""


def is_collected(value: Any) -> bool:
    """Return True if a value is a result of ``collect_aborted``: transactions, and True if the search is complete."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and isinstance(value[1], bool)


def as_tuples(value: Any) -> Any:
    """Return a JSON value in which each list is a tuple, and each object is the tuple of its values."""
    if isinstance(value, list):
        return tuple(as_tuples(item) for item in value)
    if isinstance(value, dict):
        return tuple(as_tuples(item) for item in value.values())
    return value
