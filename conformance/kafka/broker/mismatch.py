"""Mismatch found by a check of a broker or its files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Violation of a clause: the clause, the file or the query, and the expected and the actual result as text."""

    clause: str
    subject: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"{self.clause} {self.subject}: expected {self.expected}, got {self.actual}"
