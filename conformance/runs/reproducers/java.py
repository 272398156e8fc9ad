"""Export of a trace as a JUnit 5 test of Kafka's own class in one file, suitable for a ticket.

The test of an index file is in the package of the class that it tests, like Kafka's own tests, and depends on no code
of this project. Up to 3.4, the classes are Scala classes in ``kafka.log``; from 3.5 on, they are Java classes.
Accessors of results differ, too.

The signatures of the methods of segments, logs, tiered logs and caches differ between releases. Their test therefore
contains, as nested classes, the classes of the harness that find the methods
(``conformance/implementations/jvm/java``), and runs with every release.

Text is quoted safely and in ASCII. Java replaces Unicode escapes before it recognizes strings and comments. A backslash
and a ``u`` in a name could therefore end a string or a comment, as a Unicode escape of a line break does. ASCII does
not depend on the default encoding of the compiler.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.errors import ToolError
from conformance.implementations.jvm.driver import BESIDE_KAFKA, SOURCES
from conformance.implementations.jvm.exceptions import KIND_OF
from conformance.implementations.jvm.rows import ROWS
from conformance.implementations.protocol import provides_codecs, with_codecs_of
from conformance.machines import MACHINES
from conformance.operations import FILE_OPERATIONS, KINDS
from conformance.operations.op import BATCHES, HEXADECIMAL, Shape
from conformance.quoting import quoted
from conformance.runs.reproducers.expected import expected_steps, without_zeros
from conformance.scratch import scratch_directory
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from conformance.implementations.jvm.classes import JvmClasses
    from conformance.operations import Operation, Outcome, State
    from conformance.operations.trace import Trace
    from conformance.runs.reproducers.expected import Step

_STEPS_OF_METHOD: Final = 20
"""Number of steps in one method, because a class file limits the code of a method to 64 kB."""
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
        driver: The class that executes steps; the test has it and all classes that it names.
        state: A comment that explains the numbers of the state.
        package: The package of the test.
        loaded: The classes that Kafka loads.
    """

    driver: str
    state: str
    package: str = "org.apache.kafka.storage.internals.log"
    loaded: tuple[str, ...] = ()


_OF_TIERS: Final = ("FailingStorage", "MetadataInMemory")
_LOG: Final = _Form("LogDriver", _LOG_STATE)
_FORMS: Final = {
    "segment": _Form("SegmentDriver", _SEGMENT_STATE),
    "log": _LOG,
    "cleaned": _LOG,
    "tiered": _Form("TieredDriver", _TIERED_STATE, "org.apache.kafka.server.log.remote.metadata.storage", _OF_TIERS),
    "cache": _Form(
        "CacheDriver",
        "1 if the cache is closed; then the number of entries, and of each: id as two numbers, start offset, entries of"
        " the two indexes, size, 1 if it is marked for deletion, 1 if it is deleted.",
    ),
}
MACHINES_WITH_TESTS: Final = tuple(_FORMS)


