"""What a check of a corpus finds."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """Something that is not as it must be: the clause, the file or question, and what is wrong in words."""

    clause: str
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.clause} {self.subject}: {self.message}"
