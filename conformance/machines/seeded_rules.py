"""Rules whose values come from a random number generator, which Hypothesis seeds once per example.

This is faster than drawing each value with Hypothesis: see :mod:`conformance.strategies.draws`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Final

from hypothesis import stateful
from hypothesis import strategies as st

if TYPE_CHECKING:
    from conformance.strategies.draws import Draw

_SEEDS: Final = st.binary(min_size=8, max_size=8)  # of integers, Hypothesis would draw small ones again and again
Body = Callable[..., None]


def initialize(**draws: Draw[Any]) -> Callable[[Body], Any]:
    """Declare an initialize rule, like Hypothesis's ``initialize``; the rule seeds the machine's ``rng``.

    Args:
        draws: Draws for the method's arguments.
    """

    def decorate(method: Body) -> Any:
        def perform(self: Any, seed: bytes) -> None:
            self.rng = Random(seed)  # noqa: S311 -- nothing secret
            method(self, **_values(draws, self.rng))

        return stateful.initialize(seed=_SEEDS)(_called_as(method, perform))

    return decorate


def rule(**draws: Draw[Any]) -> Callable[[Body], Any]:
    """Declare a rule, like Hypothesis's ``rule``; the method can also be called with arguments.

    Args:
        draws: Draws for the method's arguments.
    """

    def decorate(method: Body) -> Any:
        def perform(self: Any, *given: Any, **named: Any) -> None:
            if not (given or named):
                named = _values(draws, self.rng)
            method(self, *given, **named)

        return stateful.rule()(_called_as(method, perform))

    return decorate


def _values(draws: dict[str, Draw[Any]], rng: Random) -> dict[str, Any]:
    return {name: draw.pick(rng) for name, draw in draws.items()}


def _called_as(method: Body, perform: Body) -> Body:
    """Return ``perform`` with the method's name and docstring; its arguments are what Hypothesis draws."""
    perform.__name__, perform.__qualname__, perform.__doc__ = method.__name__, method.__qualname__, method.__doc__
    perform.__module__ = method.__module__
    return perform
