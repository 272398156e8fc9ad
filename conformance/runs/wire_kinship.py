"""Which differences of a broker behind ``wire:`` are other sights of a difference that is told already, and why.

- *The same answer elsewhere.* The same question is answered wrongly in the same way, in more circumstances: with
  deleted records besides, for instance.
- *No answer.* Several questions of one kind of request make the broker close the connection, or talk nonsense.
- *The same answer about deleted records.* The right record is a deleted one at times, and the answer is wrong alike.
- *The same last stable offset.* A fetch tells the one that the answer to the latest offset of committed data gives,
  and the record with the largest timestamp has to lie before it.
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


class Sight(NamedTuple):
    """Another sight of a difference, and why it is none of its own."""

    difference: WireDivergence
    because: str


def of_their_own(differences: Collection[WireDivergence]) -> Iterator[tuple[WireDivergence, list[Sight]]]:
    """The differences that are sights of no other one, in their order, each with its other sights."""
    parents: dict[tuple[str, str], tuple[WireDivergence, str]] = {}
    for one in differences:
        found = next(
            ((other, why) for other in differences if (why := _silent(one, other) or _common(one, other))), None
        )
        if found is not None:
            parents[_key(one)] = found
    for one in differences:
        if _key(one) not in parents:
            kin = (each for each in differences if _key(each) in parents and _root(each, parents) is one)
            yield one, [Sight(each, parents[_key(each)][1]) for each in kin]


def _root(one: WireDivergence, parents: dict[tuple[str, str], tuple[WireDivergence, str]]) -> WireDivergence:
    while _key(one) in parents:  # every step has fewer circumstances, or leads from a fetch to a look-up
        one = parents[_key(one)][0]
    return one


def _key(one: WireDivergence) -> tuple[str, str]:
    return one.divergence.clauses[0], one.shape


def _common(one: WireDivergence, other: WireDivergence) -> str:
    """Why the first is a sight of the second; empty if it is not."""
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


def _silent(one: WireDivergence, other: WireDivergence) -> str:
    """The same for two requests of one kind that are left without an answer alike."""
    (asked, where, how), (asked_there, where_there, how_there) = _parts(one.shape), _parts(other.shape)
    silence, silence_there = (_NO_ANSWER.search(each) for each in (how, how_there))
    if not silence or not silence_there or (silence[0], asked.split()[0]) != (silence_there[0], asked_there.split()[0]):
        return ""
    is_later = (len(where_there), _key(other)) < (len(where), _key(one))
    return "the same request is left without an answer" if is_later else ""


def _parts(shape: str) -> tuple[str, frozenset[str], str]:
    """What a shape asks, under which circumstances, and how the answers differ."""
    what, _, how = shape.partition(": ")
    asked, *where = re.split(r", with | of (?=LogAppendTime)", what)
    return asked, frozenset(where), how
