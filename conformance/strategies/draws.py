"""Values that are drawn with a generator of random numbers, and combinators with the names of Hypothesis's own.

A draw of Hypothesis costs more than an operation of a segment, as it notes every choice to shrink and to mutate it.
Traces are shrunk here, not draws. So an example draws one seed from Hypothesis, and its values come from a generator
that begins with it: the same seed of Hypothesis gives the same example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from random import Random

Value_co = TypeVar("Value_co", covariant=True)
Other = TypeVar("Other")
Chosen = TypeVar("Chosen")


class Draw(Generic[Value_co]):
    """A value to be drawn.

    Args:
        pick: draws it.
        branches: the draws that it chooses from; itself if None.

    Attributes:
        pick: draws a value.
    """

    def __init__(self, pick: Callable[[Random], Value_co], branches: tuple[Draw[Any], ...] | None = None) -> None:
        self.pick = pick
        self._branches = (self,) if branches is None else branches

    def __or__(self, other: Draw[Other]) -> Draw[Value_co | Other]:
        return one_of(self, other)

    @property
    def branches(self) -> tuple[Draw[Any], ...]:
        """What it chooses from evenly."""
        return self._branches

    def map(self, change: Callable[[Any], Other]) -> Draw[Other]:
        """What a function makes of the value."""
        pick = self.pick
        return Draw(lambda chance: change(pick(chance)))

    def flatmap(self, following: Callable[[Any], Draw[Other]]) -> Draw[Other]:
        """A value of the draw that a function makes of the value."""
        pick = self.pick
        return Draw(lambda chance: following(pick(chance)).pick(chance))


def just(value: Chosen) -> Draw[Chosen]:
    """Always the same."""
    return Draw(lambda _: value)


def sampled_from(values: Sequence[Chosen]) -> Draw[Chosen]:
    """One of some values, each as likely."""
    some = tuple(values)
    count = len(some)
    # int(random()) takes a third of the time of randrange and of choice.
    return Draw(lambda chance: some[int(chance.random() * count)])


def booleans() -> Draw[bool]:
    """False or true."""
    return sampled_from((False, True))


def integers(least: int, most: int) -> Draw[int]:
    """A number from the least to the most, both included; they are less than 2**53 apart."""
    count = most - least + 1
    return Draw(lambda chance: least + int(chance.random() * count))


def one_of(*draws: Draw[Any]) -> Draw[Any]:
    """A value of one of some draws; those that choose from others themselves count as these."""
    branches = tuple(branch for draw in draws for branch in draw.branches)
    picks = tuple(branch.pick for branch in branches)
    count = len(picks)
    return Draw(lambda chance: picks[int(chance.random() * count)](chance), branches)


def one_of_kinds(*draws: Draw[Any]) -> Draw[Any]:
    """A value of one of some draws, each as likely, however many others they choose from."""
    return sampled_from(draws).flatmap(lambda draw: draw)


def lists(element: Draw[Chosen], *, min_size: int = 0, max_size: int) -> Draw[list[Chosen]]:
    """So many values, each number of them as likely."""
    pick, count = element.pick, max_size - min_size + 1
    return Draw(lambda chance: [pick(chance) for _ in range(min_size + int(chance.random() * count))])


def tuples(*draws: Draw[Any]) -> Draw[tuple[Any, ...]]:
    """A value of each draw."""
    picks = tuple(draw.pick for draw in draws)
    return Draw(lambda chance: tuple([pick(chance) for pick in picks]))


def builds(target: Callable[..., Chosen], *draws: Draw[Any], **named: Draw[Any]) -> Draw[Chosen]:
    """What a function makes of values."""
    picks = tuple(draw.pick for draw in draws)
    rest = tuple((name, draw.pick) for name, draw in named.items())
    return Draw(lambda chance: target(*[pick(chance) for pick in picks], **{name: pick(chance) for name, pick in rest}))


def fixed_dictionaries(
    mapping: Mapping[str, Draw[Any]], *, optional: Mapping[str, Draw[Any]] | None = None
) -> Draw[dict[str, Any]]:
    """A value for each key; an optional one is there in half of all dictionaries."""
    always = tuple((name, draw.pick) for name, draw in mapping.items())
    perhaps = tuple((name, draw.pick) for name, draw in (optional or {}).items())

    def pick(chance: Random) -> dict[str, Any]:
        drawn = {name: pick(chance) for name, pick in always}
        return drawn | {name: pick(chance) for name, pick in perhaps if chance.random() < 0.5}

    return Draw(pick)
