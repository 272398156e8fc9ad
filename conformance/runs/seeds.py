"""Seed of a run: given, fixed by its profile, or random; the report states its source."""

from __future__ import annotations

import random
from typing import Final, Literal, NamedTuple

SeedRequest = int | Literal["random"] | None
"""A requested seed: a number, ``"random"``, or None for the profile's seed."""
Source = Literal["given", "fixed", "drawn"]
"""The source of a seed: the command line, the profile, or a random generator."""

RANDOM: Final = "random"
_LIMIT: Final = 1 << 31


class Seed(NamedTuple):
    """A seed and its source."""

    number: int
    source: Source

    def __str__(self) -> str:
        return format_seed(self.number, self.source)


def resolve_seed(wish: SeedRequest, fixed: int | None) -> Seed:
    """Return the seed of a run.

    Args:
        fixed: The profile's seed; None if the profile uses a random one each time.
    """
    if isinstance(wish, int):
        return Seed(wish, "given")
    if wish is None and fixed is not None:
        return Seed(fixed, "fixed")
    return Seed(random.SystemRandom().randrange(_LIMIT), "drawn")


def parse_seed(text: str) -> SeedRequest:
    """Return the seed of a command-line argument, ``N`` or ``random``.

    Raises:
        ValueError: The text is neither.
    """
    if text == RANDOM:
        return RANDOM
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a number nor {RANDOM!r}") from None


def format_seed(number: int, source: str) -> str:
    """Return a seed for a report, with its source if the profile fixed it or it was drawn."""
    return f"{number} ({source})" if source in ("fixed", "drawn") else str(number)
