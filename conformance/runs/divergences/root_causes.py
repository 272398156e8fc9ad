"""Grouping of divergences by root cause, with the reason for each related divergence.

One defect appears after several operations, and in several forms after each. Two divergences have the same root cause
if they share a secondary symptom, or if one turns into the other when its setup is simplified:

- *The same flag.* After any operation, one flag of the state is wrong and nothing else.
- *The same fields.* An operation leaves the same fields of the state wrong; a wrong result or message is a consequence.
- *The same operation.* It fails in the offset index and in the time index, in the same releases.
- *The same steps.* The steps are the same except for the name of the file, and so are both results.
- *The same steps but one.* The steps are the same, or differ in the arguments of one of them, or the second
  divergence has one more step, and its steps show the first divergence before it. Both exercise a common clause, or
  the replay shows the same aspect. A violation of a MUST clause is not related to a weaker one.
- *The same part of the result.* An operation's result has several parts, and the same flag among them is wrong.
- *One by one.* If a bulk operation that diverges is executed as single operations, the other divergence occurs first.
- *Without the setup.* An operation fails unexpectedly. Without one of the steps before it (for instance, a step that
  moves the file), the same operation shows the other divergence.
- *The same crash.* After different requests, the program ends with the same output on standard error.

Any other crash is a separate divergence, and so is a missing error that a MUST clause requires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from conformance.clauses import family, load_clauses
from conformance.implementations.protocol import BULK
from conformance.lockstep.divergence import CRASH_ASPECT, last_words
from conformance.operations.state_diff import differing_fields
from conformance.runs.divergences.signatures import severity, signature_of
from conformance.runs.shrinking.reductions import BASES, singly, with_numbers

if TYPE_CHECKING:
    from conformance.lockstep.divergence import Divergence, DivergenceError
    from conformance.operations import Operation
    from conformance.runs.divergences.deduplication import UniqueDivergence

_STORED: Final = ("state", "bytes")
"""The aspects of a divergence that concern what is stored, not the result of an operation."""
_TWINS: Final = {"TI-1": "OI-1", "TI-2": "OI-2", "TI-7": "OI-7", "TI-8": "OI-8", "TI-9": "OI-10", "TI-11": "OI-11"}
"""For clauses of a time index, the corresponding clauses of an offset index."""
_MOST_SINGLE: Final = 1_000
"""The maximum number of single operations with which the bulk operations of a trace are replaced."""
_OF_ENTRIES: Final = frozenset({"offset", "position", "timestamp"})
"""The arguments that become numbers of an index entry."""


Attempt = Callable[["UniqueDivergence", tuple["Operation", ...]], "Divergence | None"]
"""Function that executes operations from an empty directory, and returns the first divergence of the same participant
as a given divergence, or None."""


def group_by_root_cause(
    cases: Sequence[UniqueDivergence], attempt: Attempt
) -> list[tuple[UniqueDivergence, list[tuple[UniqueDivergence, str]]]]:
    """Return the divergences by root cause, in their order, each with its related divergences and the reasons.

    Args:
        cases: The divergences of one machine and implementation, which have been shrunk.
    """
    parents: dict[int, tuple[int, str]] = {}

    def root_of(number: int) -> int:
        while number in parents:
            number = parents[number][0]
        return number

    for number, one in enumerate(cases):
        others = {i: other for i, other in enumerate(cases) if root_of(i) != number}
        found = _find_root_cause(one, others, attempt)
        if found is not None:
            parents[number] = found
    return [
        (one, [(cases[i], parents[i][1]) for i in sorted(parents) if root_of(i) == number])
        for number, one in enumerate(cases)
        if number not in parents
    ]


def _find_root_cause(
    one: UniqueDivergence, others: Mapping[int, UniqueDivergence], attempt: Attempt
) -> tuple[int, str] | None:
    """Return the number of another divergence with the same root cause, and the reason; or None."""
    if one.identity.aspect == CRASH_ASPECT:
        return _same_crash(one, others)
    for number, other in others.items():
        if why := _shared_symptom(one, other):
            return number, why
    for number, other in others.items():
        if _has_same_steps_but_one(one, other, attempt):
            return number, "the steps are the same except for one operation"
    for divergence, why in _replay_variants(one, attempt):
        if one.matches(divergence) and divergence.operation.name == one.minimized.divergence.operation.name:
            continue  # nothing has changed
        for number, other in others.items():
            # A single operation with a milder divergence than the representative may have another root cause.
            is_single = divergence.operation.name != one.minimized.divergence.operation.name
            is_milder = is_single and severity(divergence) < severity(other.minimized.divergence)
            if other.matches(divergence) and not is_milder:
                return number, why
    return None


def _same_crash(one: UniqueDivergence, others: Mapping[int, UniqueDivergence]) -> tuple[int, str] | None:
    """Return the number of an earlier crash with the same last output, and the reason; None if there is no such crash.

    Two operations of the harness may be one request, and two requests may reach the same line of the program.
    """
    words = last_words(one.minimized.divergence)
    for number, other in others.items():
        if words and other.first < one.first and words == last_words(other.minimized.divergence):
            return number, "the program crashes with the same output on stderr"
    return None


def are_twins(one: UniqueDivergence, other: UniqueDivergence) -> bool:
    """Return True if an operation fails in an offset index and in a time index, in the same releases.

    A defect in the code that both kinds share appears in the same releases.

    Args:
        other: A divergence of another machine.
    """
    mine, theirs = one.representative.divergence, other.representative.divergence
    clauses = [family(each.clause) for each in (one, other)]
    return (
        {one.machine, other.machine} == {"offset", "time"}
        and one.identity.implementation == other.identity.implementation
        and one.operation == other.operation
        and one.identity.aspect == other.identity.aspect
        and one.releases == other.releases
        and len({_TWINS.get(clause, clause) for clause in clauses}) == 1
        and (mine.is_failure or signature_of(mine) == signature_of(theirs))
    )


# -- symptoms that two divergences share -----------------------------------------------------------------------------


def _shared_symptom(one: UniqueDivergence, other: UniqueDivergence) -> str:
    """Return the symptom that two divergences share, as a reason; empty if they share none."""
    mine, theirs = one.minimized.divergence, other.minimized.divergence
    flag = _only_wrong_flag(mine)
    if flag is not None and flag == _only_wrong_flag(theirs) and one.first > other.first:
        return f"the same flag of the state, {flag[0]!r}, is wrong, and nothing else"
    if one.operation != other.operation:
        return ""
    if theirs.aspects[0] == "state" and mine.aspects[0] in ("outcome", "text") and not any(mine.are_errors):
        alike = bool(mine.fields) and mine.fields == theirs.fields
        return "the same fields of the state are wrong after it" if alike else ""
    if one.first > other.first and _is_the_same_but_for_names(one.minimized, other.minimized):
        return "the same steps show both, in a file of another name"
    part = _only_wrong_element(mine)
    if part is not None and part == _only_wrong_element(theirs) and one.first > other.first:
        return "the same part of the answer is wrong"
    return ""


def _has_same_steps_but_one(one: UniqueDivergence, other: UniqueDivergence, attempt: Attempt) -> bool:
    """Return True if the steps of a divergence equal the steps of an earlier one, up to one operation.

    The arguments of one step may differ. Or there is one more step, if the earlier divergence occurs before it matters.
    Two steps with other arguments have to exercise a common clause. One more step shows the earlier divergence when it
    is replayed, so a common aspect is enough.
    """
    if (
        one.first <= other.first
        or other.identity.aspect == CRASH_ASPECT
        or (_is_must(one.clause) and not _is_must(other.clause))
    ):
        return False
    mine, theirs = one.minimized.operations, other.minimized.operations
    if [each.name for each in mine] == [each.name for each in theirs]:
        return _has_common_clause(one, other) and sum(a != b for a, b in zip(mine, theirs, strict=True)) <= 1
    if not (_has_common_clause(one, other) or one.identity.aspect == other.identity.aspect):
        return False
    if not any((*mine[:i], *mine[i + 1 :]) == theirs for i in range(len(mine))):
        return False
    found = attempt(one, mine)
    return found is not None and other.matches(found)


def _has_common_clause(one: UniqueDivergence, other: UniqueDivergence) -> bool:
    return not set(one.minimized.divergence.clauses).isdisjoint(other.minimized.divergence.clauses)


def _is_must(clause: str) -> bool:
    known = load_clauses().get(clause)
    return known is not None and known.level == "MUST"


def _is_the_same_but_for_names(one: DivergenceError, other: DivergenceError) -> bool:
    """Return True if two divergences have the same steps except for the base offset and the name of the file."""
    mine, theirs = one.divergence, other.divergence
    if mine.aspects != theirs.aspects or _without_messages(mine) != _without_messages(theirs):
        return False
    nameless = ([with_numbers(each, _without_base) for each in error.operations] for error in (one, other))
    return next(nameless) == next(nameless)


def _without_messages(divergence: Divergence) -> list[object]:
    """Return both sides; outcomes are without their messages, which may contain the name of the file."""
    outcomes = divergence.outcomes
    return [divergence.expected, divergence.actual] if outcomes is None else [each[:2] for each in outcomes]


def _without_base(name: str, value: int) -> int:
    return 0 if name in BASES else value


def _only_wrong_flag(divergence: Divergence) -> tuple[str, bool, bool] | None:
    """Return the only difference, if it is a flag of the state: its name and both values; else None."""
    if divergence.aspects != ("state",):
        return None
    fields = list(differing_fields(divergence.expected, divergence.actual))
    if len(fields) != 1 or not all(isinstance(value, bool) for value in fields[0][1:]):
        return None
    return fields[0]


def _only_wrong_element(divergence: Divergence) -> tuple[int, bool, bool] | None:
    """Return the only part of a result that differs, if it is a flag: its index and both values; else None."""
    if divergence.outcomes is None or any(divergence.are_errors):
        return None
    expected, actual = (each.value for each in divergence.outcomes)
    if not (isinstance(expected, tuple) and isinstance(actual, tuple) and len(expected) == len(actual)):
        return None
    parts = [(i, a, b) for i, (a, b) in enumerate(zip(expected, actual, strict=True)) if a != b]
    return parts[0] if len(parts) == 1 and all(isinstance(value, bool) for value in parts[0][1:]) else None


# -- divergences of simplified steps ---------------------------------------------------------------------------------


def _replay_variants(one: UniqueDivergence, attempt: Attempt) -> Iterator[tuple[Divergence, str]]:
    """Yield the divergences of variants of the steps, each with the reason for relating them."""
    if all(shape.partition(":")[0] in BULK for shape in one.shapes):
        *before, last = (tuple(singly(operation, _MOST_SINGLE)) for operation in one.minimized.operations)
        first = sum(map(len, before))
        if first + len(last) <= _MOST_SINGLE:
            found = attempt(one, tuple(chain(*before, last)))
            # An earlier divergence was set aside when this one was found, so it does not belong to this divergence.
            if found is not None and found.step >= first:
                yield found, "executed one by one, the operations show the difference above"
    if not _may_depend_on_setup(one.minimized.divergence):
        return
    shown = one.minimized.operations
    # Shrinking has replaced numbers by zeros, which an empty file contains, too.
    larger = tuple(with_numbers(each, lambda name, value: value + (name in _OF_ENTRIES)) for each in shown)
    for operations in (shown, larger, one.representative.operations):
        end = len(operations) - 1
        for number in reversed(range(1, end)):
            found = attempt(one, operations[:number] + operations[number + 1 :])
            if found is not None and found.step == end - 1 and found.aspects[0] in _STORED:
                yield found, f"without the {operations[number].name} before it, it shows the difference above"


def _may_depend_on_setup(divergence: Divergence) -> bool:
    """Return True if an operation fails unexpectedly, or succeeds although an OBSERVED clause has an error."""
    is_refused, was_refused = divergence.are_errors
    if is_refused == was_refused:
        return False
    catalogue = load_clauses()
    levels = {catalogue[clause].level for clause in divergence.clauses}
    return not is_refused or levels == {"OBSERVED"}
