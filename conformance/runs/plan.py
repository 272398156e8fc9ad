"""Plan of a run: the implementations and releases to test, the number of examples, and the treatment of divergences.

The size of the run determines the default number of worker processes.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from conformance.clauses.machines import MACHINES
from conformance.implementations.forms import is_server
from conformance.lockstep.watchdog import STEP_TIMEOUT_S
from conformance.operations.op import Effect
from conformance.operations.operation import operations_of
from conformance.runs.shrinking import SHRINK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.kafka.broker import Choice
    from conformance.operations.trace import Trace
    from conformance.runs.external_broker import ExternalBrokerAddress
    from conformance.runs.profiles import Profile, SeedRequest
    from conformance.runs.wire_options import WireOptions


@dataclass(frozen=True)
class Plan:
    """Plan of a run.

    Attributes:
        releases: The Kafka releases, oldest first.
        implementations: ``-i`` arguments such as ``"jvm"`` or ``"exec:./my-index"``.
        machines: Names of :data:`conformance.machines.MACHINES`.
        profile: The size of the run.
        traces: The directory for shrunk traces.
        seed: The seed; ``"random"`` for a random one, None for the seed of the profile.
        max_examples: The number of examples per machine; None for the number of the profile.
        max_time: The maximum time in seconds for the whole run; None for no limit.
        level: The level of the clauses that count for the verdict. ``"observed"`` counts all clauses, ``"api"`` no
            OBSERVED clauses, ``"must"`` only MUST clauses.
        broker: The way in which ``-i broker`` starts a broker: ``"container"``, ``"local"``, or ``"auto"`` for either.
        kill_cycles: The number of times that a broker is killed and started instead of executing examples.
        expectations: A directory of expectations; None for the expectations of the package.
        replays: True to replay the regression traces of the package first.
        attachment: A running broker that is checked; None to start brokers.
        stop_at_first: True if an implementation drops out of the run at its first divergence.
        jobs: The number of processes that share the examples; None for one per CPU if the run is large enough.
        step_timeout: The maximum duration in seconds of a step of an implementation.
        shrink_time: The maximum time in seconds for shrinking one divergence.
        model: True to compare references with their models.
        wire: The connection options of ``wire:`` brokers.
        demand_coverage: True if it is an error that no generated example matches a row of the attribution tables, which
            state what exercises each clause. Only this project's CI sets it, to test the machines.
        trace: A trace that is executed instead of examples, to report its divergences; None for examples.
        edition: The edition whose clauses alone count (:mod:`conformance.clauses.editions`); empty for the catalogue.
        operations: The names of the operations that are executed, and those that open or release files; empty for all.
    """

    releases: tuple[str, ...]
    implementations: tuple[str, ...]
    machines: tuple[str, ...]
    profile: Profile
    traces: Path
    seed: SeedRequest = None
    max_examples: int | None = None
    max_time: float | None = None
    level: Literal["must", "api", "observed"] = "observed"
    broker: Choice = "auto"
    kill_cycles: int = 0
    expectations: Path | None = None
    replays: bool = True
    attachment: ExternalBrokerAddress | None = None
    stop_at_first: bool = False
    jobs: int | None = 1
    shrink_time: float = SHRINK_SECONDS
    step_timeout: float = STEP_TIMEOUT_S
    model: bool = True
    wire: WireOptions | None = None
    demand_coverage: bool = False
    trace: Trace | None = None
    edition: str = ""
    operations: tuple[str, ...] = ()

    def omitted(self, machine: str) -> frozenset[str]:
        """Return the operations of a machine that are not executed; what opens or releases files always is."""
        needed = (Effect.OPENS, Effect.RELEASES)
        return frozenset(
            name
            for name, each in operations_of(machine).items()
            if self.operations and name not in self.operations and each.effect not in needed
        )

    def examples_of(self, machine: str) -> int:
        """Return the number of examples of a machine."""
        return self.max_examples if self.max_examples is not None else self.profile.examples_of(machine)

    def command(self, seed: int) -> str:
        """Return the command of the same run, without the options for its output."""
        words = ["conformance", "run", "--profile", self.profile.name, "--seed", str(seed)]
        words += [word for name in self.implementations for word in ("-i", name)]
        words += [word for release in self.releases for word in ("--kafka", release)]
        words += [word for machine in self.machines for word in ("--machine", machine)]
        words += [word for operation in self.operations for word in ("--operation", operation)]
        words += ["--max-examples", str(self.max_examples)] if self.max_examples is not None else []
        words += ["--max-time", f"{self.max_time:g}"] if self.max_time is not None else []
        words += ["--level", self.level] if self.level != "observed" else []
        words += ["--edition", self.edition] if self.edition else []
        words += ["--expectations", str(self.expectations)] if self.expectations is not None else []
        if self.wire is not None:
            words += [word for feature in self.wire.without for word in ("--skip-feature", feature)]
            words += ["--command-config", str(self.wire.command_config)] if self.wire.command_config is not None else []
            words += ["--start-command", self.wire.start_command] if self.wire.start_command else []
            words += [word for each in self.wire.topic_config for word in ("--topic-config", each)]
        return shlex.join(words)


_CHECKS_PER_WORKER: Final = 60_000
"""The number of checks (steps times participants) that justify one more process with a start of Python and Java."""


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def extra_workers_for(plan: Plan, machines: Sequence[str]) -> int:
    """Return the number of worker processes in addition to the current one.

    Args:
        plan: The plan; its ``jobs`` takes precedence.
    """
    if plan.jobs is not None or not machines:
        return (plan.jobs or 1) - 1 if machines else 0
    # The fewer examples of a machine with slow steps take as long as all examples of another machine.
    full_examples = sum(plan.examples_of(name) / MACHINES[name].examples_factor for name in machines)
    participants = len(plan.releases) * len([name for name in plan.implementations if not is_server(name)])
    checks = full_examples * plan.profile.steps * participants
    return max(0, min(usable_cpus() - 1, int(checks // _CHECKS_PER_WORKER)))
