"""Recording of examples: the steps and what the reference answered, as the bytes that Kafka's classes execute.

The examples are regression traces and drawn examples of the state machines, in which the unchanged classes conform. A
mutant needs neither Hypothesis nor the reference: Java executes the recorded bytes, until a reply or a file differs.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.jvm.step_batch import Language, StepBatch
from conformance.lockstep.divergence import Decision
from conformance.lockstep.lockstep import Observer
from conformance.machines import MACHINES
from conformance.runs.chunks import chunks_of, run_chunk
from conformance.runs.profiles import PROFILES
from conformance.runs.replay import load_regression_traces, replay_operations
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.implementations.jvm.step_batch import JvmBatchGroup
    from conformance.operations import Operation

_INT: Final = struct.Struct(">i").pack
_SHARE: Final = {"tiered": 0.25}
"""Share of the drawn examples of a machine whose steps take much longer."""


@dataclass
class Example:
    """Recorded example.

    Attributes:
        machine: its state machine.
        name: id of the regression trace, or number of the drawn example.
        batches: number of steps and bytes of each batch.
        operations: names of the steps; the harness itself executes some.
        is_drawn: True for a drawn example.
        differs: True if the unchanged classes differ somewhere from the reference, in a way that a run tolerates, or if
            a result is too large to be recorded.
    """

    machine: str
    name: str
    batches: list[tuple[int, bytes]] = field(default_factory=list)
    operations: list[str] = field(default_factory=list)
    is_drawn: bool = True
    differs: bool = False

    @property
    def steps(self) -> int:
        """Number of steps."""
        return sum(steps for steps, _ in self.batches)


class _NamedBatch(StepBatch):
    """Batch of steps that also keeps their names.

    Attributes:
        names: names of the steps.
        is_complete: False if a step has no expected result.
    """

    def __init__(self, rule_sets: int, language: Language) -> None:
        super().__init__(rule_sets, language)
        self.names: list[str] = []
        self.is_complete = True

    def perform(self, operation: Operation, *rest: Any) -> None:
        """Add an operation with its expected results."""
        self.names.append(operation.name)
        super().perform(operation, *rest)

    def overwrite(self, name: str, contents: Sequence[bytes | None]) -> None:
        """Add a step that replaces the content of a file."""
        self.names.append("the harness writes a file")
        super().overwrite(name, contents)

    def compare_listings(self, listings: Sequence[Sequence[str]]) -> None:
        """Add a check of the names of all files."""
        self.names.append("the harness lists the files")
        super().compare_listings(listings)

    def _match_no_reply(self, number: int) -> None:
        self.is_complete = False
        super()._match_no_reply(number)


def drawn_of(machine: str, examples: int) -> int:
    """Return the number of a machine's drawn examples, if a machine whose steps are fast has ``examples``."""
    return ceil(examples * _SHARE.get(machine, 1))


def record(machine: str, implementation: str, release: str, examples: int, seed: int) -> list[Example]:
    """Return the regression traces and drawn examples of a machine.

    Args:
        machine: the machine.
        implementation: ``jvm``, or ``jvm:DIR`` of a build.
        release: the release whose dialect the classes have.
        examples: number of drawn examples; see :func:`drawn_of`.
        seed: seed of the drawn examples.

    Raises:
        NotDrivenError: the machine cannot test the implementation.
        ToolError: Java or a jar is missing.
    """
    subject = MACHINES[machine].subject(implementation, release)
    found = list[Example]()
    current: list[Example] = []

    def recording(rule_sets: int, members: Sequence[tuple[Any, int]]) -> JvmBatchGroup:
        group: JvmBatchGroup = type(subject).batch_group(rule_sets, members)
        start, language = group.start, Language(type(subject).encode_step, type(subject).encode_reply)

        def keep(script: Any, *, alone: bool) -> None:
            current[0].batches.append((script.steps, bytes(script)))
            current[0].operations += script.names
            current[0].differs |= not script.is_complete
            start(script, alone=alone)

        group.script = lambda: _NamedBatch(rule_sets, language)  # type: ignore[method-assign]
        group.start = keep  # type: ignore[method-assign]
        return group

    def note(_: Any) -> Decision:
        current[0].differs = True
        return Decision.SKIP_EXAMPLE

    class Recorder(Observer):
        def begins(self) -> Collection[str]:
            current[:] = [Example(machine, f"{len(found)}")]
            return ()

        def ends(self) -> None:
            found.append(current[0])

    subject.batch_group = recording
    with scratch_directory() as scratch:
        lockstep = MACHINES[machine].new_lockstep([subject], scratch, releases=(release,), on_divergence=note)
        lockstep.attribute = False
        lockstep.drop_models()
        lockstep.observers.append(Recorder())
        for trace in load_regression_traces(machine):
            if lockstep.can_execute(trace.operations):
                replay_operations(lockstep, trace.operations)
                found[-1].name, found[-1].is_drawn = trace.id, False
        bound = MACHINES[machine].bind(lockstep)
        number = drawn_of(machine, examples)
        settings = PROFILES["ci"].settings(number)
        for chunk in chunks_of(machine, number, seed):
            run_chunk(bound, settings, chunk.seed, chunk.examples)
    return [each for each in found if each.batches]


def save(examples: Sequence[Example], path: Path) -> None:
    """Write examples as ``Replays.java`` reads them."""
    with path.open("wb") as file:
        file.write(_INT(len(examples)))
        for example in examples:
            file.write(_INT(len(example.batches)))
            for steps, data in example.batches:
                file.write(_INT(steps) + _INT(len(data)) + data)
