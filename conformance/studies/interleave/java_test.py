"""Export of an interleaving, an operation that others interrupt, as a JUnit 5 test of Kafka's own classes.

The test is one file. It contains the classes of the harness that execute the operations and switch between two threads
at given points, and that insert these points into Kafka's class files. Every run of the test therefore switches at the
recorded point.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.errors import ToolError
from conformance.implementations.jvm.interruptible import PAUSABLE
from conformance.runs.reproducers.java import (
    fill,
    java_comment,
    java_string,
    require_class_name,
    source_of,
    template_of,
)
from conformance.studies.interleave.interrupter import batches_of
from conformance.studies.interleave.trace import case_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.studies.interleave.trace import Interleaving


def interleaving_test(content: Interleaving, path: Path) -> str:
    """Return the source of the test of an interleaving.

    Args:
        content: the content of the interleaving's file.
        path: the file of the test; the class has its name.

    Raises:
        ToolError: the file is no Java file, or its name cannot be the name of the class.
    """
    name = path.stem
    if path.suffix != ".java":
        raise ToolError(f"--export writes .java, not {path.name!r}")
    require_class_name(name)
    case, schedule = case_of(content)
    target = _target(case.kind)
    names = ("Interruptions", "Interruptible", *re.findall(r"new (\w+)\(", target))
    template, classes = template_of("InterleavingTest.java", name, names, public=("Switch",))
    others = case.others.split(";")
    batches = batches_of(case.kind, (*case.setup, case.first, *others))
    values = {
        "title": java_comment(f"{content.clause or 'Interleaving'}, {case.names[0]} during {case.names[1]}"),
        "release": java_comment(content.release),
        "name": name,
        "setup": _strings(case.setup),
        "first": java_string(case.first),
        "others": _strings(others),
        "where": java_comment(content.where),
        "stop": str(schedule.stop),
        "back": str(schedule.back),
        "batches": "\n".join(
            f'        batches.put({java_string(each)}, HexFormat.of().parseHex("{data.hex()}"));'
            for each, data in batches.items()
        ),
        "target": target,
        "changed": java_string(PAUSABLE.pattern),
        "classes": classes,
    }
    return fill(template, values)


def _target(kind: str) -> str:
    """Return the Java expression that creates an object of a kind, on which the operations are called."""
    found = re.search(rf'case [^>]*"{kind}"[^>]*-> (new [^;]+);', source_of("Targets"))
    if found is None:
        raise ToolError(f"--export does not support interleavings of the {kind} machine")
    return found[1]


def _strings(texts: Iterable[str]) -> str:
    return ", ".join(map(java_string, texts))
