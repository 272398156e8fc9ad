"""Coverage of Kafka's own bytecode by JaCoCo, for each release.

The measured classes are instrumented before they are loaded, and come first on the path of a separate class loader.
They find JaCoCo's runtime through ``java.util.logging``, which all class loaders share.
"""

from __future__ import annotations

import re
import zipfile
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.implementations.jvm.virtual_machine import class_loader, java_bytes, start_jvm
from conformance.kafka.jar_fetch import class_path, tool_jar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress
    from conformance.kafka.releases import Group

TOOLS: Final = ("jacoco", "asm", "asm-commons", "asm-tree")
"""Names of the tools (as in :mod:`conformance.kafka`) whose jars measure coverage."""
_LOG: Final = "(?:kafka/log|org/apache/kafka/storage/internals/log)/"
_OFFSET: Final = f"{_LOG}(?:AbstractIndex|OffsetIndex|OffsetPosition)"
_TIME: Final = f"{_LOG}(?:AbstractIndex|TimeIndex|TimestampOffset)"
_TRANSACTION: Final = f"{_LOG}(?:TransactionIndex|AbortedTxn|TxnIndexSearchResult)"
_SEGMENT: Final = f"{_LOG}(?:LogSegment|LazyIndex|RollParams)"
_RECORDS: Final = (
    "org/apache/kafka/common/record/(?:internal/)?(?:AbstractRecords|FileRecords|FileLogInputStream|RecordBatchIterator"
    "|DefaultRecordBatch|DefaultRecord|AbstractLegacyRecordBatch|LegacyRecord|ByteBufferLogInputStream"
    "|EndTransactionMarker|ControlRecordType)"
)
INSTRUMENTED: Final = {
    "offset": _OFFSET,
    "time": _TIME,
    "transaction": _TRANSACTION,
    "segment": f"{_OFFSET}|{_TIME}|{_TRANSACTION}|{_SEGMENT}|{_RECORDS}",
}
"""Instrumented classes, including their inner classes: for each kind of index, and for segments."""


class ClassCoverage(NamedTuple):
    """Coverage of one class.

    Attributes:
        lines: The number of reached lines, and of all lines.
        branches: The number of reached branches, and of all branches; an ``if`` has two.
    """

    name: str
    lines: tuple[int, int]
    branches: tuple[int, int]


class KafkaCoverage:
    """Probes of one release's classes.

    Args:
        kind: A key of :data:`INSTRUMENTED`.
        group: The group of the release's jars.
        directory: An empty directory for instrumented classes.
        progress: A callback that receives the progress of downloads.
        build: The build whose classes are used instead.

    Attributes:
        loader: The loader of the instrumented classes, and of the release's other classes.

    Raises:
        ToolError: Java or the jars are missing.
    """

    def __init__(
        self,
        release: str,
        kind: str,
        group: Group,
        directory: Path,
        progress: Progress | None = None,
        build: Build | None = None,
    ) -> None:
        self._jpype = start_jvm()
        self._tools = class_loader([tool_jar(name, progress=progress) for name in TOOLS])
        self._runtime = self._java("runtime.LoggerRuntime")()
        self._data = self._java("runtime.RuntimeData")()
        self._runtime.startup(self._data)
        self._probes: dict[int, Any] = {}
        self._classes: dict[str, bytes] = {}
        jars = class_path(release, group, progress=progress) if build is None else list(build.jars_without_logging)
        self._instrument(jars, re.compile(rf"(?:{INSTRUMENTED[kind]})(?:\$.*)?\.class"), directory)
        self.loader = class_loader([directory, *jars])

    def _java(self, name: str) -> Any:
        return self._jpype.JClass(f"org.jacoco.core.{name}", loader=self._tools)

    def _instrument(self, jars: Sequence[Path], wanted: re.Pattern[str], directory: Path) -> None:
        instrumenter = self._java("instr.Instrumenter")(self._runtime)
        for jar in jars:
            with zipfile.ZipFile(jar) as archive:
                for name in sorted(filter(wanted.fullmatch, archive.namelist())):
                    if name in self._classes:
                        continue
                    self._classes[name] = archive.read(name)
                    path = directory / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(bytes(instrumenter.instrument(java_bytes(self._classes[name]), name)))

    def probes(self) -> list[Any]:
        """Return an array of booleans for each class that has been used; arrays of new classes are added at the end."""
        for data in self._store().getContents():
            self._probes.setdefault(int(data.getId()), data.getProbes())
        return list(self._probes.values())

    def _store(self) -> Any:
        store = self._java("data.ExecutionDataStore")()
        self._data.collect(store, self._java("data.SessionInfoStore")(), False)
        return store

    def classes(self) -> list[ClassCoverage]:
        """Return the coverage of each class that has line numbers, by name."""
        builder = self._java("analysis.CoverageBuilder")()
        analyzer = self._java("analysis.Analyzer")(self._store(), builder)
        for name, data in self._classes.items():
            analyzer.analyzeClass(java_bytes(data), name)
        found = []
        for each in builder.getClasses():
            lines, branches = each.getLineCounter(), each.getBranchCounter()
            found.append(
                ClassCoverage(
                    str(each.getName()).replace("/", "."),
                    (int(lines.getCoveredCount()), int(lines.getTotalCount())),
                    (int(branches.getCoveredCount()), int(branches.getTotalCount())),
                )
            )
        return sorted(each for each in found if each.lines[1])

    def close(self) -> None:
        """End JaCoCo's runtime; then no instrumented class can be loaded."""
        self._runtime.shutdown()
        self.loader.close()
