"""The seed of a run: given, fixed by its profile, or drawn; the report says which."""

from __future__ import annotations

import random
from typing import Final, Literal, NamedTuple

Wish = int | Literal["random"] | None
"""What is asked for: this seed, one that is drawn, or whatever the profile says."""
Source = Literal["given", "fixed", "drawn"]

RANDOM: Final = "random"
_LIMIT: Final = 1 << 31


class Seed(NamedTuple):
    """A seed, and where it comes from."""

    number: int
    source: Source

    def __str__(self) -> str:
        return seed_in_words(self.number, self.source)


def chosen_seed(wish: Wish, fixed: int | None) -> Seed:
    """The seed of a run.

    Args:
        wish: what is asked for.
        fixed: the profile's own; None if the profile draws one each time.
    """
    if isinstance(wish, int):
        return Seed(wish, "given")
    if wish is None and fixed is not None:
        return Seed(fixed, "fixed")
    return Seed(random.SystemRandom().randrange(_LIMIT), "drawn")


def read_seed(text: str) -> Wish:
    """A seed as a command line has it: ``N`` or ``random``.

    Raises:
        ValueError: it is neither.
    """
    if text == RANDOM:
        return RANDOM
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a number nor {RANDOM!r}") from None


def seed_in_words(number: int, source: str) -> str:
    """A seed as a report shows it; one that was given needs no explanation, nor one of unknown source."""
    return f"{number} ({source})" if source in ("fixed", "drawn") else str(number)