class _Step(NamedTuple):
    """Step with its expected results.

    Attributes:
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
    template, classes = template_of("TraceTest.java", name, (form.driver, *form.loaded), form.loaded)
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
                    request = None if damages else _request(subject.encode_step(operation))
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
    writer = _StepWriter(subject)
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


class _StepWriter:
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
        compared_text = None if self.subject.ignores_texts or error in self.subject.silent else text
        return f"threw({java_string(error)}, {'null' if compared_text is None else java_string(compared_text)});"


LONGEST: Final = 20_000
"""The maximum number of characters of one literal; a class file limits a literal to 65,535 bytes of modified UTF-8."""
_LONGEST_COMMENT: Final = 400
_ESCAPED: Final = {'"': r"\"", "\\": r"\\"}

_WORDS: Final = (
    "_ abstract assert boolean break byte case catch char class const continue default do double else enum extends"
    " false final finally float for goto if implements import instanceof int interface long native new null package"
    " permits private protected public record return sealed short static strictfp super switch synchronized this throw"
    " throws transient true try var void volatile while yield"
)
_RESERVED: Final = frozenset(_WORDS.split())


def require_class_name(name: str, taken: Collection[str] = ()) -> None:
    """Raise an error unless a test class can have a name.

    Args:
        name: The name of the file without its suffix.
        taken: The names of other classes in the test.

    Raises:
        ToolError: The name is not an identifier of Java in ASCII, or is taken.
    """
    if not name.isidentifier() or not name.isascii() or name in _RESERVED or name in taken:
        raise ToolError(
            f"cannot write {name}.java: {name!r} is not a valid name of a Java class; choose another file name"
        )


def java_string(text: str) -> str:
    """Return a string literal.

    Control characters are octal escapes, because a Unicode escape of a line break is a line break.
    """
    return '"' + "".join(_ESCAPED.get(char) or _encoded(char) for char in text) + '"'


def java_long_string(text: str) -> str:
    """Return an expression for a text that may be too long for one literal."""
    if len(text) <= LONGEST:
        return java_string(text)
    parts = (java_string(text[start : start + LONGEST]) for start in range(0, len(text), LONGEST))
    return f'String.join("", {", ".join(parts)})'


def java_comment(text: str) -> str:
    """Return text for a Java comment of either form: on one line, and truncated if it is long."""
    shown = text if len(text) <= _LONGEST_COMMENT else f"{text[:_LONGEST_COMMENT]}... ({len(text)} characters)"
    return "".join(_in_comment(char) for char in shown.replace("*/", "* /"))


def _in_comment(char: str) -> str:
    """Return a character in a form that is safe in a comment, where a backslash must not begin an escape."""
    return r"\u005c" if char == "\\" else "?" if char < " " or char == "\x7f" else _encoded(char)


def _encoded(char: str) -> str:
    if " " <= char <= "~":
        return char
    if char < "\x80":
        return f"\\{ord(char):03o}"
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


_CLASSES: Final = {"offset": "OffsetIndex", "time": "TimeIndex", "transaction": "TransactionIndex"}
_CLASSES_IN_TEST: Final = (
    "AbortedTxn Arrays Exception File Files HexFormat Integer List Long OffsetIndex OffsetPosition Optional Path String"
    " TempDir Test TimeIndex TimestampOffset TransactionIndex"
)
_TAKEN: Final = frozenset(_CLASSES_IN_TEST.split())
"""The names of other classes in the test, which the test class must not have."""
_TEST: Final = """\
package {package};

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
{imports}import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {title}: Kafka {release}, {count} steps. */
public class {name} {{
    @TempDir
    File dir;

    private {index} index;

    private Path path(String name) {{
        return new File(dir, name).toPath();
    }}

    private static byte[] bytes(String used, int zeros) {{
        byte[] bytes = HexFormat.of().parseHex(used);
        return Arrays.copyOf(bytes, bytes.length + zeros);
    }}

    private byte[] used(String name) throws Exception {{
        byte[] bytes = Files.readAllBytes(path(name));
        int end = bytes.length;
        while (end > 0 && bytes[end - 1] == 0) end--;
        return Arrays.copyOf(bytes, end);
    }}

