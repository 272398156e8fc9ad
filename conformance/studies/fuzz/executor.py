"""Execution of corrupt files in lockstep, one file at a time, and their encoding for Kafka's classes.

A case is the content of a file and its probe: the operations that write the content to a file, open the file and query
it. It is encoded as the steps alone, or with expected results from kidx.
"""

from __future__ import annotations

import contextlib
import os
import signal
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from conformance.errors import ToolError
from conformance.implementations.jvm.cases import CaseWriter, without_state
from conformance.implementations.jvm.index import INDEX_LANGUAGE
from conformance.implementations.jvm.segment import JvmSegment
from conformance.implementations.jvm.step_batch import Language
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.implementations.kidx.segment import ReferenceSegment
from conformance.lockstep import DivergenceError
from conformance.operations.index import INDEX_OPS
from conformance.operations.op import Files, Shape
from conformance.operations.segment import SEGMENT_OPS, SUFFIXES
from conformance.runs.completeness import compared_by
from conformance.runs.shrinking.divergence import shrink_divergence
from conformance.studies.fuzz.probes import MACHINE_OF, PROBES
from conformance.studies.fuzz.seed_files import BASE_OFFSET
from kidx.segment import file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType

    from conformance.operations import Operation
    from conformance.verdict import Comparison
    from kidx.dialect import Dialect

DEADLINE: Final = 20
"""Seconds after which a probe counts as a hang; probes take milliseconds."""


class HangError(Exception):
    """Probe that did not end."""


class ExecutionResult(NamedTuple):
    """Result of one content.

    Attributes:
        outcomes: The outcome of every step in kidx, as (operation, error kind or value), for the newest release.
        failure: The divergence, with the shortest sequence of operations that shows it, or None if all agree.
        crash: An unexpected exception of an implementation, or None.
        operations: The operations of the probe.
    """

    outcomes: tuple[tuple[str, Any], ...]
    failure: DivergenceError | None
    crash: Exception | None
    operations: list[Operation]

    @property
    def signature(self) -> tuple[str, ...]:
        """Kinds of the outcomes of all steps, without values."""
        return tuple(f"{name}:{_shape(outcome)}" for name, outcome in self.outcomes)


def probe_of(
    script: Callable[[bytes], list[Operation]], content: bytes, queries_from: bytes | None = None
) -> list[Operation]:
    """Return the probe of a content.

    Args:
        script: A function that returns the probe of a content.
        queries_from: The content from which the queries are derived; None for ``content``.
    """
    if queries_from is None:
        return script(content)
    return [_with_content(operation, queries_from, content) for operation in script(queries_from)]


def _with_content(operation: Operation, old: bytes, new: bytes) -> Operation:
    if operation.args == (old.hex(),):
        return operation._replace(args=(new.hex(),))
    if operation.args[-1:] == ((old.hex(),),):
        return operation._replace(args=(*operation.args[:-1], (new.hex(),)))
    return operation


def _shape(outcome: Any) -> str:
    if isinstance(outcome, str):
        return outcome
    return "nothing" if outcome is None else type(outcome).__name__


class CaseExecutor:
    """Executor of contents of one format.

    Args:
        format_name: A format of ``--format``.
        lockstep: A lockstep of the state machine that the format belongs to.

    Attributes:
        machine: The name of this state machine.
    """

    def __init__(self, format_name: str, lockstep: Any) -> None:
        self.machine = MACHINE_OF[format_name]
        self._script = PROBES[format_name]
        self._lockstep = lockstep

    @property
    def compared(self) -> Comparison:
        """Summary of what the lockstep has compared."""
        return compared_by(self._lockstep, self.machine, 0)

    def examine(self, content: bytes, queries_from: bytes | None = None) -> ExecutionResult:
        """Execute the probe of a content.

        Args:
            queries_from: The content from which the queries are derived; None for ``content``.
        """
        operations = probe_of(self._script, content, queries_from)
        outcomes: list[tuple[str, Any]] = []
        lockstep = self._lockstep
        try:
            with _deadline(DEADLINE), lockstep.example():
                for operation in operations:
                    outcome = lockstep.perform(operation).outcome
                    outcomes.append((operation.name, outcome.error or outcome.value))
                lockstep.compare_directories()
        except ToolError as error:
            return ExecutionResult(tuple(outcomes), None, error, operations[: len(outcomes) + 1])
        except DivergenceError as failure:
            return ExecutionResult(tuple(outcomes), shrink_divergence(lockstep, failure), None, operations)
        except Exception as crash:  # noqa: BLE001 -- any unexpected exception is a finding
            return ExecutionResult(tuple(outcomes), None, crash, operations[: len(outcomes) + 1])
        return ExecutionResult(tuple(outcomes), None, None, operations)


