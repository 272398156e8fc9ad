"""How much a run does, with the reason for each number.

Hypothesis has profiles of its own and loads one called ``ci`` by itself when it sees a CI machine. Ours are never
loaded globally: a run builds its settings from here, so that no environment variable changes what it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hypothesis import HealthCheck, Phase, settings


@dataclass(frozen=True, slots=True)
class Profile:
    """The size of a run.

    Attributes:
        name: ``dev``, ``ci`` or ``nightly``.
        examples: how many state machine runs for each machine.
        steps: how many rules in each.
        seed: where it starts unless another is asked for; None draws one each time.
    """

    name: str
    examples: int
    steps: int
    seed: int | None

    def examples_of(self, machine: str) -> int:
        """How many runs of one machine."""
        return round(self.examples * SHARES.get(machine, 1.0))

    def settings(self, examples: int) -> settings:
        """Hypothesis settings for one round of this profile."""
        return settings(
            max_examples=examples,
            stateful_step_count=self.steps,
            deadline=None,  # a garbage collection of the JVM is no failure
            # Failures are kept as traces, which no version of Hypothesis is needed to read. With a database a run would
            # begin with the failures of earlier ones: a warm machine would not do what this seed does elsewhere.
            database=None,
            derandomize=False,  # the seed is ours and in the report
            phases=(Phase.generate,),  # traces are shrunk, and not what was drawn: a replay costs less
            suppress_health_check=list(HealthCheck),
            backend="hypothesis",  # whatever a plug-in or the environment prefers
            print_blob=False,  # a blob belongs to one version of Hypothesis
            report_multiple_bugs=False,  # one trace at a time; the next round finds the next
        )


ROUND: Final = 100
"""Examples in one round: progress is reported, and time looked at, about once a second."""

SHARES: Final = {"segment": 0.3, "log": 0.15, "cleaned": 0.1}
"""Of a profile's examples, where a step costs more than an index's: four files to compare, or all of a log's."""


def round_of(machine: str) -> int:
    """Examples in one round of a machine."""
    return round(ROUND * SHARES.get(machine, 1.0))


PROFILES: Final = {
    profile.name: profile
    for profile in (
        # Seconds for one release; the first look that a person has at the tool, and it does not depend on luck.
        Profile("dev", examples=200, steps=30, seed=0),
        # The same every time: a red pipeline has the same reason tomorrow. Minutes for all releases.
        Profile("ci", examples=1_000, steps=50, seed=0),
        # Longer lives find what only many operations together do; --max-time bounds it. Each night looks elsewhere.
        Profile("nightly", examples=20_000, steps=100, seed=None),
    )
}