    @Test
    public void trace() throws Exception {{
{body}
    }}
}}
"""


def java_reproducer(trace: Trace, release: str, implementation: str, name: str) -> str:
    """Return the test class, which asserts every outcome, and the content of a file after each change.

    Of a trace at level must, it asserts what users rely on: entries, results, and that an error is one. The kind of an
    error, and the length and the capacity of a file, are matters of Kafka's classes.

    Raises:
        ToolError: The machine of the trace tests servers, or ``name`` is not the name of a class.
    """
    if trace.machine not in {*KINDS, *MACHINES_WITH_TESTS}:
        choices = ", ".join((*KINDS, *MACHINES_WITH_TESTS))
        raise ToolError(f"no Java test can be written of a trace of the {trace.machine} machine; only of {choices}")
    if implementation != "jvm":
        raise ToolError(f"a Java test is for Kafka's own classes, not for {implementation}; write a .py instead")
    require_class_name(name, _TAKEN)
    if trace.machine not in KINDS:
        return trace_test(trace, release, name)
    writer = _Writer(trace.machine, release, of_users=trace.provenance.get("level") == "must")
    return _TEST.format(
        package=writer.package,
        imports=writer.imports,
        title=java_comment(trace.title or f"Trace {trace.id}"),
        release=release,
        count=len(trace.operations),
        name=name,
        index=_CLASSES[trace.machine],
        body="\n".join(f"        {line}" for line in writer.body(expected_steps(trace, release))),
    )


class _Writer:
    """Writer of Java code for one kind of index in one release.

    Attributes:
        of_users: True to assert only what users rely on.
        scala: True if the classes of the release are written in Scala.
        imports: Additional import statements.
        entry: The class of an entry.
    """

    def __init__(self, kind: str, release: str, *, of_users: bool = False) -> None:
        self.kind = kind
        self.of_users = of_users
        self.dialect = dialect_of(release)
        self.scala = self.dialect.index_classes_are_in_scala
        self.package = "kafka.log" if self.scala else "org.apache.kafka.storage.internals.log"
        self.imports = ""
        if kind == "transaction" and not self.dialect.txn_text_has_version:
            self.imports = "import org.apache.kafka.common.message.AbortedTxn;\n"
        self.entry = {"offset": "OffsetPosition", "time": "TimestampOffset"}.get(kind, "AbortedTxn")

    def body(self, steps: list[Step]) -> list[str]:
        """Return the statements."""
        lines: list[str] = []
        content: bytes | None = None
        for number, step in enumerate(steps, start=1):
            lines.append(f"// {number}. {java_comment(str(step.operation))}")
            if step.operation.name in FILE_OPERATIONS:
                lines.append(self._overwrite(step))
            else:
                lines += self._call(step)
                if step.content != content or step is steps[-1]:
                    lines.append(self._file(step))
            content = step.content
        last = steps[-1].observation if steps else None
        if last is not None and last.state is not None and last.outcome.error is None:
            lines += self._state(last.state)
        return lines

    def _call(self, step: Step) -> list[str]:
        operation, (error, value, _) = step.operation, step.observation.outcome
        if operation.name in _BULK:
            call = _BULK[operation.name](operation.args)
            return [call if error is None else f"assertThrows({self._exception(error)}.class, () -> {{ {call} }});"]
        call = self._expression(operation)
        if error is not None:
            return [f"assertThrows({self._exception(error)}.class, () -> {call});"]
        if operation.name == "collect_aborted":
            complete = f"{call}.isComplete{self._accessor}"
            found = self._java_list(f"{call}.abortedTransactions{self._accessor}")
            text = str(value[1]).lower()
            return [f"assertEquals({self._list(value[0])}, {found});", f"assertEquals({text}, {complete});"]
        if operation.name == "all_aborted":
            return [f"assertEquals({self._list(value)}, {self._java_list(call)});"]
        result = self._result(operation, value)
        return [f"{call};"] if result is None else [f"assertEquals({result}, {call});"]

    def _expression(self, operation: Operation) -> str:
        name, arguments = operation
        if name == "open":
            _, path, base, size, writable = arguments
            file = f"new File(dir, {java_string(path)})"
            inside = f"{_long(base)}, {file}"
            if self.kind != "transaction":
                inside = f"{file}, {_long(base)}, {_int(size)}, {str(writable).lower()}"
            return f"index = new {_CLASSES[self.kind]}({inside})"
        if name == "crash" and not self.dialect.close_trims:  # closeHandler() does not exist
            name = "close"
        return "index." + _CALLS[name](self, arguments)

    def new_entry(self, values: tuple[int, ...]) -> str:
        """Return an expression that creates an entry of Kafka's type."""
        if self.kind == "transaction" and not self.dialect.txn_text_has_version:
            names = ("ProducerId", "FirstOffset", "LastOffset", "LastStableOffset")
            return "new AbortedTxn()" + "".join(f".set{n}({_long(v)})" for n, v in zip(names, values, strict=True))
        return f"new {self.entry}({', '.join(map(self._number, range(len(values)), values))})"

    def _number(self, place: int, value: int) -> str:
        return _int(value) if self.kind == "offset" and place == 1 else _long(value)

    def _result(self, operation: Operation, value: Any) -> str | None:
        name = operation.name
        if name in ("lookup", "entry"):
            return self.new_entry(value)
        if name == "fetch_upper_bound":
            if self.scala:
                return f"scala.Option.apply({'null' if value is None else self.new_entry(value)})"
            return "Optional.empty()" if value is None else f"Optional.of({self.new_entry(value)})"
        return str(value).lower() if isinstance(value, bool) else None

    def _list(self, values: tuple[tuple[int, ...], ...]) -> str:
        return f"List.of({', '.join(map(self.new_entry, values))})"

    def _java_list(self, expression: str) -> str:
        """Return an expression that converts a Scala list to a Java list."""
        return f"scala.jdk.javaapi.CollectionConverters.asJava({expression})" if self.scala else expression

    @property
    def _accessor(self) -> str:
        """The suffix of a field of a result: Java's classes had public fields in some releases."""
        return "()" if self.scala or self.dialect.search_results_are_records else ""

    def _exception(self, kind: str) -> str:
        if self.of_users:
            return "Exception"
        names = [name for name, known in KIND_OF.items() if known == kind]
        ours = [name for name in names if name.startswith(("kafka.", "org.apache.kafka.storage"))]
        if len(ours) == 2:  # the class is in another package since the indexes moved
            names = [name for name in ours if name.startswith("kafka.") == self.scala]
        return names[0]

    def _overwrite(self, step: Step) -> str:
        if step.content is None:
            return f"Files.deleteIfExists(path({java_string(step.path)}));"
        return f"Files.write(path({java_string(step.path)}), {_bytes(step.content)});"

    def _file(self, step: Step) -> str:
        if step.content is None:
            return f"assertEquals(false, Files.exists(path({java_string(step.path)})));"
        if self.of_users:
            return f"assertArrayEquals({_bytes(step.content.rstrip(bytes(1)))}, used({java_string(step.path)}));"
        return f"assertArrayEquals({_bytes(step.content)}, Files.readAllBytes(path({java_string(step.path)})));"

    def _state(self, state: State) -> list[str]:
        if self.kind == "transaction":
            return []
        of_callers = [
            f"assertEquals({state.max_entries}, index.maxEntries());",
            f"assertEquals({str(state.full).lower()}, index.isFull());",
            f"assertEquals({_long(state.length or 0)}, index.length());",
        ]
        return [
            f"assertEquals({state.entries}, index.entries());",
            *([] if self.of_users else of_callers),
            f"assertEquals({_long(state.last[0])}, index.lastOffset());"
            if self.kind == "offset"
            else f"assertEquals({self.new_entry(state.last)}, index.lastEntry());",
        ]


