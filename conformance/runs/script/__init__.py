"""``replay --export``: a trace as a program that stands alone, in Python or as a JUnit test for Kafka's own classes.

What is expected at each step is what the reference does there, in the dialect of the release.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.errors import ToolError
from conformance.runs.script.java import java_script
from conformance.runs.script.python import python_script

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.operations.trace import Trace

__all__ = ["java_script", "python_script", "script_of", "write_script", "write_text"]

_LANGUAGES: dict[str, Callable[[Trace, str, str, str], str]] = {".py": python_script, ".java": java_script}


def script_of(path: Path, trace: Trace, release: str, implementation: str) -> str:
    """A trace as a program; nothing is written.

    Args:
        path: ``.py`` for Python, ``.java`` for a JUnit test; a Java class has the name of its file.
        trace: what it performs.
        release: in whose dialect, and of whose classes.
        implementation: what the Python program drives if it is not told otherwise, such as ``"jvm"``.

    Raises:
        ToolError: the file has another suffix, or the trace is none that such a program can be written of.
    """
    language = _LANGUAGES.get(path.suffix)
    if language is None:
        raise ToolError(f"--export writes .py or .java, not {path.name!r}")
    return language(trace, release, implementation, path.stem)


def write_text(path: Path, text: str) -> None:
    """Writes a program.

    Raises:
        ToolError: the file cannot be written.
    """
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise ToolError(f"the script {path} cannot be written: {error.strerror or error}") from error


def write_script(path: Path, trace: Trace, release: str, implementation: str) -> None:
    """Writes a trace as a program; see :func:`script_of`.

    Raises:
        ToolError: as :func:`script_of` and :func:`write_text`.
    """
    write_text(path, script_of(path, trace, release, implementation))
