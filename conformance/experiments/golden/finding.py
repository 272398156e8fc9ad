"""Finding of a check of a golden corpus, the recorded files and lookup results of a real broker."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """Violation of a clause: the clause, the file or lookup, and a description."""

    clause: str
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.clause} {self.subject}: {self.message}"
