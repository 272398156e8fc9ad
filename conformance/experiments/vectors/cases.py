"""Cases of the test vectors: written by hand, or examples that state machines generated (``cases.ndjson``).

It also lists the clauses that no test vector exercises.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.clauses import load_clauses
from conformance.clauses.machines import FILE_MACHINES
from conformance.operations import FILE_OPERATIONS, Operation
from conformance.operations.batches import encode
from conformance.operations.trace_file import load_traces
from kidx.java_values import INT_MAX
from kidx.segment import follower_append_info

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.operations.batches import Batch

BASE: Final = 1000
TIME: Final = 1_700_000_000_000


class Case(NamedTuple):
    """Steps from an empty directory to the files of a vector.

    Attributes:
        name: e.g. ``"offset-warm-section"``.
        machine: the state machine that generates such operations.
        title: description of the files.
    """

    name: str
    machine: str
    title: str
    steps: tuple[Operation, ...]


def _index(kind: str, name: str, title: str, *steps: tuple[Any, ...], size: int = 4096, how: str = "sealed") -> Case:
    """Return a case of one index file, which is opened, changed, closed, and perhaps corrupted.

    Args:
        kind: ``offset``, ``time`` or ``transaction``.
        steps: steps as (operation, arguments…); corruptions are executed after the file is closed.
        size: the maximum size of the index.
        how: ``sealed`` to trim and close the index, ``trimmed`` to trim it only, ``killed`` for neither.
    """
    ends = {"sealed": ("trim", "close"), "killed": ("crash",), "trimmed": ("trim", "crash")}[how]
    ending = [(end,) for end in ends if kind != "transaction" or end != "trim"]
    damage = [step for step in steps if step[0] in FILE_OPERATIONS]
    done = [step for step in steps if step[0] not in FILE_OPERATIONS]
    opening = ("open", kind, f"{BASE:020d}{_SUFFIX[kind]}", BASE, size, True)
    operations = (Operation(step[0], step[1:]) for step in (opening, *done, *ending, *damage))
    return Case(f"{kind}-{name}", kind, title, tuple(operations))


def _reopened(
    kind: str,
    name: str,
    title: str,
    steps: Iterable[tuple[Any, ...]],
    damage: tuple[tuple[Any, ...], ...],
    after: tuple[tuple[Any, ...], ...],
    *,
    writable: bool = True,
    how: str = "sealed",
) -> Case:
    """Return a case of an index file that is closed, corrupted, reopened and changed."""
    first = _index(kind, name, title, *steps, how=how, size=240)
    opening = ("open", kind, f"{BASE:020d}{_SUFFIX[kind]}", BASE, 4096, writable)
    more = (Operation(step[0], step[1:]) for step in (*damage, opening, *after, ("crash",)))
    return first._replace(steps=(*first.steps, *more))


_SUFFIX: Final = {"offset": ".index", "time": ".timeindex", "transaction": ".txnindex"}
_ENTRY: Final = {"offset": 8, "time": 12, "transaction": 34}
# Steps that append a few entries, by the kind of index.
_FEW: Final[dict[str, list[tuple[Any, ...]]]] = {
    "offset": [("append", BASE + 7 * n, 100 * n) for n in range(1, 13)],
    "time": [("maybe_append", TIME + 10 * n, BASE + 7 * n, False) for n in range(1, 13)],
    "transaction": [
        ("append_aborted", 1, BASE, BASE + 9, BASE + 5),
        ("append_aborted", 2, BASE + 5, BASE + 14, BASE + 12),
        ("append_aborted", 1, BASE + 12, BASE + 20, BASE + 21),
    ],
}
# A step that appends more entries than the warm section has, by the kind of index.
_MANY: Final[dict[str, tuple[Any, ...]]] = {
    "offset": ("bulk_append", BASE, 0, 2, 50, 1600),
    "time": ("bulk_maybe_append", TIME, BASE, 3, 2, 1600),
}


def _of_every_kind() -> Iterator[Case]:
    """Yield the cases for all kinds of index files."""
    for kind, few in _FEW.items():
        size, many = _ENTRY[kind], len(few)
        offset_of_last = size * (many - 1) + {"offset": 0, "time": 8, "transaction": 18}[kind]
        yield _index(kind, "empty", "No entry")
        yield _index(kind, "one", "One entry", few[0])
        yield _index(kind, "few", "A few entries", *few)
        yield _index(kind, "partial", "Bytes of a part of an entry at the end", *few, ("pad_file", 3, 0))
        yield _index(kind, "cut", "Cut within the last entry", *few, ("cut_file", size * many - 2))
        yield _index(
            kind, "below-base", "The last offset is below the base offset", *few, ("flip_bit", offset_of_last, 7)
        )
        yield _index(kind, "swapped", "Two entries have changed places", *few, ("swap_ranges", 0, 2, size))
        yield _index(kind, "truncated", "Truncated at an entry", *few, ("truncate_to", BASE + 14))
        yield _index(kind, "version", "Another number in the first two bytes", *few, ("flip_bit", 1, 2))


def _of_mapped_kinds() -> Iterator[Case]:
    """Yield the cases for both offset and time indexes."""
    for kind, many in _MANY.items():
        few, size = _FEW[kind], _ENTRY[kind]
        yield _index(kind, "tail", "Not trimmed: the process was killed", *few, size=240, how="killed")
        yield _index(kind, "trimmed", "Trimmed after the last entry, and never closed", *few, how="trimmed")
        yield _index(kind, "zeroed", "Every byte is zero", *few, ("write_file", "00" * 96))
        yield _index(kind, "full", "As many entries as fit", *few, few[0], size=size * len(few))
        yield _index(kind, "resized", "Made smaller and larger again", *few, ("resize", 400), ("resize", 8192))
        yield _index(kind, "warm-section", "More entries than the warm section has", many, size=24_000)
        warm = 1599 - 8192 // size
        for name, slot in (("warm-first", warm), ("warm-last", warm - 1), ("warm-next", warm + 1)):
            title = "An entry at the edge of the warm section is out of order"
            yield _index(kind, name, title, many, ("flip_bit", slot * size + 2, 6), size=24_000)
        more = few[-1]
        later = (more[0], more[1] + 500, more[2] + 500, *more[3:])
        reading = (("truncate_to", BASE + 14), later, ("resize", 480), later)
        yield _reopened(
            kind, "read-only", "Opened for reading only, and made smaller", few, (), reading, writable=False
        )
        yield _reopened(
            kind, "partial-trimmed", "A part of an entry is trimmed", few, (("pad_file", 3, 0),), (("trim",),)
        )


def _of_one_kind() -> Iterator[Case]:
    """Yield the cases for only one kind of index file."""
    positions = enumerate((0, 0, 100, 100, 100, 90, 200, 200))
    yield _index(
        "offset",
        "equal-positions",
        "Entries with equal positions, and positions that go back",
        *(("append", BASE + number, position) for number, position in positions),
    )
    yield _index(
        "offset",
        "limits",
        "The base offset itself, and the largest relative offset",
        ("append", BASE, 0),
        ("append", BASE + INT_MAX, INT_MAX),
        ("append", BASE + INT_MAX + 1, 1),
    )
    yield _index(
        "time",
        "same-timestamp",
        "A timestamp that is appended again is skipped",
        ("maybe_append", TIME, BASE + 1, False),
        ("maybe_append", TIME, BASE + 2, False),
        ("maybe_append", TIME + 1, BASE + 2, True),
        ("maybe_append", TIME - 1, BASE + 3, False),
        ("maybe_append", TIME + 2, BASE + 1, True),
    )
    yield _index(
        "time",
        "limits",
        "The largest relative offset",
        ("maybe_append", 0, BASE, False),
        ("maybe_append", TIME, BASE + INT_MAX, False),
        ("maybe_append", TIME + 1, BASE + INT_MAX + 1, False),
    )


@cache
def load_cases() -> tuple[Case, ...]:
    """Return all cases, in the order of the document."""
    written = [*_of_every_kind(), *_of_mapped_kinds(), *_of_one_kind()]
    written += [Case(f"segment-{name}", "segment", title, steps) for name, title, steps in segment_cases()]
    written += [Case(f"log-{name}", "log", title, steps) for name, title, steps in log_cases()]
    own = files("conformance")
    paths = (own / "experiments/vectors/cases.ndjson", *(own / "traces" / f"{kind}.ndjson" for kind in FILE_MACHINES))
    traces = {f"{trace.machine}-{trace.id}": trace for path in paths for trace in load_traces(path)}
    found = (
        Case(name, trace.machine, trace.title or "Found by the machine", trace.operations)
        for name, trace in traces.items()
    )
    return (*written, *found)


def not_shown() -> dict[str, str]:
    """Return the clauses that no vector exercises, each with the reason."""
    reasons = {clause.id: clause.not_exercised for clause in load_clauses().values() if clause.not_exercised}
    declared = tomllib.loads((files(__package__) / "not_shown.toml").read_text("utf-8"))
    return reasons | {clause: reason for reason, clauses in declared.items() for clause in clauses}


_Steps = tuple[Operation, ...]
_CLOSE: Final = Operation("close_segment")
_DAY: Final = 86_400_000


def _open(*, exists: bool) -> Operation:
    return Operation("open_segment", (BASE, 100, 4096, 0, exists, 0, False, "", TIME))


def _batches(count: int = 12, **more: Any) -> list[dict[str, Any]]:
    """Return batches of three records with offset gaps; pairs of batches have the same largest timestamp."""
    return [
        {
            "base": BASE + 5 * n,
            "records": [[i, TIME + 100 * (n // 2) - 30 * i, 20] for i in (0, 2, 3)],
            "epoch": n // 4,
            **more,
        }
        for n in range(count)
    ]


def _old(magic: int) -> list[dict[str, Any]]:
    """Return messages of an old format, each with one record."""
    records = ([[0, TIME + 50 * (n % 7) if magic else -1, 20, 3]] for n in range(20))
    return [{"base": BASE + 2 * n, "records": each, "magic": magic} for n, each in enumerate(records)]


def _transactions() -> list[dict[str, Any]]:
    """Return two overlapping transactions, of which the first is aborted and the second committed."""
    data = [
        {
            "base": BASE + 10 * n,
            "records": [[i, TIME + 10 * n + i, 20] for i in range(3)],
            "producer": [7 + n % 2, 0, 3 * (n // 2)],
            "transactional": True,
        }
        for n in range(6)
    ]
    ends = zip(((7, "abort"), (8, "commit")), (60, 61), strict=True)
    return [
        *data,
        *(
            {"base": BASE + at, "records": [[0, TIME + at]], "marker": end, "producer": [producer, 0, -1]}
            for (producer, end), at in ends
        ),
    ]


def _appended(batches: Iterable[Batch]) -> _Steps:
    """Return appends of the batches, one by one, with the arguments of a follower."""
    data = [encode([batch]) for batch in batches]
    return tuple(Operation("append_records", (each.hex(), *follower_append_info(each))) for each in data)


def _damaged(suffix: str, how: str, *numbers: int) -> Operation:
    return Operation("damage_segment_file", (suffix, how, list(numbers)))


def segment_cases() -> Iterator[tuple[str, str, _Steps]]:
    """Yield name, title and steps of each case of a segment; if a name begins with ``sound``, its files are sound."""
    formats = {codec: _batches(codec=codec) for codec in ("gzip", "snappy", "lz4", "zstd")}
    formats |= {"plain": _batches(), "v0": _old(0), "v1": _old(1), "stamped": _batches(log_append_time=TIME + 7)}
    formats["v1-gzip"] = _batches(codec="gzip", magic=1)
    for name, batches in formats.items():
        yield f"sound-{name}", f"Batches: {name}", (_open(exists=False), *_appended(batches), _CLOSE)
    noted = Operation("update_txn_index", (7, BASE, BASE + 60, True, BASE + 10))
    aborted = (_open(exists=False), *_appended(_transactions()), noted, _CLOSE)
    yield "sound-transactions", "An aborted transaction and a committed one", aborted
    yield "sound-empty", "No batch", (_open(exists=False), _CLOSE)
    plain = (_open(exists=False), *_appended(_batches()), _CLOSE)
    recovered = (_open(exists=True), Operation("recover_segment"), _CLOSE)
    gone = (_damaged(".index", "remove_file"), _damaged(".timeindex", "remove_file"))
    checked = (_open(exists=True), Operation("check_segment", (False,)))
    yield "sound-rebuilt", "Indexes that recovery has rebuilt", (*plain, *gone, *recovered)
    yield (
        "sound-cut",
        "A batch that was cut off is gone after recovery",
        (*plain, _damaged(".log", "cut_file", 1000), *recovered),
    )
    yield (
        "sound-flipped",
        "A batch with a wrong checksum ends the log",
        (*plain, _damaged(".log", "flip_bit", 900, 3), *recovered),
    )
    for suffix, size in ((".index", 8), (".timeindex", 12)):
        for name, damage in (
            ("zeroed", ("zero_range", 0, 4 * size)),
            ("partial", ("pad_file", 3, 1)),
            ("empty", ("cut_file", 0)),
        ):
            steps = (*plain, _damaged(suffix, damage[0], *damage[1:]), *checked, _CLOSE)
            yield f"{name}{suffix.replace('.', '-')}", f"The check of a corrupt {suffix}", steps


def _log(*batches: Batch, follower: bool = False, **settings: Any) -> _Steps:
    """Return the steps that open a log of small segments and append each batch."""
    sizes = {"segment.bytes": 500, "segment.index.bytes": 120, "index.interval.bytes": 100}
    given = {name.replace("_", "."): value for name, value in settings.items()}
    name = "append_as_follower" if follower else "append_as_leader"
    appends = (Operation(name, ([batch], batch.get("epoch", 0))) for batch in batches)
    return (
        Operation("open_log", (sizes | given, 0, 0, True, TIME)),
        *appends,
        Operation("update_high_watermark", (1 << 40,)),
    )


def log_cases() -> Iterator[tuple[str, str, _Steps]]:
    """Yield name, title and steps of each case of a log; if a name begins with ``sound``, its files are sound."""
    closed = (Operation("close_log", (True,)),)
    plain = [
        batch | {"base": 0, "records": [[n, *more] for n, (_, *more) in enumerate(batch["records"])]}
        for batch in _batches()
    ]
    yield "sound-empty", "No batch", _log() + closed
    yield "sound-plain", "Segments of some batches, by several leaders", _log(*plain) + closed
    yield "sound-stamped", "With the broker's time", _log(*plain, message_timestamp_type="LogAppendTime") + closed
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        yield f"sound-{codec}", f"Compressed by the leader: {codec}", _log(*plain, compression_type=codec) + closed
    yield "sound-v1", "Messages of format v1, as a follower got them", _log(*_old(1), follower=True) + closed
    yield "sound-transactions", "Transactions", _log(*_transactions()) + closed
    deleted = (Operation("delete_records", (11,)),)
    yield "deleted", "Records before an offset were deleted", _log(*plain) + deleted + closed
    killed = (Operation("crash_log"),)
    yield "killed", "Not closed", _log(*plain) + killed
    index = f"{0:020d}.index"
    half = (
        Operation("damage_log_file", (index, "remove_file", [])),
        Operation("damage_log_file", (f"{index}.swap", "write_file", ["0000000500000000"])),
    )
    yield (
        "half-renamed",
        "An index was still to be renamed when the process was killed",
        (*_log(*plain), *closed, *half),
    )
    written, opening = _log(*plain), _log()[0]
    lost = Operation("damage_log_file", (f"{1:020d}.index", "write_file", ["0000000500000000"]))
    yield "orphaned-index", "Opened again with an index that had no log", (*written, *closed, lost, opening, *closed)
    lone = [{"records": [[0, TIME]], "producer": [9, 1, sequence]} for sequence in (4, 5, 5, 4, 9)]
    fenced = [{"records": [[0, TIME]], "producer": [9, 0, 6]}, {"records": [[0, TIME]], "producer": [10, 0, 0]}]
    later = (Operation("set_clock", (TIME + 9 * _DAY,)), Operation("expire_producers"))
    known = [{"records": [[0, TIME]], "producer": [11, 0, sequence]} for sequence in (0, 1, 1, 0, 5)]
    yield "producers", "Sequence numbers and epochs of producers", _log(*lone, *fenced, *known) + later + closed
    rolls = (Operation("roll_log"), Operation("roll_log"))
    full = _log(*plain[:2], {"records": [[0, TIME]], "producer": [9, 0, 0]}, segment_index_bytes=12)
    yield "rolled", "Rolled while the newest segment is empty", full + rolls + closed
    single = [{"records": [[0, timestamp]]} for timestamp in (TIME, TIME - 9 * _DAY, TIME, TIME)]
    size = len(encode(single[:1]))
    segments = _log(*single, segment_bytes=size, retention_bytes=3 * size)
    aged = "Deleted by size: the oldest segment; by time: one that is older than it"
    yield "retained", aged, (*segments, Operation("apply_retention"), *closed)
