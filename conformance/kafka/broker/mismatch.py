"""What a check of a broker or its files found to be wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something that is not as it must be: the clause, the file or the question, and both sides in words."""

    clause: str
    subject: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"{self.clause} {self.subject}: expected {self.expected}, got {self.actual}"
