"""Distinct differences: what was seen many times, in many releases, told once for each thing that is wrong.

A step exercises several clauses, from the particular ("a lookup before the first entry") to the general ("a lookup"),
so its clauses alone do not say which of them fails. What was exercised says more: a clause that held in other steps is
not what is broken there. So the failing clause of a difference is one that never held where it showed, and of several
the one that explains most sightings; where each clause held at times, it is the operation's own, the last MUST.

Two differences are the same if implementation, failing clause (whatever the letter of its variant) and first aspect are
the same; without any clause, if machine and shape are.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.attribution import ROWS
from conformance.clauses import LEVELS, load_clauses
from conformance.kafka.releases import RELEASES
from conformance.lockstep.divergence import error_of
from conformance.runs.differences.gravity import gravity, is_empty
from conformance.runs.differences.shapes import shape_of

if TYPE_CHECKING:
    from conformance.lockstep.divergence import Divergence
    from conformance.runs.differences.sightings import Kind, Sighting, Sightings

FAILED: Final = "failure"
"""Stands for the aspect of a program that has crashed, was late or talked nonsense."""
_TELLING: Final = 3
"""Sightings from which on "it never held" tells something."""


class Identity(NamedTuple):
    """What makes two differences the same.

    ``what`` is a clause without its letter, with the operation if it holds elsewhere; or machine and shape.
    """

    implementation: str
    what: str
    aspect: str


class Way(NamedTuple):
    """What sightings of one difference look like: their shape, and whether either side has no answer."""

    shape: str
    none_expected: bool
    none_given: bool


def way_of(divergence: Divergence) -> Way:
    """Return what a difference looks like."""
    is_outcome = divergence.aspects[0] == "outcome"
    expected, actual = divergence.expected, divergence.actual
    return Way(_single(shape_of(divergence)), is_outcome and is_empty(expected), is_outcome and is_empty(actual))


class Place(NamedTuple):
    """Where a difference shows."""

    machine: str
    release: str
    participant: str


@dataclass
class Distinct:
    """One thing that is wrong.

    Attributes:
        identity: what it is known by.
        clause: the failing clause; empty if no clause speaks of the step.
        shape: of the sighting that stands for all of them.
        machine: that found it first.
        sighting: shows it in the newest release, with the fewest steps.
        places: everywhere it shows.
        count: how often it was seen.
        first: which of the machine's kinds of sightings was its first.
        told: the clauses at stake in the steps that are told.
        never_held: whether the failing clause held nowhere.
        shapes: of all sightings.
        ways: of the sightings that look alike, the one that stands for them and how often they were seen.
    """

    identity: Identity
    clause: str
    shape: str
    machine: str
    sighting: Sighting
    places: set[Place] = field(default_factory=set)
    count: int = 0
    first: int = sys.maxsize
    told: frozenset[str] = frozenset()
    never_held: bool = False
    shapes: set[str] = field(default_factory=set)
    ways: dict[Way, tuple[Sighting, int]] = field(default_factory=dict)

    def concerns(self, clause: str) -> bool:
        """Whether a clause is at stake, or is a variant of the one that fails."""
        family = self.clause.rstrip(ascii_lowercase)
        return clause in self.told or (bool(family) and clause.rstrip(ascii_lowercase) == family)

    @property
    def is_refusal(self) -> bool:
        """Whether the operation should have been refused."""
        expected = self.sighting.divergence.expected
        return isinstance(expected, tuple) and self.identity.aspect == "outcome" and expected[0] is not None

    @property
    def operation(self) -> str:
        """The operation that shows it."""
        return _name(self.sighting.divergence)

    def is_shown_by(self, divergence: Divergence) -> bool:
        """Whether a difference of the same participant is this one: what its steps may be shrunk to.

        It is as grave, what was accepted is not refused instead, and no clause speaks of it that did not before (a
        look-up among entries does not become one in an empty index): else it would be fixed in another place.
        """
        mine = self.sighting.divergence
        return (
            divergence.participant == mine.participant
            and self.is_alike(divergence)
            and _refused(divergence) == _refused(mine)
            and gravity(divergence) >= gravity(mine)
            and (not self.clause or set(divergence.clauses) <= set(mine.clauses))
        )

    def is_alike(self, divergence: Divergence) -> bool:
        """Whether a difference is this one, in whichever release."""
        if _aspect(divergence) != self.identity.aspect:
            return False
        if self.clause:
            return self.clause in divergence.clauses and _name(divergence) == self.operation
        return _single(shape_of(divergence)) == _single(self.shape)

    @property
    def other_ways(self) -> list[tuple[Sighting, int]]:
        """How else it was seen, most often first: sightings that the one that stands for all does not look like."""
        own = way_of(self.sighting.divergence)
        return sorted((seen for way, seen in self.ways.items() if way != own), key=lambda seen: -seen[1])

    def take_in(self, other: Distinct) -> None:
        """Another difference turns out to be this one."""
        self.places |= other.places
        self.count += other.count
        self.first = min(self.first, other.first)

    @property
    def releases(self) -> tuple[str, ...]:
        """All releases, the newest first."""
        return tuple(sorted({place.release for place in self.places}, key=_age, reverse=True))

    @property
    def machines(self) -> tuple[str, ...]:
        """All machines; the one that found it first comes first."""
        return tuple(dict.fromkeys((self.machine, *sorted(place.machine for place in self.places))))


def distinct_differences(
    machine: str,
    sightings: Sightings,
    specification: Callable[[str], str],
    held: Mapping[str, Counter[str]],
) -> list[Distinct]:
    """The distinct differences of one machine, in the order of their first sighting.

    Args:
        machine: its name.
        sightings: all of them.
        specification: how a participant was asked for.
        held: for each participant, in how many steps each clause held.
    """
    by_aspect: dict[tuple[str, str], list[tuple[Kind, Sighting]]] = {}
    for kind, sighting in sightings.items():
        by_aspect.setdefault((specification(kind.participant), _aspect(sighting.divergence)), []).append(
            (kind, sighting)
        )
    found: dict[Identity, Distinct] = {}
    order = {kind: number for number, kind in enumerate(sightings)}
    for (implementation, aspect), seen in by_aspect.items():
        # A program that crashes keeps no clause: what it was asked for is all that there is to say.
        parts = [("", "", seen)] if aspect == FAILED else _by_failing_clause(seen, held)
        for clause, operation, same in parts:
            for shape, alike in _by_shape(clause, same):
                what = f"{clause.rstrip(ascii_lowercase)} {operation}".strip() if clause else f"{machine} {shape}"
                identity = Identity(implementation, what, aspect)
                _add(found, identity, clause, machine, alike)
                found[identity].never_held |= bool(clause) and not operation
                first = min(order[kind] for kind, _ in alike)
                found[identity].first = min(found[identity].first, first)
    return sorted(_folded(found.values()), key=lambda one: one.first)


def _folded(found: Iterable[Distinct]) -> list[Distinct]:
    """Without those that follow from another difference of the same operation and aspect.

    Where what an operation is for never held, nothing else of it says anything new; and where it breaks a promise, what
    it does where no clause promises anything follows.
    """
    every = sorted(found, key=_weight)  # so that what follows from what follows is not lost
    kept = []
    for one in every:
        first = max((other for other in every if _follows(one, other)), key=_weight, default=None)
        if first is None:
            kept.append(one)
        else:
            first.take_in(one)
    return kept


def _weight(one: Distinct) -> tuple[int, int]:
    return one.count, -one.first


def _follows(one: Distinct, other: Distinct) -> bool:
    """Whether a difference follows from another one, which has more weight."""
    if not other.clause or _weight(other) <= _weight(one) or other.is_refusal:
        return False
    if (one.identity.implementation, one.operation, one.identity.aspect) != (
        other.identity.implementation,
        other.operation,
        other.identity.aspect,
    ):
        return False
    catalogue = load_clauses()
    promises = [LEVELS.index(catalogue[clause].level) for clause in one.sighting.divergence.clauses]
    is_lesser = bool(promises) and min(promises) > LEVELS.index(catalogue[other.clause].level)
    own = operations_own(other.sighting.divergence.clauses, other.identity.aspect)
    return is_lesser or (other.never_held and other.clause == own)


def _add(
    found: dict[Identity, Distinct], identity: Identity, clause: str, machine: str, seen: list[tuple[Kind, Sighting]]
) -> None:
    best = min(seen, key=lambda pair: _standing(pair[1]))
    known = found.get(identity)
    if known is None:
        known = found[identity] = Distinct(identity, clause, best[0].shape, machine, best[1])
    elif _standing(best[1]) < _standing(known.sighting):
        known.clause, known.shape, known.sighting = clause, best[0].shape, best[1]
    for _, sighting in seen:
        way = way_of(sighting.divergence)
        shown, count = known.ways.get(way, (sighting, 0))
        known.ways[way] = min(shown, sighting, key=_standing), count + sighting.count
    known.shapes |= {kind.shape for kind, _ in seen}
    known.count += sum(sighting.count for _, sighting in seen)
    known.places |= {Place(machine, sighting.divergence.release, kind.participant) for kind, sighting in seen}


def _standing(sighting: Sighting) -> tuple[int, bool, int, int, int]:
    """Which sighting stands for the others: the smallest.

    It is one of the newest release's, of those the gravest, in the fewest special circumstances, with the fewest steps.
    """
    divergence = sighting.divergence
    promise, rank = gravity(divergence)
    return -_age(divergence.release), not promise, -rank, len(divergence.clauses), len(sighting.operations)


def _age(release: str) -> int:
    return RELEASES.index(release) if release in RELEASES else -1


def _operation(sighting: Sighting) -> str:
    return _name(sighting.divergence)


def _name(divergence: Divergence) -> str:
    """The operation; many of them at once are the same."""
    return _single(divergence.operation.name)


def _single(name: str) -> str:
    return name.removeprefix("bulk_")


def _refused(divergence: Divergence) -> tuple[bool, bool]:
    """Whether the reference refuses the operation, and whether the participant does, as far as these differ."""
    if divergence.aspects[0] != "outcome":
        return False, False
    return bool(error_of(divergence.expected)), bool(error_of(divergence.actual))


def _aspect(divergence: Divergence) -> str:
    return FAILED if divergence.is_failure else divergence.aspects[0]


def _by_shape(clause: str, seen: list[tuple[Kind, Sighting]]) -> Iterable[tuple[str, list[tuple[Kind, Sighting]]]]:
    """Differences of one clause are one; those without any are told apart by their shape."""
    if clause:
        return [("", seen)]
    shapes: dict[str, list[tuple[Kind, Sighting]]] = {}
    for kind, sighting in seen:
        shapes.setdefault(_single(kind.shape), []).append((kind, sighting))
    return shapes.items()


def _by_failing_clause(
    seen: Sequence[tuple[Kind, Sighting]], held: Mapping[str, Counter[str]]
) -> Iterable[tuple[str, str, list[tuple[Kind, Sighting]]]]:
    """Sightings by the clause that fails in them, and by operation where that clause holds elsewhere."""
    left = list(seen)
    while left:
        clause = _never_held(left, held)
        if not clause:
            break
        yield clause, "", [pair for pair in left if clause in pair[0].clauses]
        left = [pair for pair in left if clause not in pair[0].clauses]
    rest: dict[tuple[str, str], list[tuple[Kind, Sighting]]] = {}
    for kind, sighting in left:
        own = operations_own(kind.clauses, _aspect(sighting.divergence)), _operation(sighting)
        rest.setdefault(own, []).append((kind, sighting))
    yield from ((*own, alike) for own, alike in rest.items())


def _never_held(seen: Sequence[tuple[Kind, Sighting]], held: Mapping[str, Counter[str]]) -> str:
    """The clause that never held where it failed and explains most of what was seen; empty if there is none."""
    failed: Counter[str] = Counter()
    place: dict[str, int] = {}
    not_only: set[str] = set()
    for kind, sighting in seen:
        for number, clause in enumerate(kind.clauses):
            failed[clause] += sighting.count
            place[clause] = max(place.get(clause, 0), number)
            if held.get(kind.participant, Counter())[clause]:
                not_only.add(clause)
    candidates = [clause for clause in failed if clause not in not_only and failed[clause] >= _TELLING]
    # Of those that explain as much, the most general one: the last.
    return max(candidates, key=lambda clause: (failed[clause], place[clause]), default="")


@cache
def _layouts() -> frozenset[str]:
    """The clauses about how entries lie in an index file."""
    return frozenset(row.clause for rows in ROWS.values() for row in rows if row.why == "the bytes of the file")


def operations_own(clauses: Sequence[str], aspect: str = "") -> str:
    """Of the clauses of a step the operation's own: that of a refusal's text, the last MUST, the last; empty if none.

    A refusal that nothing but its text speaks of in particular is told apart from what the operation does otherwise.
    Where answer and state are right and only the bytes differ, it is a clause about how entries lie in the file.
    """
    catalogue = load_clauses()
    texts = [clause for clause in clauses if set(catalogue[clause].excuses) == {"text"}]
    promised = [clause for clause in clauses if catalogue[clause].level != "OBSERVED"]
    layouts = [clause for clause in promised if aspect == "bytes" and clause in _layouts()]
    return (texts or layouts or promised or list(clauses) or [""])[-1]
