"""How a broker can fail us, always with its log named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

TAIL_LINES = 30
_CAUSE_LINES = 12
_LONGEST_LINE = 300
# A start at level INFO writes some 200 KiB.
_MOST_BYTES = 4 << 20
_COMPLAINTS = (" FATAL ", " ERROR ", "Exception: ", "Error: ")


class BrokerError(ToolError):
    """A broker did not start, did not stop, or died; one line that names its log.

    What the log ends with is in ``tail``, and a note of the exception, so that a traceback shows it.
    """

    def __init__(self, message: str, log: Path, *, since: int = 0) -> None:
        self.log = log
        lines = _lines_of(log, since)
        cause = next((n for n, line in enumerate(lines) if any(mark in line for mark in _COMPLAINTS)), None)
        self.tail = "\n".join(_excerpt(lines, cause))
        reason = "" if cause is None else f" ({lines[cause].strip()[:_LONGEST_LINE]})"
        super().__init__(f"{message}{reason}: see {log}")
        if self.tail:
            self.add_note(f"From {log}:\n{self.tail}")


def _lines_of(log: Path, since: int) -> list[str]:
    """Return the lines that a log got after its first ``since`` bytes; none if it cannot be read."""
    try:
        with log.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(since, end - _MOST_BYTES))
            return file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _excerpt(lines: list[str], cause: int | None) -> list[str]:
    """Return the last lines, and before them the first complaint: a broker that fails shuts down at length."""
    start = max(0, len(lines) - TAIL_LINES)
    shown = [] if cause is None or cause >= start else [*lines[cause : min(cause + _CAUSE_LINES, start)], "[…]"]
    return [line[:_LONGEST_LINE] for line in shown + lines[start:]]
