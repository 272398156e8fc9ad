"""Deduplication: each defect is reported once, even if it causes many divergences in many releases.

A step exercises several clauses, from the specific ("a lookup before the first entry") to the general ("a lookup"). Its
clauses alone therefore do not show which of them fails. Other steps help, because a clause that passed in them does not
fail. The failing clause of a divergence is a clause that never passed. Of several such clauses, the failing clause
explains most occurrences. If each clause passed in some step, the failing clause is the primary clause of the
operation, the last MUST clause.

Two divergences are the same if implementation, failing clause (without the letter of its variant) and first aspect
(what differs: outcome, text, state or bytes) are equal. If no clause applies, they are the same if machine and
signature are equal.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.attribution.tables import rows_of
from conformance.clauses import LEVELS, family, load_clauses
from conformance.kafka.releases import RELEASES
from conformance.lockstep.divergence import CRASH_ASPECT
from conformance.operations import KINDS
from conformance.runs.divergences.signatures import severity, signature_of
from conformance.runs.sameness import Sameness

if TYPE_CHECKING:
    from conformance.events import Diverged
    from conformance.lockstep.divergence import Divergence, DivergenceError
    from conformance.runs.divergences.signatures import Bucket, Buckets

_MIN_OCCURRENCES: Final = 3
"""The number of occurrences that is needed before a clause counts as never passed."""


class Form(NamedTuple):
    """Form in which a unique divergence appears.

    Attributes:
        shape: The signature: operation, aspect, and the kinds of the expected and the actual outcome.
        none_expected: True if the expected result is an error or nothing.
        none_given: True if the actual result is an error or nothing.
    """

    shape: str
    none_expected: bool = False
    none_given: bool = False


def form_of(divergence: Divergence) -> Form:
    """Return the form of a divergence."""
    shape = _single(signature_of(divergence))
    return Form(shape, *(each.is_empty for each in divergence.outcomes)) if divergence.outcomes else Form(shape)


class Place(NamedTuple):
    """Machine, release and participant in which a divergence occurs."""

    machine: str
    release: str
    participant: str


@dataclass
class UniqueDivergence:
    """Unique divergence.

    Attributes:
        identity: The key: a clause, with the operation if the clause passes elsewhere; or machine and signature.
        clause: The failing clause; empty if no clause applies to the step.
        shape: The signature of the representative.
        machine: The machine that found the divergence first.
        representative: The representative: an occurrence in the newest release, with the fewest steps.
        places: The machines, releases and participants in which the divergence occurs.
        count: The number of occurrences.
        first: The position of the first occurrence among the machine's buckets.
        reported_clauses: The implicated clauses of the reported steps.
        never_held: True if the failing clause never passed.
        shapes: The signatures of all occurrences.
        forms: For each form, its representative and its number of occurrences.
        minimized: The divergence of the shrunk steps; set when the representative has been shrunk.
        event: The event with these steps; set at the same time.
    """

    identity: Sameness
    clause: str
    shape: str
    machine: str
    representative: Bucket
    places: set[Place] = field(default_factory=set)
    count: int = 0
    first: int = sys.maxsize
    reported_clauses: frozenset[str] = frozenset()
    never_held: bool = False
    shapes: set[str] = field(default_factory=set)
    forms: dict[Form, tuple[Bucket, int]] = field(default_factory=dict)
    minimized: DivergenceError = field(init=False, repr=False, compare=False)
    event: Diverged = field(init=False, repr=False, compare=False)

    def concerns(self, clause: str) -> bool:
        """Return True if a clause is implicated, or is a variant of the failing one."""
        return clause in self.reported_clauses or (bool(self.clause) and family(clause) == family(self.clause))

    @property
    def expects_error(self) -> bool:
        """True if an error is expected."""
        divergence = self.representative.divergence
        return not divergence.is_failure and divergence.are_errors[0]

    @property
    def operation(self) -> str:
        """The operation of the representative."""
        return _name(self.representative.divergence)

    def matches_participant(self, divergence: Divergence) -> bool:
        """Return True if a divergence of the same participant is this one, so that steps may be shrunk to it.

        Shrinking must not change the cause. The other divergence must therefore be at least as severe, and must not be
        an unexpected error if this one is not. No clause may apply to it that does not apply to this one: a lookup
        among entries must not become a lookup in an empty index.
        """
        mine = self.representative.divergence
        return (
            divergence.participant == mine.participant
            and self.matches(divergence)
            and divergence.are_errors == mine.are_errors
            and severity(divergence) >= severity(mine)
            and (not self.clause or set(divergence.clauses) <= set(mine.clauses))
        )

    def matches(self, divergence: Divergence) -> bool:
        """Return True if a divergence of any release is this one."""
        if divergence.aspect != self.identity.aspect:
            return False
        if self.clause:
            return self.clause in divergence.clauses and _name(divergence) == self.operation
        return _single(signature_of(divergence)) == _single(self.shape)

    @property
    def other_forms(self) -> list[tuple[Bucket, int]]:
        """The other forms of the divergence, most frequent first, without the form of the representative."""
        own = form_of(self.representative.divergence)
        return sorted((seen for form, seen in self.forms.items() if form != own), key=lambda seen: -seen[1])

    def merge(self, other: UniqueDivergence) -> None:
        """Merge another divergence that is found to be this one."""
        self.places |= other.places
        self.count += other.count
        self.first = min(self.first, other.first)

    @property
    def releases(self) -> tuple[str, ...]:
        """All releases, the newest first."""
        return tuple(sorted({place.release for place in self.places}, key=_release_rank, reverse=True))

    @property
    def machines(self) -> tuple[str, ...]:
        """All machines, beginning with the machine that found the divergence first."""
        return tuple(dict.fromkeys((self.machine, *sorted(place.machine for place in self.places))))


def deduplicate(
    machine: str,
    buckets: Buckets,
    specification: Callable[[str], str],
    passed: Mapping[str, Counter[str]],
) -> list[UniqueDivergence]:
    """Return the unique divergences of one machine, in the order of their first occurrence.

    Args:
        buckets: All buckets.
        specification: A function that returns the ``-i`` argument of a participant.
        passed: For each participant, the number of steps in which each clause passed.
    """
    by_aspect: dict[tuple[str, str], list[Bucket]] = {}
    for bucket in buckets.values():
        own = specification(bucket.divergence.participant), bucket.divergence.aspect
        by_aspect.setdefault(own, []).append(bucket)
    found: dict[Sameness, UniqueDivergence] = {}
    order = {id(bucket): number for number, bucket in enumerate(buckets.values())}
    for (implementation, aspect), seen in by_aspect.items():
        # A program that crashes satisfies no clause; only the request identifies the crash.
        parts = [("", "", seen)] if aspect == CRASH_ASPECT else _by_failing_clause(seen, passed)
        for clause, operation, same in parts:
            for shape, alike in _by_shape(clause, same):
                circumstances = frozenset() if clause else frozenset({machine, shape})
                identity = Sameness(implementation, family(clause), operation, aspect, circumstances)
                _add(found, identity, clause, machine, alike)
                found[identity].never_held |= bool(clause) and not operation
                first = min(order[id(bucket)] for bucket in alike)
                found[identity].first = min(found[identity].first, first)
    return sorted(_without_consequences(found.values()), key=lambda one: one.first)


def _without_consequences(found: Iterable[UniqueDivergence]) -> list[UniqueDivergence]:
    """Return the divergences that are not consequences of another divergence of the same operation and aspect.

    If the primary clause of an operation never passed, the other divergences of the operation add nothing. If a
    divergence violates a guarantee, divergences of the operation that violate none are consequences.
    """
    every = sorted(found, key=_weight)  # sorted, so that a consequence of a consequence is found, too
    kept = []
    for one in every:
        first = max((other for other in every if _is_consequence_of(one, other)), key=_weight, default=None)
        if first is None:
            kept.append(one)
        else:
            first.merge(one)
    return kept


def _weight(one: UniqueDivergence) -> tuple[int, int]:
    return one.count, -one.first


def _is_consequence_of(one: UniqueDivergence, other: UniqueDivergence) -> bool:
    """Return True if a divergence is a consequence of another divergence, which is more severe."""
    if not other.clause or _weight(other) <= _weight(one) or other.expects_error:
        return False
    if (one.identity.implementation, one.operation, one.identity.aspect) != (
        other.identity.implementation,
        other.operation,
        other.identity.aspect,
    ):
        return False
    catalogue = load_clauses()
    promises = [LEVELS.index(catalogue[clause].level) for clause in one.representative.divergence.clauses]
    is_lesser = bool(promises) and min(promises) > LEVELS.index(catalogue[other.clause].level)
    own = primary_clause(other.representative.divergence.clauses, other.identity.aspect)
    return is_lesser or (other.never_held and other.clause == own)


def _add(
    found: dict[Sameness, UniqueDivergence],
    identity: Sameness,
    clause: str,
    machine: str,
    seen: list[Bucket],
) -> None:
    """Add occurrences to the unique divergence with their identity."""
    best = min(seen, key=_representative_rank)
    known = found.get(identity)
    if known is None:
        known = found[identity] = UniqueDivergence(identity, clause, best.shape, machine, best)
    elif _representative_rank(best) < _representative_rank(known.representative):
        known.clause, known.shape, known.representative = clause, best.shape, best
    for bucket in seen:
        form = form_of(bucket.divergence)
        shown, count = known.forms.get(form, (bucket, 0))
        known.forms[form] = min(shown, bucket, key=_representative_rank), count + bucket.count
        known.shapes.add(bucket.shape)
        known.count += bucket.count
        known.places.add(Place(machine, bucket.divergence.release, bucket.divergence.participant))


def _representative_rank(bucket: Bucket) -> tuple[int, bool, int, int, int]:
    """Return the sort key of an occurrence; the representative has the smallest.

    The representative is from the newest release. Among these, it is the most severe occurrence, with the fewest
    clauses and the fewest steps.
    """
    divergence = bucket.divergence
    violates_guarantee, rank = severity(divergence)
    return (
        -_release_rank(divergence.release),
        not violates_guarantee,
        -rank,
        len(divergence.clauses),
        len(bucket.operations),
    )


def _release_rank(release: str) -> int:
    return RELEASES.index(release) if release in RELEASES else -1


def _name(divergence: Divergence) -> str:
    """Return the operation; a bulk operation counts as the single operation that it repeats."""
    return _single(divergence.operation.name)


def _single(name: str) -> str:
    return name.removeprefix("bulk_")


def _by_shape(clause: str, seen: list[Bucket]) -> Iterable[tuple[str, list[Bucket]]]:
    """Group divergences: all with a clause are one group; without a clause, each signature is a group."""
    if clause:
        return [("", seen)]
    shapes: dict[str, list[Bucket]] = {}
    for bucket in seen:
        shapes.setdefault(_single(bucket.shape), []).append(bucket)
    return shapes.items()


def _by_failing_clause(
    seen: Sequence[Bucket], passed: Mapping[str, Counter[str]]
) -> Iterable[tuple[str, str, list[Bucket]]]:
    """Yield the buckets by failing clause, and also by operation if that clause passes elsewhere."""
    left = list(seen)
    while left:
        clause = _clause_never_passed(left, passed)
        if not clause:
            break
        yield clause, "", [bucket for bucket in left if clause in bucket.divergence.clauses]
        left = [bucket for bucket in left if clause not in bucket.divergence.clauses]
    rest: dict[tuple[str, str], list[Bucket]] = {}
    for bucket in left:
        own = primary_clause(bucket.divergence.clauses, bucket.divergence.aspect), _name(bucket.divergence)
        rest.setdefault(own, []).append(bucket)
    yield from ((*own, alike) for own, alike in rest.items())


def _clause_never_passed(seen: Sequence[Bucket], passed: Mapping[str, Counter[str]]) -> str:
    """Return the clause that never passed and explains most occurrences; empty if every clause passed."""
    failed: Counter[str] = Counter()
    place: dict[str, int] = {}
    not_only: set[str] = set()
    for bucket in seen:
        for number, clause in enumerate(bucket.divergence.clauses):
            failed[clause] += bucket.count
            place[clause] = max(place.get(clause, 0), number)
            if passed.get(bucket.divergence.participant, Counter())[clause]:
                not_only.add(clause)
    candidates = [clause for clause in failed if clause not in not_only and failed[clause] >= _MIN_OCCURRENCES]
    # If several clauses explain equally many occurrences, the last one is the most general.
    return max(candidates, key=lambda clause: (failed[clause], place[clause]), default="")


@cache
def _layout_clauses() -> frozenset[str]:
    """Return the clauses about the layout of entries in an index file."""
    return frozenset(row.clause for kind in KINDS for row in rows_of(kind) if row.why == "the bytes of the file")


def primary_clause(clauses: Sequence[str], aspect: str = "") -> str:
    """Return the primary clause of a step; empty if the step has no clauses.

    A clause about the message of an error is primary only if the message alone is wrong. If result and state are right
    and only the bytes differ, a clause about the layout of entries in the file is primary.
    """
    catalogue = load_clauses()
    texts = [clause for clause in clauses if set(catalogue[clause].excuses) == {"text"}]
    promised = [clause for clause in clauses if catalogue[clause].level != "OBSERVED"]
    layouts = [clause for clause in promised if aspect == "bytes" and clause in _layout_clauses()]
    return (texts or layouts or promised or list(clauses) or [""])[-1]
