"""Plan of a comparison, and its two sides: Kafka releases whose jars are locked, or builds of Kafka."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from conformance.clauses.machines import FILE_MACHINES, why_not_driven
from conformance.errors import ToolError
from conformance.implementations.forms import directory_of, form_of
from conformance.implementations.spec import build_of
from conformance.kafka.releases import load_release
from conformance.runs.divergence_event import replay_command
from conformance.runs.profiles import Profile

# With a fixed seed, a search always has the same result.
PROFILE: Final = Profile("diff", examples=1_000, steps=30, seed=0)


class Side(NamedTuple):
    """One of two compared releases or builds: its classes, and the release whose rules they follow.

    Attributes:
        label: The name in reports, e.g. ``"4.4.0"`` or ``"jvm:build"``.
        specification: The classes as an argument of ``-i``, ``"jvm"`` or ``"jvm:DIR"``.
        release: The release; for a build, the published release that it is closest to.
    """

    label: str
    specification: str
    release: str

    @property
    def is_build(self) -> bool:
        """True if the side is not a locked release."""
        return self.specification != "jvm"

    def is_driven_by(self, machine: str) -> bool:
        """Return True if a state machine can test the classes."""
        return not why_not_driven(machine, self.release)

    def replay(self, trace: Path) -> str:
        """Return the command that replays a trace with these classes."""
        return replay_command(trace, self.release, self.specification)


@cache
def side_of(text: str) -> Side:
    """Return the side for an argument, RELEASE or ``jvm:DIR``.

    Raises:
        UnknownReleaseError: The release is not locked.
        ToolError: The directory is no build of Kafka.
    """
    directory = directory_of(text)
    if directory is None:
        if form_of(text) is not None:
            raise ToolError(f"{text!r} cannot be compared: name a release or jvm:DIR")
        return Side(load_release(text).name, "jvm", text)
    if not text.startswith("jvm:"):
        raise ToolError(f"{text!r} cannot be compared: name a release or jvm:DIR")
    build = build_of(directory)
    assert build is not None
    return Side(text, text, build.release)


def common_machines(*sides: Side) -> tuple[str, ...]:
    """Return the state machines that can test the classes of each side."""
    return tuple(name for name in FILE_MACHINES if all(side.is_driven_by(name) for side in sides))


@dataclass(frozen=True)
class Plan:
    """Plan of a comparison.

    Attributes:
        old: The baseline release, or ``jvm:DIR``.
        new: The other release, or ``jvm:DIR``.
        machines: Names of state machines (:data:`conformance.machines.MACHINES`).
        traces: The directory of shrunk traces.
        seed: The random seed; a fixed seed reproduces the search.
        max_examples: The number of examples for each machine; None for the profile's number, or fewer if rounds find
            nothing new.
        max_time: The time limit in seconds, or None.
        replays: True to replay the regression traces first.
    """

    old: str
    new: str
    machines: tuple[str, ...]
    traces: Path
    seed: int = PROFILE.seed or 0
    max_examples: int | None = None
    max_time: float | None = None
    replays: bool = True

    @property
    def sides(self) -> tuple[Side, Side]:
        """Baseline side and new side."""
        return side_of(self.old), side_of(self.new)
