"""Strategies on a random number generator, with the names of Hypothesis's own strategies.

A draw of Hypothesis takes longer than an operation of a segment, because Hypothesis records every choice in order to
shrink it. Here traces are shrunk, not draws. So an example draws one seed from Hypothesis, and a generator with this
seed draws all values. The same seed of Hypothesis generates the same example.
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
    """Strategy, as in Hypothesis.

    Args:
        pick: function that draws a value.
        branches: alternatives of a union; None if the strategy is not a union.
    """

    def __init__(self, pick: Callable[[Random], Value_co], branches: tuple[Draw[Any], ...] | None = None) -> None:
        self.pick = pick
        self._branches = (self,) if branches is None else branches

    def __or__(self, other: Draw[Other]) -> Draw[Value_co | Other]:
        return one_of(self, other)

    @property
    def branches(self) -> tuple[Draw[Any], ...]:
        """Alternatives of a union, drawn with equal probability; for other strategies, the strategy itself."""
        return self._branches

    def map(self, change: Callable[[Any], Other]) -> Draw[Other]:
        """Draw a value and apply a function to it."""
        pick = self.pick
        return Draw(lambda chance: change(pick(chance)))

    def flatmap(self, following: Callable[[Any], Draw[Other]]) -> Draw[Other]:
        """Draw a value, and then a value from the strategy that a function returns for the first value."""
        pick = self.pick
        return Draw(lambda chance: following(pick(chance)).pick(chance))


def just(value: Chosen) -> Draw[Chosen]:
    """Draw the same value always."""
    return Draw(lambda _: value)


def sampled_from(values: Sequence[Chosen]) -> Draw[Chosen]:
    """Draw one of some values with equal probability."""
    some = tuple(values)
    count = len(some)
    # int(random()) takes a third of the time of randrange and of choice.
    return Draw(lambda chance: some[int(chance.random() * count)])


def booleans() -> Draw[bool]:
    """Draw False or True."""
    return sampled_from((False, True))


def integers(least: int, most: int) -> Draw[int]:
    """Draw an integer between two limits, both inclusive and less than 2**53 apart."""
    count = most - least + 1
    return Draw(lambda chance: least + int(chance.random() * count))


def one_of(*draws: Draw[Any]) -> Draw[Any]:
    """Draw from one of some strategies; a union among them is replaced by its alternatives."""
    branches = tuple(branch for draw in draws for branch in draw.branches)
    picks = tuple(branch.pick for branch in branches)
    count = len(picks)
    return Draw(lambda chance: picks[int(chance.random() * count)](chance), branches)


def one_of_kinds(*draws: Draw[Any]) -> Draw[Any]:
    """Draw from one of some strategies, each with equal probability; a union counts as one."""
    return sampled_from(draws).flatmap(lambda draw: draw)


def lists(element: Draw[Chosen], *, min_size: int = 0, max_size: int) -> Draw[list[Chosen]]:
    """Draw a list of values; every length has equal probability."""
    pick, count = element.pick, max_size - min_size + 1
    return Draw(lambda chance: [pick(chance) for _ in range(min_size + int(chance.random() * count))])


def tuples(*draws: Draw[Any]) -> Draw[tuple[Any, ...]]:
    """Draw a value from each strategy."""
    picks = tuple(draw.pick for draw in draws)
    return Draw(lambda chance: tuple([pick(chance) for pick in picks]))


def builds(target: Callable[..., Chosen], *draws: Draw[Any], **named: Draw[Any]) -> Draw[Chosen]:
    """Draw arguments and call a function with them."""
    picks = tuple(draw.pick for draw in draws)
    rest = tuple((name, draw.pick) for name, draw in named.items())
    return Draw(lambda chance: target(*[pick(chance) for pick in picks], **{name: pick(chance) for name, pick in rest}))


def fixed_dictionaries(
    mapping: Mapping[str, Draw[Any]], *, optional: Mapping[str, Draw[Any]] | None = None
) -> Draw[dict[str, Any]]:
    """Draw a value for each key; an optional key is present in half of all dictionaries."""
    always = tuple((name, draw.pick) for name, draw in mapping.items())
    perhaps = tuple((name, draw.pick) for name, draw in (optional or {}).items())

    def pick(chance: Random) -> dict[str, Any]:
        drawn = {name: pick(chance) for name, pick in always}
        return drawn | {name: pick(chance) for name, pick in perhaps if chance.random() < 0.5}

    return Draw(pick)
