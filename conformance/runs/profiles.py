"""Profiles: the size of a run, with the reason for each number, and its seed.

Hypothesis has its own profiles and automatically loads one named ``ci`` on a CI machine. The profiles here are never
registered with Hypothesis: a run creates its settings itself, so that no environment variable changes them.
The seed is given, fixed by the profile, or random; the report states its source.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from hypothesis import HealthCheck, Phase, settings

from conformance.clauses.machines import MACHINES


class ServerBudget(NamedTuple):
    """Limits of a run that tests a server, where every topic and every restart takes seconds.

    Attributes:
        examples: The number of topics.
        steps: The maximum number of rules executed on each topic.
        restarts: The number of stops of the server, spread over the steps of all topics, if the run started the server.
        answers: The number of results after which no more requests are sent; None for no limit.
    """

    examples: int
    steps: int
    restarts: int
    answers: int | None = None


_BROKER: Final = ServerBudget(4, 15, 1)
_WIRE: Final = ServerBudget(3, 8, 2, 30_000)


@dataclass(frozen=True, slots=True)
class Profile:
    """Size of a run.

    Attributes:
        name: ``dev``, ``ci`` or ``nightly``.
        examples: The number of examples per machine.
        steps: The maximum number of steps (executed rules) per example.
        seed: The default seed; None for a random one each time.
        broker: The work of the broker machine, which starts the broker and compares its files.
        wire: The work of the wire machine, which tests only the protocol of a broker.
    """

    name: str
    examples: int
    steps: int
    seed: int | None
    broker: ServerBudget = _BROKER
    wire: ServerBudget = _WIRE

    def examples_of(self, machine: str) -> int:
        """Return the number of examples of one machine, fewer if its steps are slow."""
        return round(self.examples * MACHINES[machine].examples_factor)

    def settings(self, examples: int) -> settings:
        """Return the Hypothesis settings for one round of this profile."""
        return settings(
            max_examples=examples,
            stateful_step_count=self.steps,
            deadline=None,  # a garbage collection of Java is no failure
            # Failures are saved as traces, which are independent of the version of Hypothesis. With a database, a run
            # would begin with the failures of earlier runs, so that the same seed would not always give the same
            # examples.
            database=None,
            derandomize=False,  # the seed is set by the run, and is in the report
            phases=(Phase.generate,),  # recorded operations are shrunk, not draws, because a replay is faster
            suppress_health_check=list(HealthCheck),
            backend="hypothesis",  # independent of plug-ins and the environment
            print_blob=False,  # a blob is valid for one version of Hypothesis only
            report_multiple_bugs=False,  # one divergence at a time; the next round finds the next one
        )


ROUND: Final = 100
"""The number of examples after which progress is reported, for a machine with fast steps; about a second."""


def round_of(machine: str) -> int:
    """Return the number of examples in one round of a machine."""
    return round(ROUND * MACHINES[machine].examples_factor)


PROFILES: Final = {
    profile.name: profile
    for profile in (
        # Seconds for one release: this is a new user's first run, and its result does not depend on luck.
        Profile("dev", examples=200, steps=30, seed=0),
        # Deterministic: a failed pipeline fails again tomorrow. Minutes for all releases.
        Profile("ci", 1_000, 50, seed=0, broker=ServerBudget(6, 25, 2), wire=ServerBudget(8, 15, 6, 150_000)),
        # Longer examples find effects of many operations; --max-time limits the run. Each night uses another seed.
        Profile(
            "nightly", 20_000, 100, None, broker=ServerBudget(40, 50, 10), wire=ServerBudget(60, 30, 40, 2_000_000)
        ),
    )
}


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
