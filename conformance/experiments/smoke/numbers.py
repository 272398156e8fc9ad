"""Check that numbers reach the adapter and return unchanged, which fails with JSON libraries that use doubles."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.experiments.smoke.kinds import OF_KIND, CheckFailedError, NotJudgedError, expect_ok, open_new
from conformance.implementations.process.line_process import LineProcessError
from conformance.operations import State
from kidx.java_numbers import LONG_MAX

if TYPE_CHECKING:
    from conformance.experiments.smoke.session import AdapterSession

FIRST_LOST: Final = (1 << 53) + 1
"""Smallest positive integer that a double cannot represent; a double returns the preceding integer."""
_FRACTION: Final = re.compile(r"\d(?:\.\d|[eE][+-]?\d)")
_DOUBLES: Final = "It looks as if your JSON library uses doubles"
_HOW: Final = "Read and write JSON numbers as integers of 64 bits, not as doubles."


def keeps_long_numbers(kind: str, session: AdapterSession, _: Path) -> None:
    """Check that an index returns small numbers, and numbers that doubles cannot represent.

    The largest long alone does not suffice: the nearest double becomes the largest long again if conversions saturate.
    """
    if 7 not in _coming_back(session, kind, 7):
        raise NotJudgedError(
            "A small number is returned wrong, so large ones were not checked; `conformance run` reports this."
        )
    for key in (LONG_MAX, FIRST_LOST):
        session.ask("close")
        try:
            found = _coming_back(session, kind, key)
        except LineProcessError:
            if _FRACTION.search(session.came):
                raise CheckFailedError(f"{_DOUBLES}, and writes them. {_HOW}") from None
            raise
        if key not in found:
            raise CheckFailedError(f"{_lost(key, found)} {_HOW}")


def _lost(key: int, found: list[int]) -> str:
    for number in found:
        if number in {int(float(key)), int(math.nextafter(float(key), 0))}:
            return f"{_DOUBLES}: {key} comes back as {number}."
    return f"7 comes back, {key} does not."


def _coming_back(session: AdapterSession, kind: str, key: int) -> list[int]:
    """Write a number to a new index; return every number in the replies."""
    open_new(session, kind, str(key), OF_KIND[kind].base_of(key))
    expect_ok(session.ask(*OF_KIND[kind].append(key)), f"Appending {key}")
    outcome = session.ask(*OF_KIND[kind].read(key))
    found = list(_numbers(outcome.value))
    if isinstance(state := session.state(), State):
        found += state.last
    return found


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, tuple):
        for item in value:
            yield from _numbers(item)
    elif value is not None:
        yield value
