"""Operations on one index file, and the state of an index after one.

One index is open at a time. File names are relative to the directory that the harness assigns to each implementation.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from msgspec import Meta

from conformance.operations.op import (
    BOOLEAN,
    BYTE,
    COUNT,
    HEXADECIMAL,
    INT,
    LONG,
    MANY,
    PATH,
    Effect,
    Files,
    Op,
    Shape,
    by_name,
    effects,
    one_of,
    signatures,
)
from kidx.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from conformance.operations.outcomes import Json, Outcome

KINDS: Final = ("offset", "time", "transaction")

_every = partial(Op, of=frozenset(KINDS))
_mapped = partial(Op, of=frozenset({"offset", "time"}))  # the kinds whose files are memory-mapped
_offset = partial(Op, of=frozenset({"offset"}))
_time = partial(Op, of=frozenset({"time"}))
_transaction = partial(Op, of=frozenset({"transaction"}))
_damage = partial(Op, of=frozenset(KINDS), effect=Effect.DAMAGES)
_KIND = one_of(*KINDS)
_BIT = Annotated[int, Meta(ge=0, le=7, description="a bit from 0 to 7")]
_SIZE = Annotated[int, Meta(ge=1, le=MANY, description=f"an integer from 1 to {MANY}")]

INDEX_OPS: Final = by_name(
    (
        # A declaration has the name and the arguments with their types; `Op` explains the rest: `gives` is the type of
        # the result, `looks` means that nothing changes, `does` is the description for implementers, `least` are the
        # smallest arguments that a broker passes, `tried` those with which a new implementation is tried.
        #
        # All kinds of index. `open` creates the file or opens the existing one; `crash` releases it as a killed process
        # does, without trimming.
        _every(
            "open",
            {"kind": _KIND, "path": PATH, "base_offset": LONG, "max_index_size": INT, "writable": BOOLEAN},
            effect=Effect.OPENS,
            names_file=1,
            files=Files.REPLACES,
            does="Opens the file, or creates it. No other index is open then. A transaction index ignores"
            " max_index_size and writable.",
        ),
        _every(
            "truncate_to",
            {"offset": LONG},
            does="Removes the entries with this offset or a larger one.",
            tried=(15,),
        ),
        _every(
            "reset",
            {},
            does="Removes all entries; the file gets max_index_size again, a transaction index none.",
            tried=(),
        ),
        _every("flush", {}, does="Writes the changes to disk.", tried=()),
        _every(
            "sanity_check",
            {},
            looks=True,
            does="Rejects (corrupt) an invalid file: OI-11, TI-11a and TX-12a say which.",
            tried=(),
        ),
        _every(
            "close",
            {},
            effect=Effect.RELEASES,
            does="Closes the file; up to 4.3 it is truncated after the last entry first (AI-42a), from 4.4 on it keeps"
            " its length. Later calls must still get replies.",
            tried=(),
        ),
        _every("crash", {}, effect=Effect.RELEASES),
        _every(
            "delete",
            {},
            gives=Shape.FLAG,
            effect=Effect.RELEASES,
            method="delete_if_exists",
            does="Closes and deletes the file; true if there was one.",
            files=Files.REPLACES,
            needs=("delete",),
            tried=(),
        ),
        _every("rename", {"path": PATH}, names_file=0, files=Files.REPLACES, method="rename_to", tried=("renamed",)),
        _mapped(
            "lookup",
            {"target": LONG},
            gives=Shape.PAIR,
            looks=True,
            does="The last entry whose key is at or below the target; without one, [base_offset, 0] or"
            " [-1, base_offset].",
            tried=(9,),
        ),
        _mapped(
            "entry",
            {"n": INT},
            gives=Shape.PAIR,
            looks=True,
            does="The entry in a slot.",
            least=(0,),
            tried=(0,),
        ),
        _mapped("truncate", {}, does="Removes all entries; the file keeps its length.", tried=()),
        _mapped(
            "resize",
            {"size": INT},
            least=(0,),
            gives=Shape.FLAG,
            does="Changes the length of the file to whole entries; true if that was necessary. A size below the entries"
            " is rejected.",
            needs=("preallocation", "resize"),
            tried=(600,),
        ),
        _mapped(
            "trim",
            {},
            method="trim_to_valid_size",
            does="Truncates the file after the last entry.",
            needs=("preallocation", "resize"),
            tried=(),
        ),
        # The bulk operations execute `count` appends in one step, so that a trace past the warm section is short.
        _offset(
            "append",
            {"offset": LONG, "position": INT},
            does="Offset index: adds an entry.",
            least=(0, 0),
            tried=(7, 120),
        ),
        _offset(
            "bulk_append",
            {"offset": LONG, "position": INT, "offset_step": LONG, "position_step": LONG, "count": COUNT},
            many="append",
        ),
        _offset(
            "fetch_upper_bound",
            {"offset": LONG, "position": INT, "fetch_size": INT},
            gives=Shape.MAYBE_PAIR,
            looks=True,
            method="fetch_upper_bound_offset",
            does="Offset index: the first entry at or past position + fetch_size, or null.",
            least=(0, 0, 0),
            tried=(7, 0, 100),
        ),
        _time(
            "maybe_append",
            {"timestamp": LONG, "offset": LONG, "skip_full_check": BOOLEAN},
            does="Time index: adds an entry if its timestamp is larger than the last one.",
            least=(NO_TIMESTAMP, 0),
            tried=(7, 7, False),
        ),
        _time(
            "bulk_maybe_append",
            {"timestamp": LONG, "offset": LONG, "timestamp_step": LONG, "offset_step": LONG, "count": COUNT},
            many="maybe_append",
        ),
        _transaction(
            "append_aborted",
            {"producer_id": LONG, "first_offset": LONG, "last_offset": LONG, "last_stable_offset": LONG},
            method="append",
            does="Transaction index: adds a record.",
            tried=(1, 0, 7, 8),
        ),
        _transaction(
            "collect_aborted",
            {"fetch_offset": LONG, "upper_bound": LONG},
            gives=Shape.COLLECTED,
            looks=True,
            method="collect_aborted_txns",
            does="Transaction index: the aborted transactions that a fetch must skip.",
            tried=(0, 10),
        ),
        _transaction("all_aborted", {}, gives=Shape.TRANSACTIONS, looks=True, method="all_aborted_txns", tried=()),
        # Corruption of the closed file, applied by the harness to every implementation's file alike.
        _damage("flip_bit", {"position": LONG, "bit": _BIT}),
        _damage("cut_file", {"length": COUNT}),
        _damage("pad_file", {"count": COUNT, "byte": BYTE}),
        _damage("zero_range", {"start": LONG, "end": LONG}),
        _damage("swap_ranges", {"first": LONG, "second": LONG, "size": _SIZE}),
        _damage("write_file", {"content": HEXADECIMAL}),  # the whole file, as the fuzzer makes it
        # Executed by the harness, as a corruption is, but the file is not corrupt afterwards.
        _damage("remove_file", {}),
    )
)
"""All operations on an index file."""

SIGNATURES: Final = signatures(INDEX_OPS)
"""The names of the arguments of each operation, in order."""

FILE_OPERATIONS: Final = frozenset(name for name, each in INDEX_OPS.items() if each.effect is Effect.DAMAGES)
"""Operations on the closed file, executed by the harness and not by an implementation."""

EFFECTS: Final = effects(INDEX_OPS)
"""The effects of the operations that have one."""

ESSENTIAL: Final = frozenset(name for name, effect in EFFECTS.items() if effect is not Effect.DAMAGES)
"""Operations that a machine cannot skip: they open or release the file, and the next step may corrupt it."""


class State(NamedTuple):
    """State of an index after an operation, as the index reports it.

    Attributes:
        entries: The number of entries.
        max_entries: The number of entries for which the file has space; None for a transaction index.
        full: True if Kafka's ``isFull`` is true; None for a transaction index.
        length: The length of the file in bytes; None for a transaction index.
        last: ``(offset,)`` of an offset index, ``(timestamp, offset)`` of a time index; of a transaction index, the
            last offset that it has in memory: ``(offset,)`` or ``()``.
    """

    entries: int
    max_entries: int | None
    full: bool | None
    length: int | None
    last: tuple[int, ...]

    def to_json(self) -> Json:
        """Return the value of the line protocol's ``state``."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    @classmethod
    def from_json(cls, data: Json) -> State:
        """Return the state from the value of the line protocol's ``state``."""
        return cls(data["entries"], data.get("max_entries"), data.get("full"), data.get("length"), tuple(data["last"]))


class Observation(NamedTuple):
    """Outcome of an operation, and the state after it or None if no index has been opened."""

    outcome: Outcome
    state: State | None