@contextmanager
def _deadline(seconds: int) -> Iterator[None]:
    """Stop the block after a time limit.

    Raises:
        HangError: The block exceeded the limit.
    """

    def ring(_number: int, _frame: FrameType | None) -> NoReturn:
        raise HangError(f"did not return within {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


_READ_LIMIT: Final = 1 << 24
"""Number larger than the size in bytes of any file here."""
SETUP: Final = 3
"""Number of steps at the beginning of a probe that only write the content to the file: open, crash, corrupt."""
_FILES_NOT_COMPARED: Final = frozenset(
    {name for name, each in INDEX_OPS.items() if each.looks}
    | {name for name, each in SEGMENT_OPS.items() if each.files is Files.MAKES}
    | {"open", "open_segment", "largest_timestamp"}
)
"""Operations that seldom change files: the files are compared only after the next other operation."""
_STATE_NOT_READ: Final = frozenset(
    {name for name, each in INDEX_OPS.items() if each.looks and each.gives is not Shape.NOTHING}
    | {"translate_offset", "find_offset", "read_segment"}
)
"""Queries: the state of the index or segment is compared only after the next other operation."""


class ReferenceCases:
    """Encoder of the cases of one format, which gets expected results from kidx.

    Args:
        format_name: A format of ``--format``.
        directory: An empty directory in which the reference works.

    Attributes:
        outcomes: The outcome of every step of the last case, as (operation, error kind or value).
    """

    def __init__(self, format_name: str, dialect: Dialect, directory: Path) -> None:
        self._directory = directory
        self._prefix = f"{directory}/"
        self._script = PROBES[format_name]
        self._language = INDEX_LANGUAGE
        # Cached: many operations occur in every case, and queries occur twice.
        self._step = lru_cache(maxsize=1024)(self._encoded)
        self._step_without_reply = lru_cache(maxsize=1024)(self._encoded_without_reply)
        self._reference: Any = None
        self.outcomes: list[tuple[str, Any]] = []
        if MACHINE_OF[format_name] == "segment":
            self._reference = ReferenceSegment(dialect.release)
            self._reference.perform_for([dialect])
            self._language = Language(JvmSegment.encode_step, JvmSegment.encode_reply)
            self._files = tuple(file_name(BASE_OFFSET, suffix) for suffix in SUFFIXES)
        else:
            self._reference = ReferenceIndex(dialect.release)
            self._files = ()

    def script(self, content: bytes) -> bytes:
        """Return the encoded case of a content without expected results."""
        operations = self._script(content)
        names = self._files or (operations[0].args[1],)
        writer = CaseWriter()
        for name in names:
            writer.write(name, content if name == names[0] else None)
        writer.extend([self._step_without_reply(operation, names) for operation in operations[SETUP:]])
        return bytes(writer)

    def case(self, content: bytes, queries_from: bytes | None = None) -> bytes:
        """Return the encoded case of a content with expected results, for which kidx executes the operations.

        Args:
            queries_from: The content from which the queries are derived; None for ``content``.
        """
        operations = self._script(content if queries_from is None else queries_from)
        self.outcomes = []
        names = self._files or (operations[0].args[1],)
        writer = CaseWriter()
        for name in names:
            initial = content if name == names[0] else None
            writer.write(name, initial)
            _replace(self._prefix + name, initial)
        self._reference.begin(self._directory)
        try:
            for operation in operations[SETUP:]:
                self._execute(writer, operation, names, content)
        finally:
            self._reference.end()
        return bytes(writer)

    def _encoded(self, operation: Operation) -> bytes:
        request = self._language.step(operation)
        return without_state(request) if operation.name in _STATE_NOT_READ else request

    def _encoded_without_reply(self, operation: Operation, names: tuple[str, ...]) -> bytes:
        writer = CaseWriter()
        writer.perform(self._step(operation), None)
        if operation.name not in _FILES_NOT_COMPARED:
            for name in names:
                writer.compare(name, None)
        return writer.steps

    def _execute(self, writer: CaseWriter, operation: Operation, names: tuple[str, ...], content: bytes) -> None:
        """Execute an operation with kidx, and add it to the case with its result and the files' contents."""
        perform = self._reference.ask if operation.name in _STATE_NOT_READ else self._reference.perform
        observation = perform(operation)
        self.outcomes.append((operation.name, observation.outcome.error or observation.outcome.value))
        writer.perform(self._step(operation), self._language.reply(operation, observation))
        if operation.name in _FILES_NOT_COMPARED:
            return
        for name in names:
            found = _content(self._prefix + name)
            if found == content and name == names[0]:
                writer.compare_as_written(name)
            else:
                writer.compare(name, found)


def _replace(path: str, content: bytes | None) -> None:
    """Write a file, or remove it; without a Path, whose creation would take longer than the system call."""
    if content is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
    os.write(descriptor, content)
    os.close(descriptor)


def _content(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return os.read(descriptor, _READ_LIMIT)
    finally:
        os.close(descriptor)
