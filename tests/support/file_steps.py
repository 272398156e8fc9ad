"""Steps of the reference on disk: a look after each change of a file, as another process can have one.

A broker changes its files one after the other, and a look from outside can fall between any two changes. Here the
classes of ``kidx.log`` do the same changes in the same order, and a callback runs after each of them. The fields of an
index entry are two steps, as Java writes them; an append to a log is two steps, because a process can see half of it.
In a preallocated log it is one: half of it is a batch with a wrong checksum, but only until the call returns.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kidx.index.mapped_buffer import MappedBuffer

if TYPE_CHECKING:
    import struct

    import pytest

Look = Callable[[str], None]
"""Function that is called after each step with its description."""

_CHANGING: Final = ("ftruncate", "truncate", "replace", "rename", "unlink", "mkdir", "rmdir", "utime", "write")
_FIELD_BYTES: Final = 34
"""Size up to which a write is never seen in part: an entry of a ``.txnindex``."""


class _Steps:
    """The functions that change files, each followed by a look; what the look itself does is no step."""

    def __init__(self, look: Look, *, halves: bool) -> None:
        self._look, self._halves = look, halves
        self._is_looking = False
        self._open, self._pwrite, self._put = os.open, os.pwrite, MappedBuffer.put

    def _done(self, *words: Any) -> None:
        if self._is_looking:
            return
        self._is_looking = True
        try:
            self._look(" ".join(Path(word).name for word in words if isinstance(word, (str, os.PathLike))))
        finally:
            self._is_looking = False

    def after(self, name: str) -> Callable[..., Any]:
        """Return a function of ``os`` that is followed by a look."""
        original = getattr(os, name)

        def change(*arguments: Any, **options: Any) -> Any:
            result = original(*arguments, **options)
            self._done(name, *arguments[:2])
            return result

        return change

    def open(self, path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        """Open a file as ``os.open``; the creation of a file is a step."""
        is_new = bool(flags & os.O_CREAT) and not Path(path).exists()
        descriptor = self._open(path, flags, *arguments, **options)
        if is_new:
            self._done("create", path)
        return descriptor

    def pwrite(self, descriptor: int, data: Any, position: int) -> int:
        """Write as ``os.pwrite``, half of a batch first."""
        if self._halves and len(data) > _FIELD_BYTES and not self._is_looking:
            self._pwrite(descriptor, data[: len(data) // 2], position)
            self._done("write half of a batch")
        written = self._pwrite(descriptor, data, position)
        self._done("write")
        return written

    def put(self, buffer: MappedBuffer, codec: struct.Struct, value: int) -> None:
        """Write one field of an index entry."""
        self._put(buffer, codec, value)
        self._done("put", buffer.name)

    def put_entry(
        self, buffer: MappedBuffer, codecs: tuple[struct.Struct, ...], _: struct.Struct, *values: int
    ) -> None:
        """Write the fields of an index entry one after the other."""
        for codec, value in zip(codecs, values, strict=True):
            self.put(buffer, codec, value)


@contextlib.contextmanager
def stepping(patch: pytest.MonkeyPatch, look: Look, *, halves: bool = True) -> Iterator[None]:
    """Call ``look`` in this block after each change of a file by ``kidx.log``.

    Args:
        patch: fixture that undoes the changes.
        look: callback.
        halves: True if half a batch is a step, too.
    """
    steps = _Steps(look, halves=halves)
    with patch.context() as patched:
        for name in _CHANGING:
            patched.setattr(os, name, steps.after(name))
        patched.setattr(os, "open", steps.open)
        patched.setattr(os, "pwrite", steps.pwrite)
        # A function receives the buffer as its first argument; a bound method would not.
        patched.setattr(MappedBuffer, "put", lambda *arguments: steps.put(*arguments))  # noqa: PLW0108
        patched.setattr(MappedBuffer, "put_entry", lambda *arguments: steps.put_entry(*arguments))  # noqa: PLW0108
        yield
