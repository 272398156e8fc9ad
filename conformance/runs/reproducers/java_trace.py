"""Export of a trace about a segment, a log, a tiered log or a cache as a JUnit 5 test of Kafka's class, in one file.

The signatures of Kafka's methods differ between releases. The test therefore contains the classes of the harness that
find the methods (``conformance/implementations/jvm/java``), and runs with every release.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.errors import ToolError
from conformance.implementations.jvm.rows import ROWS
from conformance.implementations.protocol import provides_codecs, with_codecs_of
from conformance.machines import MACHINES
from conformance.operations.op import BATCHES, HEXADECIMAL, Shape
from conformance.quoting import quoted
from conformance.runs.reproducers.expected import without_zeros
from conformance.runs.reproducers.java_nested import fill, template_of
from conformance.runs.reproducers.java_text import java_comment, java_long_string, java_string
from conformance.scratch import scratch_directory
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.implementations.jvm.classes import JvmClasses
    from conformance.operations import Operation, Outcome
    from conformance.operations.trace import Trace

_STEPS_OF_METHOD: Final = 20
"""Number of steps in one method, because a class file limits the code of a method to 64 kB."""
_MEMBERS: Final = ("Members", "Missing", "Options")
"""The classes of the harness that find Kafka's methods by reflection; every test needs them."""
_LOG_STATE: Final = (
    "Log start offset, log end offset, high watermark, last stable offset, recovery point; number of segments, base"
    " offset and size of each; then the state of producers."
)
_TIERED_STATE: Final = _LOG_STATE + (
    " Then local start offset, highest remote offset, number of remote segments, and of each: number, first and last"
    " offset, state, largest timestamp, size, 1 if it has no transactions, number of leader epochs, epoch and start"
    " offset of each, CRC-32 of all files."
)
_SEGMENT_STATE: Final = (
    "Size, bytes since the last index entry, creation time; rolling timestamp, largest timestamp and its offset, each"
    " 0, or after 1 if it is known; then the three indexes in the same way."
)


@dataclass(frozen=True)
class _Form:
    """Parts of a test that depend on the machine of the trace.

    Attributes:
        driver: The class that executes steps.
        classes: The other classes of the harness that the test needs.
        state: A comment that explains the numbers of the state.
        package: The package of the test.
        loaded: The classes that Kafka loads.
    """

    driver: str
    classes: tuple[str, ...]
    state: str
    package: str = "org.apache.kafka.storage.internals.log"
    loaded: tuple[str, ...] = ()


_OF_LOGS: Final = (
    "LogAdapter",
    "LogParts",
    "LogProducers",
    "LogCleaning",
    "LogAnswer",
    "AppendResults",
    "LogEnvironment",
)
_OF_TIERS: Final = ("FailingStorage", "MetadataInMemory")
_LOG: Final = _Form("LogDriver", _OF_LOGS, _LOG_STATE)
_FORMS: Final = {
    "segment": _Form(
        "SegmentDriver",
        (
            "SegmentAdapter",
            "SegmentParts",
            "SegmentState",
            "AbortedTransactions",
            "LogAnswer",
            "LogEnvironment",
            "Mappings",
        ),
        _SEGMENT_STATE,
    ),
    "log": _LOG,
    "cleaned": _LOG,
    "tiered": _Form(
        "TieredDriver",
        ("TieredAdapter", *_OF_LOGS, "Mappings", *_OF_TIERS),
        _TIERED_STATE,
        "org.apache.kafka.server.log.remote.metadata.storage",
        _OF_TIERS,
    ),
    "cache": _Form(
        "CacheDriver",
        ("CacheAdapter", "KafkaCacheAdapter", "AbortedTransactions", "StoredIndexes", "Mappings"),
        "1 if the cache is closed; then the number of entries, and of each: id as two numbers, start offset, entries of"
        " the two indexes, size, 1 if it is marked for deletion, 1 if it is deleted.",
    ),
}
MACHINES_WITH_TESTS: Final = tuple(_FORMS)


class _Step(NamedTuple):
    """Step with its expected results.

    Attributes:
        operation: The operation.
        request: The numbers and the bytes that Kafka's class receives; None if the step corrupts a file.
        path: The corrupted file, or an empty string.
        outcome: The expected outcome.
        values: The numbers of the expected value.
        state: The numbers of the expected state; None if no segment, log or cache is open.
        files: The expected files, by name; None for a file that does not exist.
    """

    operation: Operation
    request: tuple[Sequence[int], bytes] | None
    path: str
    outcome: Outcome
    values: Sequence[int]
    state: Sequence[int] | None
    files: dict[str, bytes | None]


def trace_test(trace: Trace, release: str, name: str) -> str:
    """Return the test class; it asserts result, state and files after every step.

    Raises:
        ToolError: A step cannot be executed, Kafka's classes of the release are not available, or another class in the
            test has the name ``name``.
    """
    form = _FORMS[trace.machine]
    parts = (form.driver, *form.classes, *_MEMBERS)
    template, classes = template_of("TraceTest.java", name, parts, form.loaded)
    subject = MACHINES[trace.machine].subject("jvm", release)
    values = {
        "title": java_comment(trace.title or f"Trace {trace.id}"),
        "release": release,
        "count": str(len(trace.operations)),
        "name": name,
        "package": form.package,
        "driver": form.driver,
        "state": "\n     * ".join(wrap(form.state, 110)),
        "steps": _methods(list(_expected(trace, release, subject)), subject),
        "kinds": "\n".join(
            f"            KINDS.put({java_string(exception)}, {java_string(kind)});"
            for exception, kind in subject.kind_of.items()
            if not exception.startswith("org.apache.fluss.")
        ),
        "classes": classes,
    }
    return fill(template, values)


