"""Which value of each column of the table of dialects a release has, by trying every one.

Column after column takes the value in whose dialect the fewest traces come out otherwise, until no column moves; of
equals the one that it has, or that of the nearest release. A value that fails no more traces is kept beside it: nothing
tells the two apart. What then still differs is tried once more with each behaviour turned to another value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

from kidx.dialect import BEHAVIOURS, DIALECTS, Dialect, varied
from kidx.dialect.columns import Columns

if TYPE_CHECKING:
    from conformance.experiments.release_proposal.trials import Failing, Trials

CANDIDATES: Final[Mapping[str, tuple[Any, ...]]] = {
    column.name: values
    for column in fields(Columns)
    if (values := get_args(get_type_hints(Columns)[column.name])) and all(isinstance(value, str) for value in values)
}
"""The values of each column that is decided by executing; the versions of ListOffsets are read from the classes."""
_WHOLE: Final = frozenset({"index_rules", "segment_rules"})
"""Behaviours that only sum up others."""
_MAX_TIMESTAMP_SINCE: Final = 7
"""The version of ListOffsets that can ask for the largest timestamp."""


@dataclass(frozen=True)
class Probed:
    """What is found out of a release.

    Attributes:
        dialect: the proposed row, and the behaviours that it needs beside it.
        kept: for each column the values that the traces do not tell from the proposed one, which comes first.
        behaviours: those that have to be otherwise than the row and the version say.
        refuted: for each column the other values, each with a trace that fails in it and not in the proposed row.
        failing: traces that fail in the proposed dialect, too: no known value explains them.
    """

    dialect: Dialect
    kept: Mapping[str, tuple[Any, ...]]
    behaviours: Mapping[str, Any]
    refuted: Mapping[str, Mapping[Any, str]]
    failing: Mapping[str, Failing]


def behaviours_of(dialect: Dialect) -> tuple[Any, ...]:
    """All that follows from a dialect. Of two that have the same nothing can tell which it is."""
    return tuple(getattr(dialect, name) for name in BEHAVIOURS if name not in _WHOLE)


def probe(trials: Trials, start: Dialect, candidates: Mapping[str, tuple[Any, ...]] = CANDIDATES) -> Probed:
    """Tries every value of every column.

    Args:
        trials: the release's classes.
        start: a first guess: the row of the newest release before it.
        candidates: the values of each column.
    """
    chosen, moved = fitted(start), True
    while moved:
        moved = False
        for column, values in candidates.items():
            others = _others(chosen, column, values).values()
            best = min(others, key=lambda other: len(trials.result(other).failing))
            if best != chosen:
                chosen, moved = best, True
    kept: dict[str, tuple[Any, ...]] = {}
    refuted: dict[str, dict[Any, str]] = {}
    base = trials.result(chosen).failing
    for column, values in candidates.items():
        now = getattr(chosen, column)
        kept[column], refuted[column] = (now,), {}
        for value, other in _others(chosen, column, values).items():
            if value != now:
                told = [id_ for id_ in trials.result(other).failing if id_ not in base]
                if told:
                    refuted[column][value] = told[0]
                else:
                    kept[column] += (value,)
    behaviours = _turned(trials, chosen)
    dialect = varied(chosen, **behaviours)
    return Probed(dialect, kept, behaviours, refuted, trials.result(dialect).failing)


def fitted(dialect: Dialect) -> Dialect:
    """The columns made to go together: an entry a batch leaves a leader nothing to say, and -3 came with version 7."""
    leader, largest = dialect.leader_timestamp, dialect.max_lookup
    if (dialect.append == "A2") is not (leader == "L4"):
        leader = "L4" if dialect.append == "A2" else "L3"
    if (dialect.list_offsets_versions[1] < _MAX_TIMESTAMP_SINCE) is not (largest == "M0"):
        largest = "M2" if largest == "M0" else "M0"
    return replace(dialect, leader_timestamp=leader, max_lookup=largest)


def _others(dialect: Dialect, column: str, values: Iterable[Any]) -> dict[Any, Dialect]:
    """The dialects with each value that goes with the other columns, the nearest release's first."""
    near = sorted(DIALECTS.values(), key=lambda known: _distance(known, dialect))
    order = [getattr(known, column) for known in near if known.release != dialect.release]
    wanted = dict.fromkeys((getattr(dialect, column), *(value for value in order if value in values), *values))
    others = {value: fitted(replace(dialect, **{column: value})) for value in wanted}
    return {value: other for value, other in others.items() if getattr(other, column) == value}


def _distance(one: Dialect, other: Dialect) -> tuple[int, ...]:
    return tuple(abs(mine - theirs) for mine, theirs in zip(one.version, other.version, strict=True))


def _turned(trials: Trials, dialect: Dialect) -> dict[str, Any]:
    """The behaviours that have to be otherwise, so that fewer traces fail and none that did not."""
    turned: dict[str, Any] = {}
    failing = set(trials.result(dialect).failing)
    for name in BEHAVIOURS if failing else ():
        if name in _WHOLE or not failing:
            continue
        for value in dict.fromkeys(getattr(known, name) for known in DIALECTS.values()):
            if value == getattr(dialect, name):
                continue
            left = set(trials.result(varied(dialect, **turned, **{name: value})).failing)
            if left < failing:
                turned[name], failing = value, left
                break
    return turned
