"""Error of a broker; the message always names the broker's log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

TAIL_LINES = 30
_CAUSE_LINES = 12
_MAX_LINE_LENGTH = 300
# A start at level INFO writes about 200 KiB.
_MAX_BYTES = 4 << 20
_ERROR_MARKS = (" FATAL ", " ERROR ", "Exception: ", "Error: ")


class BrokerError(ToolError):
    """Broker that did not start, did not stop, or died; the message is one line and names the broker's log.

    The last lines of the log are in ``tail``, and in a note of the exception, so that a traceback shows them.
    """

    def __init__(self, message: str, log: Path, *, since: int = 0) -> None:
        self.log = log
        lines = _lines_of(log, since)
        cause = next((n for n, line in enumerate(lines) if any(mark in line for mark in _ERROR_MARKS)), None)
        self.tail = "\n".join(_excerpt(lines, cause))
        reason = "" if cause is None else f" ({lines[cause].strip()[:_MAX_LINE_LENGTH]})"
        super().__init__(f"{message}{reason}: see {log}")
        if self.tail:
            self.add_note(f"From {log}:\n{self.tail}")


def _lines_of(log: Path, since: int) -> list[str]:
    """Return the lines of a log after its first ``since`` bytes; empty if the log cannot be read."""
    try:
        with log.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(since, end - _MAX_BYTES))
            return file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _excerpt(lines: list[str], cause: int | None) -> list[str]:
    """Return the last lines, and before them the first error: a failing broker writes many lines when it shuts down."""
    start = max(0, len(lines) - TAIL_LINES)
    shown = [] if cause is None or cause >= start else [*lines[cause : min(cause + _CAUSE_LINES, start)], "[…]"]
    return [line[:_MAX_LINE_LENGTH] for line in shown + lines[start:]]
