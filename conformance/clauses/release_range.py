"""Ranges of Kafka releases, as clauses and expectations write them.

A range is a list of spans, separated by commas; a release is in the range if it is in one of them.

=================== ==================================================
``3.9.2``           this release
``2.4.0..3.4.1``    from the first to the last, both included
``4.0.1..``         this one and everything later
``>=3.5.0``         the same; also ``>``, ``<`` and ``<=``
=================== ==================================================

Releases are ordered by version, which is not how behaviour spread: 3.9.2 came after 4.0.0 and has what 4.0.0 lacks. A
range that means "the rule that arrived in 3.9.2 and 4.0.1" therefore has to say ``3.9.2, 4.0.1..``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from conformance.errors import ToolError
from kidx.dialect import version_of

_RELEASE: Final = r"\d+\.\d+\.\d+"
_SPAN: Final = re.compile(
    rf"(?P<operator>>=|<=|>|<)\s*(?P<bound>{_RELEASE})|(?P<low>{_RELEASE})(?:(?P<dots>\.\.)(?P<high>{_RELEASE})?)?"
)

Version = tuple[int, ...]


class ReleaseRangeError(ToolError, ValueError):
    """A range is not written as this module says."""


class _Span(NamedTuple):
    """Versions between two bounds; None is no bound."""

    low: Version | None
    high: Version | None
    low_included: bool = True
    high_included: bool = True

    def holds(self, version: Version) -> bool:
        """Whether a version lies between the bounds."""
        above = self.low is None or version > self.low or (self.low_included and version == self.low)
        below = self.high is None or version < self.high or (self.high_included and version == self.high)
        return above and below


@dataclass(frozen=True, slots=True)
class ReleaseRange:
    """A parsed range: ``"3.9.2" in ReleaseRange.parse("3.9.2, 4.0.1..")``."""

    text: str
    _spans: tuple[_Span, ...]

    @classmethod
    def parse(cls, text: str) -> ReleaseRange:
        """A range from its text.

        Raises:
            ReleaseRangeError: a part of it is no span, or a span runs backwards.
        """
        return cls(text, tuple(_parse_span(part.strip(), text) for part in text.split(",")))

    def __contains__(self, release: str) -> bool:
        version = version_of(release)
        return any(span.holds(version) for span in self._spans)

    def __str__(self) -> str:
        return self.text


def _parse_span(part: str, text: str) -> _Span:
    match = _SPAN.fullmatch(part)
    if match is None:
        raise ReleaseRangeError(
            f"{part!r} in the range of releases {text!r} is none of 3.9.2, 2.4.0..3.4.1, 4.0.1.., >=3.5.0"
        )
    if operator := match["operator"]:
        bound = version_of(match["bound"])
        if operator in (">=", ">"):
            return _Span(bound, None, low_included=operator == ">=")
        return _Span(None, bound, high_included=operator == "<=")
    low = version_of(match["low"])
    if not match["dots"]:
        return _Span(low, low)
    high = version_of(match["high"]) if match["high"] else None
    if high is not None and high < low:
        raise ReleaseRangeError(f"{part!r} in the range of releases {text!r} runs backwards")
    return _Span(low, high)
