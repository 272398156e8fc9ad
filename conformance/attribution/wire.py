"""Clauses that a step of the wire machine exercises: the answers to its queries decide which."""

from __future__ import annotations

from typing import Final

_IDS: Final = (
    "LO-1 LO-2b LO-3a LO-4 LO-5 LO-6 LO-9 LO-10 LO-12 LO-13 LO-14 LO-15b LO-15c LO-20 LO-23 LO-24 LO-25 LO-26 LO-27"
    " LG-1 LG-12 LG-20 LG-24 FE-1 FE-2 FE-3"
)
CLAUSES: Final = frozenset(_IDS.split())
"""All clauses that the wire machine can exercise."""
