"""Export of a trace about an index file as a JUnit 5 test of Kafka's own class, suitable for a ticket.

The test is in the package of the class that it tests, like Kafka's own tests, and depends on no code of this project.
Up to 3.4, the classes are Scala classes in ``kafka.log``; from 3.5 on, they are Java classes. Accessors of results
differ, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.implementations.jvm.exceptions import KIND_OF
from conformance.operations import FILE_OPERATIONS, KINDS
from conformance.runs.reproducers.expected import expected_steps, without_zeros
from conformance.runs.reproducers.java_text import java_comment, java_long_string, java_string, require_class_name
from conformance.runs.reproducers.java_trace import MACHINES_WITH_TESTS, trace_test
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from conformance.operations import Operation, State
    from conformance.operations.trace import Trace
    from conformance.runs.reproducers.expected import Step

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
    return "Long.MIN_VALUE" if value == -(1 << 63) else f"{value}L"


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
