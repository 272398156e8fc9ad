"""The operations and what came of them: plain data, JSON both ways.

An operation is one call on one index; an outcome is its value or the kind of its refusal. Both are the same for every
implementation, and their JSON is that of the line protocol (DESIGN.md), so a trace of a run against Kafka's own classes
can be replayed against a program behind a pipe.

Only one index is open at a time. File names are relative to the directory that the harness gives each implementation.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

KINDS: Final = ("offset", "time", "transaction")

SIGNATURES: Final[dict[str, tuple[str, ...]]] = {
    # Every kind of index. `open` creates the file or opens the one that is there; `crash` lets go of it as a killed
    # process does, without trimming.
    "open": ("kind", "path", "base_offset", "max_index_size", "writable"),
    "truncate_to": ("offset",),
    "reset": (),
    "flush": (),
    "sanity_check": (),
    "close": (),
    "crash": (),
    "delete": (),
    "rename": ("path",),
    # Offset and time index.
    "lookup": ("target",),
    "entry": ("n",),
    "truncate": (),
    "resize": ("size",),
    "trim": (),
    # Offset index. The bulk operations are `count` appends in one step, so that a trace past the warm section is short.
    "append": ("offset", "position"),
    "bulk_append": ("offset", "position", "offset_step", "position_step", "count"),
    "fetch_upper_bound": ("offset", "position", "fetch_size"),
    # Time index.
    "maybe_append": ("timestamp", "offset", "skip_full_check"),
    "bulk_maybe_append": ("timestamp", "offset", "timestamp_step", "offset_step", "count"),
    # Transaction index.
    "append_aborted": ("producer_id", "first_offset", "last_offset", "last_stable_offset"),
    "collect_aborted": ("fetch_offset", "upper_bound"),
    "all_aborted": (),
    # Damage while closed, done by the harness to every implementation's file alike.
    "flip_bit": ("position", "bit"),
    "cut_file": ("length",),
    "pad_file": ("count", "byte"),
    "zero_range": ("start", "end"),
    "swap_ranges": ("first", "second", "size"),
    "write_file": ("content",),  # hexadecimal: the whole file, as the fuzzer makes it
    # Something else has happened to the file that only the harness can do.
    "remove_file": (),
}
"""Every operation and the names of its arguments, in order."""

FILE_OPERATIONS: Final = frozenset(
    {"flip_bit", "cut_file", "pad_file", "zero_range", "swap_ranges", "write_file", "remove_file"},
)
"""Operations on the closed file, performed by the harness and not by an implementation."""


class Effect(Enum):
    """What an operation does to the file, segment, log or topic that the operations are about."""

    OPENS = "opens"
    RELEASES = "releases"
    """Lets go of the files, so that the harness may damage them; a damage to a mapped file ends the process."""
    DAMAGES = "damages"
    """Performed by the harness, on files that nothing has open."""


EFFECTS: Final[dict[str, Effect]] = {
    "open": Effect.OPENS,
    **dict.fromkeys(("close", "crash", "delete"), Effect.RELEASES),
    **dict.fromkeys(FILE_OPERATIONS, Effect.DAMAGES),
}
"""By operation; the others have none of these effects."""

ERROR_KINDS: Final = (
    "invalid_offset",
    "offset_overflow",
    "corrupt",
    "invalid_argument",
    "illegal_state",
    "unsupported_version",
    "read_only",
    "closed",
    "buffer_overflow",
    "out_of_bounds",
    "io",
)


@cache
def every_signature() -> Mapping[str, tuple[str, ...]]:
    """The vocabularies of all machines: an index's, a segment's, a log's, a broker's. No two use the same word."""
    # Imported here because they are made of what is defined here.
    from conformance.broker_operations import BROKER_SIGNATURES  # noqa: PLC0415
    from conformance.log_operations import LOG_SIGNATURES  # noqa: PLC0415
    from conformance.segment_operations import SEGMENT_SIGNATURES  # noqa: PLC0415

    return SIGNATURES | SEGMENT_SIGNATURES | LOG_SIGNATURES | BROKER_SIGNATURES


@cache
def every_effect() -> Mapping[str, Effect]:
    """The effects of the operations of all machines."""
    from conformance.broker_operations import BROKER_EFFECTS  # noqa: PLC0415 -- as above
    from conformance.log_operations import LOG_EFFECTS  # noqa: PLC0415
    from conformance.segment_operations import SEGMENT_EFFECTS  # noqa: PLC0415

    return EFFECTS | SEGMENT_EFFECTS | LOG_EFFECTS | BROKER_EFFECTS


class Operation(NamedTuple):
    """One call: the name of the operation and its arguments in the order of :func:`every_signature`."""

    name: str
    args: tuple[Any, ...] = ()

    @property
    def effect(self) -> Effect | None:
        """What it does to what the operations are about; None if it neither opens, releases nor damages it."""
        return every_effect().get(self.name)

    def to_json(self) -> Json:
        """The request of the line protocol."""
        return {"op": self.name, **dict(zip(every_signature()[self.name], self.args, strict=True))}

    @classmethod
    def from_json(cls, data: Json) -> Operation:
        """An operation from its request.

        Raises:
            ValueError: there is no such operation, or its arguments are not the ones in :func:`every_signature`.
        """
        name = data.get("op")
        if not isinstance(name, str) or name not in every_signature():
            raise ValueError(f"unknown operation {name!r}")
        names = every_signature()[name]
        given = set(data) - {"op"}
        if given != set(names):
            raise ValueError(
                f"operation {name!r} takes {', '.join(names) or 'nothing'}, not {', '.join(sorted(given))}"
            )
        return cls(name, tuple(data[argument] for argument in names))

    def __str__(self) -> str:
        arguments = ", ".join(f"{n}={v!r}" for n, v in zip(every_signature()[self.name], self.args, strict=True))
        return f"{self.name}({arguments})"


class Outcome(NamedTuple):
    """What came of an operation.

    Attributes:
        error: None, or one of :data:`ERROR_KINDS`, or ``"unsupported"``.
        value: None, a bool, or (nested) tuples of integers; None with an error.
        text: the exception's own text where the implementation speaks Kafka's; directories are left out of it.
    """

    error: str | None = None
    value: Any = None
    text: str | None = None

    def to_json(self) -> Json:
        """The reply of the line protocol."""
        if self.error == "unsupported":
            return {"unsupported": True}
        if self.error is not None:
            return {"error": self.error, "message": self.text or ""}
        if is_collected(self.value):
            return {"ok": {"aborted": self.value[0], "complete": self.value[1]}}
        return {"ok": self.value}

    @classmethod
    def from_json(cls, data: Json) -> Outcome:
        """An outcome from its reply.

        Raises:
            ValueError: it is none of ``ok``, ``error`` and ``unsupported``.
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
        raise ValueError(f"neither ok, error nor unsupported: {data!r}")

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.error}: {self.text}" if self.text else self.error
        return "nothing" if self.value is None else repr(self.value)