def _long(value: int) -> str:
    return "Long.MIN_VALUE" if value == -(1 << 63) else f"{int(value)}L"


def _int(value: int) -> str:
    return "Integer.MIN_VALUE" if value == -(1 << 31) else str(value)


def _bytes(content: bytes) -> str:
    used, zeros = without_zeros(content)
    return f"bytes({java_long_string(used)}, {zeros})"


def _loop(count: int, call: str) -> str:
    return f"for (int i = 0; i < {count}; i++) index.{call};"


# The Java code of each operation, by its arguments: of a bulk operation a loop, of any other a call of the index.
_BULK: Final[dict[str, Callable[[tuple[Any, ...]], str]]] = {
    "bulk_append": lambda a: _loop(a[4], f"append({_long(a[0])} + i * {_long(a[2])}, {_int(a[1])} + i * {_int(a[3])})"),
    "bulk_maybe_append": lambda a: _loop(
        a[4], f"maybeAppend({_long(a[0])} + i * {_long(a[2])}, {_long(a[1])} + i * {_long(a[3])}, false)"
    ),
}
_CALLS: Final[dict[str, Callable[[_Writer, tuple[Any, ...]], str]]] = {
    "append": lambda _, a: f"append({_long(a[0])}, {_int(a[1])})",
    "maybe_append": lambda _, a: f"maybeAppend({_long(a[0])}, {_long(a[1])}, {str(a[2]).lower()})",
    "append_aborted": lambda writer, a: f"append({writer.new_entry(a)})",
    "lookup": lambda _, a: f"lookup({_long(a[0])})",
    "entry": lambda _, a: f"entry({_int(a[0])})",
    "resize": lambda _, a: f"resize({_int(a[0])})",
    "truncate_to": lambda _, a: f"truncateTo({_long(a[0])})",
    "truncate": lambda *_: "truncate()",
    "trim": lambda *_: "trimToValidSize()",
    "reset": lambda *_: "reset()",
    "flush": lambda *_: "flush()",
    "sanity_check": lambda *_: "sanityCheck()",
    "close": lambda *_: "close()",
    "crash": lambda *_: "closeHandler()",
    "delete": lambda *_: "deleteIfExists()",
    "rename": lambda _, a: f"renameTo(new File(dir, {java_string(a[0])}))",
    "all_aborted": lambda *_: "allAbortedTxns()",
    "collect_aborted": lambda _, a: f"collectAbortedTxns({_long(a[0])}, {_long(a[1])})",
    "fetch_upper_bound": lambda writer, a: f"fetchUpperBoundOffset({writer.new_entry(a[:2])}, {_int(a[2])})",
}


