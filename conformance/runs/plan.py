"""What a run is to do."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from conformance.lockstep.watchdog import LIMIT
from conformance.runs.shrinking import SECONDS

if TYPE_CHECKING:
    from conformance.kafka.broker.backend import Choice
    from conformance.runs.attached import Attachment
    from conformance.runs.profiles import Profile
    from conformance.runs.seeds import Wish
    from conformance.runs.wire_options import WireOptions


@dataclass(frozen=True)
class Plan:
    """What a run is to do.

    Attributes:
        releases: Kafka releases, oldest first.
        implementations: specifications such as ``"jvm"`` or ``"exec:./my-index"``.
        machines: names of :data:`conformance.machines.MACHINES`.
        profile: how much.
        traces: where shrunk traces are written.
        seed: overrides the profile's; ``"random"`` draws one.
        max_examples: overrides the profile's, for each machine.
        max_time: seconds for the whole run; None for no limit.
        level: ``"observed"`` counts everything, ``"must"`` leaves OBSERVED clauses out of the verdict and
            those of Java's API, ``"api"`` the former only.
        broker: ``"auto"``, ``"container"`` or ``"local"``: where ``-i broker`` runs.
        kill_cycles: what a broker does instead of examples: so many times it is killed and started.
        expectations: a directory of known divergences; None for the package's own, which are about Kafka's classes.
        kept: whether the traces that the package keeps are performed first.
        attachment: a broker that is running already, instead.
        stop_at_first: an implementation leaves the run with its first difference, instead of going on.
        jobs: processes that share the examples; None for as many as there are processors, if the run is worth it.
        step_timeout: seconds that a step of an implementation in this process may take.
        shrink_time: seconds that shrinking one difference may take.
        model: whether references are held to their abstract models.
        wire: how brokers behind ``wire:`` are reached.
        demand_coverage: whether it is an error if the drawn examples leave a row of attribution out: the
            harness judges itself. Only this project's own CI wants that.
    """

    releases: tuple[str, ...]
    implementations: tuple[str, ...]
    machines: tuple[str, ...]
    profile: Profile
    traces: Path
    seed: Wish = None
    max_examples: int | None = None
    max_time: float | None = None
    level: Literal["must", "api", "observed"] = "observed"
    broker: Choice = "auto"
    kill_cycles: int = 0
    expectations: Path | None = None
    kept: bool = True
    attachment: Attachment | None = None
    stop_at_first: bool = False
    jobs: int | None = 1
    shrink_time: float = SECONDS
    step_timeout: float = LIMIT
    model: bool = True
    wire: WireOptions | None = None
    demand_coverage: bool = False

    def examples_of(self, machine: str) -> int:
        """How many examples of a machine are wanted."""
        return self.max_examples if self.max_examples is not None else self.profile.examples_of(machine)

    def command(self, seed: int) -> str:
        """The command line that does the same, without what says where its results go.

        Args:
            seed: that was chosen.
        """
        words = ["conformance", "run", "--profile", self.profile.name, "--seed", str(seed)]
        words += [word for name in self.implementations for word in ("-i", name)]
        words += [word for release in self.releases for word in ("--kafka", release)]
        words += [word for machine in self.machines for word in ("--machine", machine)]
        words += ["--max-examples", str(self.max_examples)] if self.max_examples is not None else []
        words += ["--max-time", f"{self.max_time:g}"] if self.max_time is not None else []
        words += ["--level", self.level] if self.level != "observed" else []
        words += ["--expectations", str(self.expectations)] if self.expectations is not None else []
        if self.wire is not None:
            words += [word for feature in self.wire.without for word in ("--skip-feature", feature)]
            words += ["--command-config", str(self.wire.command_config)] if self.wire.command_config is not None else []
            words += ["--start-command", self.wire.start_command] if self.wire.start_command else []
        return shlex.join(words)
