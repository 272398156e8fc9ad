"""``replay --export``: a trace as a standalone program, in Python or as a JUnit test for Kafka's own classes.

The expected result of each step comes from the reference, in the dialect of the release.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.errors import ToolError
from conformance.runs.reproducers.java import java_reproducer
from conformance.runs.reproducers.python import python_reproducer

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.operations.trace import Trace

__all__ = ["render_reproducer", "write_reproducer", "write_text"]

_LANGUAGES: dict[str, Callable[[Trace, str, str, str], str]] = {".py": python_reproducer, ".java": java_reproducer}


def render_reproducer(path: Path, trace: Trace, release: str, implementation: str) -> str:
    """Return a trace as a program, without writing it.

    Args:
        path: ``.py`` for Python, ``.java`` for a JUnit test; a Java class has the name of its file.
        release: The release of the dialect and the classes.
        implementation: The default implementation of the Python program, such as ``"jvm"``.

    Raises:
        ToolError: The file has another suffix, or no such program can be written for the trace.
    """
    language = _LANGUAGES.get(path.suffix)
    if language is None:
        raise ToolError(f"--export writes .py or .java, not {path.name!r}")
    return language(trace, release, implementation, path.stem)


def write_text(path: Path, text: str) -> None:
    """Write a program to a file.

    Raises:
        ToolError: The file cannot be written.
    """
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise ToolError(f"cannot write the script {path}: {error.strerror or error}") from error


def write_reproducer(path: Path, trace: Trace, release: str, implementation: str) -> None:
    """Write a trace as a program; see :func:`render_reproducer`.

    Raises:
        ToolError: As in :func:`render_reproducer` and :func:`write_text`.
    """
    write_text(path, render_reproducer(path, trace, release, implementation))