_PACKAGE: Final = re.compile(r"^package ([\w.]+);\n", re.MULTILINE)
_IMPORT: Final = re.compile(r"^import [\w.]+;$", re.MULTILINE)
_IMPORTS: Final = re.compile(r"(?:^import (?!static)[\w.]+;\n)+", re.MULTILINE)
_TOP_LEVEL: Final = re.compile(r"^(?:public )?((?:final |abstract )?class)", re.MULTILINE)
_NOT_CODE: Final = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_WORD: Final = re.compile(r"\b[A-Z]\w+\b")
_DECLARED: Final = re.compile(r"\b(?:class|interface|record) (\w+)")


def source_of(name: str) -> str:
    """Return the source of a class of the harness, or of one that is loaded with Kafka's classes."""
    return next(
        source.read_text("utf-8") for each in (SOURCES, BESIDE_KAFKA) if (source := each / f"{name}.java").is_file()
    )


def template_of(file: str, test: str, names: Sequence[str], public: Iterable[str] = ()) -> tuple[str, str]:
    """Return a template of a test with the imports that classes of the harness need, and the classes as nested ones.

    Args:
        file: The file of the template.
        test: The name of the test class.
        names: The classes of the harness; the test has these and all others that they name, unless the template has
            such a class in a simpler form.
        public: Those that classes of other packages use.

    Raises:
        ToolError: Another class in the test has the name of the test class.
    """
    template = (files(__package__) / "templates" / file).read_text("utf-8")
    imports, classes = _nested(_needed(names, set(_DECLARED.findall(template))), public)
    if re.search(rf"\b(class|interface|record) {test}\b|\.{test};", "\n".join((template, classes, *imports))):
        raise ToolError(f"cannot write {test}.java: the test needs another class {test}; choose another file name")
    return _with_imports(template, imports), classes


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a template with a value for each ``@name@``."""
    return re.sub(r"@(\w+)@", lambda found: values[found[1]], template)


def _nested(names: Sequence[str], public: Iterable[str]) -> tuple[list[str], str]:
    """Return the imports of classes of the harness, and the classes as nested ones.

    The name of a class that Kafka loads is replaced by the name of its nested class.
    """
    imports: set[str] = set()
    classes = []
    sources = {name: source_of(name) for name in names}
    full = {f'"{_PACKAGE.findall(source)[0]}.{name}"': name for name, source in sources.items()}
    for name, source in sources.items():
        imports.update(_IMPORT.findall(source))
        body = _PACKAGE.sub("", _IMPORT.sub("", source), count=1).strip()
        access = "public" if name in public else "private"
        inner = _TOP_LEVEL.sub(rf"{access} static \1", body, count=1)
        for literal, loaded in full.items():
            inner = inner.replace(literal, f"{loaded}.class.getName()")
        classes.append("\n".join(f"    {line}" if line else "" for line in inner.split("\n")))
    return sorted(imports), "\n\n".join(classes)


def _with_imports(text: str, imports: Iterable[str]) -> str:
    """Return a template with the imports of nested classes among its own, sorted."""
    found = _IMPORTS.search(text)
    lines = sorted({*imports, *(found[0].splitlines() if found else ())})
    return _IMPORTS.sub("".join(f"{line}\n" for line in lines), text, count=1)


def _needed(names: Iterable[str], given: Collection[str]) -> list[str]:
    """Return classes of the harness and all others that their code names, in alphabetical order, without given ones."""
    found, left = set[str](), list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += _WORD.findall(_NOT_CODE.sub("", source_of(name)))
            left = [each for each in left if each in _sources() and each not in given]
    return sorted(found)


@cache
def _sources() -> frozenset[str]:
    return frozenset(source.name.removesuffix(".java") for source in SOURCES.iterdir())
