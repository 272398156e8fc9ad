"""Files of results that are added as they come, so that a run that ends early loses nothing and can be continued."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import msgspec

from conformance.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

Header = TypeVar("Header", bound=msgspec.Struct)
Line = TypeVar("Line", bound=msgspec.Struct)


class ResultFormat(NamedTuple):
    """Format of a file of results.

    Attributes:
        header: structure of the first line.
        line: structure of the other lines.
        results: what the lines are, for messages.
        command: command that writes them.
    """

    header: Any
    line: Any
    results: str
    command: str


class ResultFile(Generic[Header, Line]):
    """File of results, one JSON object per line.

    Args:
        path: the file; it is created if it is missing.
        header: what the results depend on.

    Attributes:
        known: the results in the file when it was opened.

    Raises:
        ToolError: the file cannot be read or written, or its results depend on something else.
    """

    def __init__(self, path: Path, header: Header, form: ResultFormat) -> None:
        self.known: list[Line] = []
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
            whole = [line for line in lines if line.endswith(b"\n")]  # the last one may have been cut off
            if whole:
                known = msgspec.json.decode(whole[0], type=form.header)
                if known != header:
                    differing = [
                        name for name in header.__struct_fields__ if getattr(known, name) != getattr(header, name)
                    ]
                    raise ToolError(
                        f"{path} has {form.results} of another run: {', '.join(differing)} differs; choose another file"
                    )
                self.known = [msgspec.json.decode(line, type=form.line) for line in whole[1:]]
            self._file = path.open("r+b" if lines else "wb")
            self._file.truncate(sum(map(len, whole)))
            self._file.seek(0, 2)
            if not whole:
                self._write(header)
        except OSError as error:
            raise ToolError(f"cannot use the file of {form.results} {path}: {error.strerror or error}") from error
        except msgspec.MsgspecError as error:
            raise ToolError(f"{path} is no file of {form.results} of conformance {form.command}: {error}") from error

    def _write(self, line: msgspec.Struct) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()

    def add(self, result: Line) -> None:
        """Add a result."""
        self._write(result)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, where: TracebackType | None
    ) -> None:
        self._file.close()