def _expected(trace: Trace, release: str, subject: JvmClasses[Any]) -> Iterator[_Step]:
    """Execute the steps with the reference, and yield each with its results.

    Raises:
        ToolError: A step cannot be executed.
    """
    with scratch_directory() as scratch:
        lockstep = MACHINES[trace.machine].new_lockstep([], scratch, releases=[release])
        group, scope = lockstep.groups[0], lockstep.scope
        if provides_codecs(subject):
            group.dialect = with_codecs_of(dialect_of(release), [subject])
            group.reference.implementation.perform_for([group.dialect])
        name = scope.no_file_name
        with lockstep.example():
            for number, operation in enumerate(trace.operations, start=1):
                try:
                    damages = operation.name in scope.corrupting_operations
                    request = None if damages else _request(subject.step_of(operation))
                    if operation.name in scope.file_selecting_operations:
                        name = scope.named(operation, name)
                    outcome, state = lockstep.perform(operation)
                    numbers = None if state is None else subject.row.numbers(state)
                    value = outcome.value
                    values = [] if value is None else ROWS[subject.operations[operation.name].gives].numbers(value)
                except (TypeError, ValueError, LookupError, OSError, struct.error) as error:
                    where = f"step {number} of the trace, {quoted(str(operation))}"
                    raise ToolError(f"{where}, cannot be executed: {quoted(repr(error))}") from error
                path = scope.corrupted_path(operation, name) if damages else ""
                found = dict(scope.by_name(group.files, name))
                yield _Step(operation, request, path, outcome, values, numbers, found)


def _request(step: bytes) -> tuple[Sequence[int], bytes]:
    """Return the numbers and the bytes of an encoded step (:mod:`conformance.implementations.jvm.step_batch`)."""
    _, count = struct.unpack_from("=2q", step)
    *numbers, length = struct.unpack_from(f"={count + 1}q", step, 16)
    return numbers, step[24 + 8 * count :][:length]


def _methods(steps: list[_Step], subject: JvmClasses[Any]) -> str:
    """Return the test method, and the methods of its steps if there are many."""
    writer = _Writer(subject)
    blocks = [writer.statements(number, step) for number, step in enumerate(steps, start=1)]
    parts = [blocks[start : start + _STEPS_OF_METHOD] for start in range(0, len(blocks), _STEPS_OF_METHOD)]
    if len(parts) <= 1:
        return _method("@Test\n    public void trace()", [line for block in blocks for line in block])
    calls = [f"steps{number}();" for number in range(1, len(parts) + 1)]
    methods = [_method("@Test\n    public void trace()", calls)]
    for number, part in enumerate(parts, start=1):
        methods.append(_method(f"private void steps{number}()", [line for block in part for line in block]))
    return "\n\n".join(methods)


def _method(head: str, lines: list[str]) -> str:
    body = "\n".join(f"        {line}" for line in lines)
    return f"    {head} throws Exception {{\n{body}\n    }}"


class _Writer:
    """Writer of the statements of steps, which omits values that have not changed since the previous step."""

    def __init__(self, subject: JvmClasses[Any]) -> None:
        self.subject = subject
        self.state: Sequence[int] | None = None
        self.files: dict[str, bytes | None] = {}

    def statements(self, number: int, step: _Step) -> list[str]:
        """Return the statements of a step."""
        lines = [f"// {number}. {java_comment(str(step.operation))}"]
        if step.request is None:
            content = step.files.get(step.path)
            named = java_string(step.path)
            self.files[step.path] = content
            return [*lines, f"remove({named});" if content is None else f"write({named}, {_bytes(content)});"]
        numbers, data = step.request
        arguments = "".join(f", {_long(value)}" for value in numbers)
        lines.append(
            f"execute({java_string(step.operation.name)}, {self._data(step.operation.name, data)}{arguments});"
        )
        lines.append(self._outcome(step))
        if step.state != self.state:
            self.state = step.state
            lines.append("noState();" if step.state is None else f"state({', '.join(map(_long, step.state))});")
        for file in sorted(self.files.keys() | step.files.keys()):
            content = step.files.get(file)
            if file not in self.files or self.files[file] != content:
                shown = java_string(file)
                lines.append(f"noFile({shown});" if content is None else f"file({shown}, {_bytes(content)});")
                self.files[file] = content
        return [*lines, "check();"]

    def _data(self, operation: str, data: bytes) -> str:
        """Return an expression for the bytes of a request; they are written as texts if they are not binary."""
        if not data:
            return "NONE"
        kinds = self.subject.operations[operation].arguments.values()
        if BATCHES in kinds or HEXADECIMAL in kinds:
            return _bytes(data)
        return f"texts({', '.join(map(java_string, data.decode().split(chr(0))))})"

    def _fields(self, step: _Step) -> str:
        """Return a comment with the names of the numbers in a result."""
        operation = self.subject.operations[step.operation.name]
        names = ("found", *operation.fields) if operation.gives is Shape.ANSWERS else operation.fields
        return f"  // {', '.join(names)}" if names else ""

    def _outcome(self, step: _Step) -> str:
        error, _, text = step.outcome
        if error is None:
            names = self._fields(step) if step.values else ""
            return f"returned({', '.join(map(_long, step.values))});{names}"
        compared_text = None if self.subject.any_text or error in self.subject.silent else text
        return f"threw({java_string(error)}, {'null' if compared_text is None else java_string(compared_text)});"


def _long(value: int) -> str:
    return "Long.MIN_VALUE" if value == -(1 << 63) else f"{int(value)}L"


def _bytes(content: bytes) -> str:
    used, zeros = without_zeros(content)
    return f"bytes({java_long_string(used)}, {zeros})"
