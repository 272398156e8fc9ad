"""Standard output and errors whose reader may exit, as ``head`` does: the command then ends quietly."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any


class ReaderGoneError(BaseException):
    """Write to a pipe whose reader has exited.

    It is not an OSError, which is an error of the files that a command reads, and is reported as such.
    """


class _Pipe(io.FileIO):
    """Pipe to the reader of standard output or of errors."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            # Python writes the rest of its buffer when it exits, so the pipe is replaced.
            with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 -- not a path of the user
                os.dup2(nowhere.fileno(), self.fileno())
            raise ReaderGoneError from None


@contextlib.contextmanager
def watched_output() -> Iterator[None]:
    """Raise :class:`ReaderGoneError` inside the block for writes to a pipe without a reader."""
    names = [name for name in ("stdout", "stderr") if _is_pipe(getattr(sys, name))]
    before = {name: getattr(sys, name) for name in names}
    for name, stream in before.items():
        stream.flush()
        setattr(sys, name, _watched(stream))
    try:
        yield
    finally:
        for name, stream in before.items():
            watched, now = getattr(sys, name), stream
            setattr(sys, name, now)
            with contextlib.suppress(ReaderGoneError):
                watched.flush()


def _watched(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    raw = _Pipe(stream.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        newline="\n",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _is_pipe(stream: object) -> bool:
    if not isinstance(stream, io.TextIOWrapper):
        return False
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
