"""A subject that is a server: started, asked for its address, and always ended."""

from __future__ import annotations

import queue
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Final

from conformance.errors import ToolError
from conformance.implementations.subject.build import build
from conformance.kafka.client.connection import Address

if TYPE_CHECKING:
    from conformance.subjects import Subject

READY: Final = 30.0
"""Seconds until it has to say where it listens."""
END: Final = 5.0
_LONGEST: Final = 300


@contextmanager
def started(subject: Subject) -> Iterator[Address]:
    """Build it if need be, start it, and give its address; its input ends with the block.

    Raises:
        ToolError: it cannot be built or started, or does not say where it listens.
    """
    out = build(subject)
    command = [word.replace("{out}", str(out)) for word in subject.start]
    try:
        process = subprocess.Popen(  # noqa: S603 -- of the package's own catalogue
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        raise ToolError(f"the subject {subject.name} cannot be started: {error}") from error
    assert process.stdout is not None
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    reader = threading.Thread(target=_read, args=(process.stdout, lines), daemon=True)
    reader.start()
    try:
        yield Address.parse(_first_line(lines, subject), f"what the subject {subject.name} prints first")
    finally:
        _end(process)
        reader.join(END)


def _read(output: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    """Takes what it says first; everything later is read and dropped, so that it never waits for a reader."""
    with output, suppress(OSError, ValueError):
        lines.put(output.readline(_LONGEST))
        while output.read(1 << 16):
            pass


def _first_line(lines: queue.SimpleQueue[bytes], subject: Subject) -> str:
    try:
        line = lines.get(timeout=READY)
    except queue.Empty:
        raise ToolError(f"the subject {subject.name} does not say where it listens within {READY:g} s") from None
    if not line:
        raise ToolError(f"the subject {subject.name} has ended before it said where it listens")
    return line.decode("utf-8", "replace").strip()


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
