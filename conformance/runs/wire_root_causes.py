"""Grouping of the divergences of a ``wire:`` broker by root cause.

- *The same result elsewhere.* The same request has the same wrong result in more circumstances, for example with
  deleted records as well.
- *No response.* Several requests of one kind make the broker close the connection, or send malformed responses.
- *The same result about deleted records.* In some cases the right record is a deleted one, and the result is wrong in
  the same way.
- *The same last stable offset.* A fetch returns the offset that the lookup of the latest committed offset returns, and
  the record with the largest timestamp has to be before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.runs.sameness import Sameness

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from conformance.lockstep.scopes.wire_topic import WireDivergenceError

# Texts of divergences: requests, differences between results, and circumstances.
_WRONG_LAST_STABLE_OFFSET: Final = "fetch", "another last stable offset"
_LATEST: Final = "list_offsets -1"
_LARGEST_TIMESTAMP: Final = "list_offsets -3"
_TRANSACTION_BEGIN_DELETED: Final = "its begin deleted"
_NO_RESPONSE: Final = ("CONNECTION_CLOSED", "UNDECODABLE_ANSWER", "TIMED_OUT")
_DELETED_RECORD: Final = "a deleted record"
_RECORD: Final = "a record"


class RelatedDivergence(NamedTuple):
    """Related divergence (``difference``), and the reason why it has the same root cause."""

    difference: WireDivergenceError
    because: str


def group_by_root_cause(
    differences: Collection[WireDivergenceError],
) -> Iterator[tuple[WireDivergenceError, list[RelatedDivergence]]]:
    """Yield the divergences with different root causes, in their order, each with its related divergences."""
    parents: dict[tuple[str, str], RelatedDivergence] = {}
    for one in differences:
        reasons = (
            RelatedDivergence(each, _no_response(one, each) or _shared_symptom(one, each)) for each in differences
        )
        found = next((each for each in reasons if each.because), None)
        if found is not None:
            parents[one.key] = found
    for one in differences:
        if one.key not in parents:
            kin = (each for each in differences if each.key in parents and _root(each, parents) is one)
            yield one, [RelatedDivergence(each, parents[each.key].because) for each in kin]


def _root(one: WireDivergenceError, parents: dict[tuple[str, str], RelatedDivergence]) -> WireDivergenceError:
    while one.key in parents:  # every step has fewer circumstances, or leads from a fetch to a lookup
        one = parents[one.key].difference
    return one


def _shared_symptom(one: WireDivergenceError, other: WireDivergenceError) -> str:
    """Return the reason why the first divergence has the same root cause as the second; empty if it does not."""
    (asked, places), (asked_there, places_there), how, how_there = one.situation, other.situation, one.how, other.how
    where, where_there = frozenset(places), frozenset(places_there)
    if (asked, how) == _WRONG_LAST_STABLE_OFFSET and asked_there == _LATEST:
        return "the latest offset of committed data is wrong, too"
    if asked == _LARGEST_TIMESTAMP and asked_there == _LATEST and _TRANSACTION_BEGIN_DELETED in where & where_there:
        return "what is visible ends at the latest offset of committed data, which is wrong"
    if one.clause != other.clause or asked != asked_there:
        return ""
    if (
        how != how_there
        and how.removeprefix(_DELETED_RECORD) == how_there.removeprefix(_RECORD)
        and where_there <= where
    ):
        return "the same answer is wrong where the right record is not deleted"
    if _sameness(one).needs_more_than(_sameness(other)):
        return f"the same answer is wrong without {' and '.join(sorted(where - where_there))}"
    return ""


def _sameness(one: WireDivergenceError) -> Sameness:
    """Return what two divergences share if one differs from the other only in more circumstances."""
    asked, where = one.situation
    return Sameness(one.divergence.participant, one.clause, asked, one.how, frozenset(where))


def _no_response(one: WireDivergenceError, other: WireDivergenceError) -> str:
    """Return the reason for two requests of one kind that both get no response; empty if one gets a response."""
    (request, silence, *rank), (request_there, silence_there, *rank_there) = map(_silence, (one, other))
    if silence not in _NO_RESPONSE or (request, silence) != (request_there, silence_there):
        return ""
    return "the same request gets no response" if rank_there < rank else ""


def _silence(one: WireDivergenceError) -> tuple[Any, ...]:
    """Return the kind of request, what came instead of a response, and a sort key."""
    return one.situation.request.split()[0], one.how.rpartition(" -> ")[2], len(one.situation.circumstances), one.key
