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
from conformance.experiments.vectors.log_cases import log_cases, segment_cases
from conformance.operations import FILE_OPERATIONS, Operation
from conformance.operations.trace_file import load_traces
from kidx.java_numbers import INT_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
