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

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from conformance.lockstep.scopes.wire_topic import WireDivergence

_STABLE: Final = "fetch", "another last stable offset"
_LATEST: Final = "list_offsets -1"
_LARGEST: Final = "list_offsets -3"
_UNSTABLE: Final = "its begin deleted"
_NO_ANSWER: Final = re.compile("-> (?:CONNECTION_CLOSED|UNDECODABLE_ANSWER)$")
_DELETED: Final = "a deleted record"
_LEFT: Final = "a record"


class RelatedDivergence(NamedTuple):
    """A related divergence, and the reason why it has the same root cause."""

    difference: WireDivergence
    because: str


def group_by_root_cause(
    differences: Collection[WireDivergence],
) -> Iterator[tuple[WireDivergence, list[RelatedDivergence]]]:
    """Yield the divergences with different root causes, in their order, each with its related divergences."""
    parents: dict[tuple[str, str], tuple[WireDivergence, str]] = {}
    for one in differences:
        found = next(
            (
                (other, why)
                for other in differences
                if (why := _same_missing_response(one, other) or _shared_symptom(one, other))
            ),
            None,
        )
        if found is not None:
            parents[_key(one)] = found
    for one in differences:
        if _key(one) not in parents:
            kin = (each for each in differences if _key(each) in parents and _root(each, parents) is one)
            yield one, [RelatedDivergence(each, parents[_key(each)][1]) for each in kin]


def _root(one: WireDivergence, parents: dict[tuple[str, str], tuple[WireDivergence, str]]) -> WireDivergence:
    while _key(one) in parents:  # every step has fewer circumstances, or leads from a fetch to a lookup
        one = parents[_key(one)][0]
    return one


def _key(one: WireDivergence) -> tuple[str, str]:
    return one.divergence.clauses[0], one.shape


def _shared_symptom(one: WireDivergence, other: WireDivergence) -> str:
    """Return the reason why the first divergence has the same root cause as the second; empty if it does not."""
    (asked, where, how), (asked_there, where_there, how_there) = _parts(one.shape), _parts(other.shape)
    if (asked, how) == _STABLE and asked_there == _LATEST:
        return "the latest offset of committed data is wrong, too"
    if asked == _LARGEST and asked_there == _LATEST and _UNSTABLE in where & where_there:
        return "what is visible ends at the latest offset of committed data, which is wrong"
    if _key(one)[0] != _key(other)[0] or asked != asked_there:
        return ""
    if how != how_there and how.removeprefix(_DELETED) == how_there.removeprefix(_LEFT) and where_there <= where:
        return "the same answer is wrong where the right record is not deleted"
    if how == how_there and where_there < where:
        return f"the same answer is wrong without {' and '.join(sorted(where - where_there))}"
    return ""


def _same_missing_response(one: WireDivergence, other: WireDivergence) -> str:
    """Return the reason for two requests of one kind that both get no response; empty if they do."""
    (asked, where, how), (asked_there, where_there, how_there) = _parts(one.shape), _parts(other.shape)
    silence, silence_there = (_NO_ANSWER.search(each) for each in (how, how_there))
    if not silence or not silence_there or (silence[0], asked.split()[0]) != (silence_there[0], asked_there.split()[0]):
        return ""
    is_later = (len(where_there), _key(other)) < (len(where), _key(one))
    return "the same request gets no response" if is_later else ""


def _parts(shape: str) -> tuple[str, frozenset[str], str]:
    """Return the request of a signature, its circumstances, and the difference between the results."""
    what, _, how = shape.partition(": ")
    asked, *where = re.split(r", with | of (?=LogAppendTime)", what)
    return asked, frozenset(where), how
