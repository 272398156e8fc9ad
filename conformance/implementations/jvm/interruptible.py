"""Classes of a release whose operations can be paused before every access to a field, a buffer or a file.

While an operation is paused, other operations run: it is interrupted by them (``Switch.java``). This has nothing to do
with ``Thread.interrupt``.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.implementations.jvm.bytecode import (
    asm_jars,
    class_file,
    jars_of,
    kafkas_classes,
    own_classes,
    read_class,
    write_class,
)
from conformance.implementations.jvm.driver import compiled_classes
from conformance.implementations.jvm.virtual_machine import class_loader, java_bytes, start_jvm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress

_LOG: Final = "(?:kafka/log|org/apache/kafka/storage/internals/log)"
_RECORDS: Final = "org/apache/kafka/common/record/(?:internal/)?"
_INDEX_CLASSES: Final = "AbstractIndex|OffsetIndex|TimeIndex|TransactionIndex|LazyIndex|LogSegment|RemoteIndexCache"
_FILE_CLASSES: Final = (
    rf"{_RECORDS}(?:FileRecords|FileLogInputStream)(?:\$.*)?\.class"
    r"|(?:kafka/utils/CoreUtils\$?|org/apache/kafka/server/util/LockUtils)\.class"
)
_FOR_INDEXES: Final = re.compile(rf"{_LOG}/(?:{_INDEX_CLASSES})(?:\$.*)?\.class|{_FILE_CLASSES}")
PAUSABLE: Final = re.compile(
    rf"{_LOG}/(?:{_INDEX_CLASSES}|Log|UnifiedLog|LocalLog|LogSegments)(?:\$.*)?\.class|{_FILE_CLASSES}"
)
"""The class files that are instrumented, so that their operations can be paused."""
_FOR_LOGS: Final = re.compile(rf"{_LOG}/.*\.class|{_RECORDS}.*\.class|{_FILE_CLASSES}")
"""The class files that determine the interleavings of logs; ``_FOR_INDEXES``: of everything else."""


def interruptible_classes(
    release: str,
    directory: Path,
    progress: Progress | None = None,
    build: Build | None = None,
    change: Callable[[Any], bool] | None = None,
) -> Any:
    """Return a class loader of a release's classes, instrumented so that their operations can be paused.

    Args:
        release: The release.
        directory: An empty directory for the instrumented classes.
        progress: A callback that receives the progress of downloads.
        build: The build whose classes are used instead.
        change: A function that plants a race in a class (a ``ClassNode``), and returns True if it changed the class.

    Raises:
        ToolError: Java, the jars or all of the classes are missing, or no class was changed.
    """
    jars = jars_of(release, progress, build)
    classes = list(kafkas_classes(jars, PAUSABLE))
    if not classes:
        raise ToolError(f"Kafka {release} has none of the classes whose operations can be paused")
    changed = False
    for name, data in (*classes, *own_classes("Racy.class")):  # Racy is a counter with a race that must be found
        original = data
        if change is not None:
            node = read_class(data)
            changed |= change(node)
            original = class_file(node)
        write_class(directory, name, bytes(_interruptible().of(java_bytes(original))))
    if change is not None and not changed:
        raise ToolError(f"cannot plant a race in Kafka {release}: no class has the code to be changed")
    for name, data in own_classes("Switch*.class"):
        write_class(directory, name, data)
    return class_loader([directory, *jars])


def interruptible_digest(release: str, progress: Progress | None = None, *, logs: bool = False) -> str:
    """Return a hash of the classes whose interleavings are tested; releases with equal hashes need only one run.

    Args:
        release: The release.
        progress: A callback that receives the progress of downloads.
        logs: True for the classes of logs and all classes that they use; False for the classes of indexes, segments and
            the remote index cache.
    """
    digest = hashlib.sha256()
    for name, data in kafkas_classes(jars_of(release, progress), _FOR_LOGS if logs else _FOR_INDEXES):
        digest.update(name.encode() + b"\0" + data)
    return digest.hexdigest()


@cache
def _interruptible() -> Any:
    """Return our Java class that inserts a call of ``Switch`` before every access to a field, a buffer or a file."""
    loader = class_loader([compiled_classes(), *asm_jars()])
    return start_jvm().JClass("conformance.Interruptible", loader=loader)
