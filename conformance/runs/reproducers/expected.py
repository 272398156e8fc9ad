"""Expected results of the steps of a trace about one index file, from the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from conformance.errors import ToolError
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.lockstep.file_reader import corrupt
from conformance.operations import FILE_OPERATIONS, OK, Observation, Operation
from conformance.quoting import quoted
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from conformance.operations.trace import Trace


class Step(NamedTuple):
    """Step with its expected results.

    Attributes:
        observation: The reference's observation.
        path: The path of the file after the step.
        content: The content of the file after the step; None if it does not exist.
    """

    operation: Operation
    observation: Observation
    path: str
    content: bytes | None


def expected_steps(trace: Trace, release: str) -> list[Step]:
    """Execute the steps with the reference, in the dialect of a release.

    Raises:
        ToolError: A step cannot be executed.
    """
    reference = ReferenceIndex(release)
    steps: list[Step] = []
    path = ""
    with scratch_directory() as scratch:
        reference.begin(scratch)
        try:
            for operation in trace.operations:
                path = {"open": operation.args[1:2], "rename": operation.args[:1]}.get(operation.name, (path,))[0]
                if operation.name in FILE_OPERATIONS:
                    corrupt(scratch / path, operation.name, operation.args)
                    observation = Observation(OK, None)
                else:
                    observation = reference.perform(operation)
                file = scratch / path
                steps.append(Step(operation, observation, path, file.read_bytes() if file.is_file() else None))
        except (TypeError, ValueError, LookupError, OSError) as error:
            where = f"step {len(steps) + 1} of the trace, {quoted(str(operation))}"
            raise ToolError(f"{where}, cannot be executed: {quoted(repr(error))}") from error
        finally:
            reference.end()
    return steps


def without_zeros(content: bytes) -> tuple[str, int]:
    """Return the content as hexadecimal digits and a number of trailing zeros, as a preallocated index has many."""
    used = content.rstrip(b"\0")
    return used.hex(), len(content) - len(used)