OK: Final = Outcome()
UNSUPPORTED: Final = Outcome("unsupported")


class State(NamedTuple):
    """What an index says of itself after an operation.

    A transaction index has no ``max_entries``, ``full`` and ``length`` (None). ``last`` is ``(offset,)``,
    ``(timestamp, offset)``, or what a transaction index remembers: ``(offset,)`` or ``()``.
    """

    entries: int
    max_entries: int | None
    full: bool | None
    length: int | None
    last: tuple[int, ...]

    def to_json(self) -> Json:
        """The value of the line protocol's ``state``."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    @classmethod
    def from_json(cls, data: Json) -> State:
        """A state from the value of the line protocol's ``state``."""
        return cls(data["entries"], data.get("max_entries"), data.get("full"), data.get("length"), tuple(data["last"]))


class Observation(NamedTuple):
    """An outcome and the state after it; no state where no index has been opened."""

    outcome: Outcome
    state: State | None


def is_collected(value: Any) -> bool:
    """Whether a value is that of ``collect_aborted``: transactions, and whether the search is complete."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and isinstance(value[1], bool)


def as_tuples(value: Any) -> Any:
    """JSON's lists as tuples, so that outcomes compare and hash; an object's values in the order they come."""
    if isinstance(value, list):
        return tuple(as_tuples(item) for item in value)
    if isinstance(value, dict):
        return tuple(as_tuples(item) for item in value.values())
    return value
