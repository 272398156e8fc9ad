"""The operations on one index file, and the state of an index after one.

One index is open at a time. File names are relative to the directory that the harness gives each implementation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.operations.effects import Effect

if TYPE_CHECKING:
    from conformance.operations.outcomes import Json, Outcome

KINDS: Final = ("offset", "time", "transaction")

SIGNATURES: Final[dict[str, tuple[str, ...]]] = {
    # Every kind of index. `open` creates the file or opens the one that is there; `crash` releases it as a killed
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
    # Done to the file by the harness only, for another reason than damage.
    "remove_file": (),
}
"""Every operation and the names of its arguments, in order."""

FILE_OPERATIONS: Final = frozenset(
    {"flip_bit", "cut_file", "pad_file", "zero_range", "swap_ranges", "write_file", "remove_file"},
)
"""Operations on the closed file, performed by the harness and not by an implementation."""

EFFECTS: Final[dict[str, Effect]] = {
    "open": Effect.OPENS,
    **dict.fromkeys(("close", "crash", "delete"), Effect.RELEASES),
    **dict.fromkeys(FILE_OPERATIONS, Effect.DAMAGES),
}
"""By operation; the others have none of these effects."""


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
