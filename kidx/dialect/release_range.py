"""Ranges of Kafka releases, as clauses and expectations write them.

A range is a list of spans, separated by commas; a release is in the range if it is in one of them.

=================== ==================================================
``3.9.2``           this release
``2.4.0..3.4.1``    from the first to the last, both included
``4.0.1..``         this release and every later one
``>=3.5.0``         the same; also ``>``, ``<`` and ``<=``
=================== ==================================================

Releases are ordered by version, although behaviour did not spread in that order: 3.9.2 appeared after 4.0.0 and has
behaviour that 4.0.0 lacks. A range for "the rule introduced in 3.9.2 and 4.0.1" is therefore ``3.9.2, 4.0.1..``.
An unknown release gets suggestions.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_RELEASE: Final = r"\d+\.\d+\.\d+"
_SPAN: Final = re.compile(
    rf"(?P<operator>>=|<=|>|<)\s*(?P<bound>{_RELEASE})|(?P<low>{_RELEASE})(?:(?P<dots>\.\.)(?P<high>{_RELEASE})?)?"
)

Version = tuple[int, ...]


def version_of(release: str) -> Version:
    """Return ``"3.9.2"`` as ``(3, 9, 2)``.

    Raises:
        ValueError: ``release`` is not numbers separated by dots.
    """
    return tuple(int(part) for part in release.split("."))


class ReleaseRangeError(ValueError):
    """Range that does not follow the syntax of this module."""


class _Span(NamedTuple):
    """Versions between two bounds; None means unbounded."""

    low: Version | None
    high: Version | None
    low_included: bool = True  # False for a bound such as >3.5.0
    high_included: bool = True  # False for a bound such as <4.0.0

    def contains(self, version: Version) -> bool:
        """Return True if a version lies between the bounds."""
        above = self.low is None or version > self.low or (self.low_included and version == self.low)
        below = self.high is None or version < self.high or (self.high_included and version == self.high)
        return above and below


@dataclass(frozen=True)
class ReleaseRange:
    """Parsed range: ``"3.9.2" in ReleaseRange.parse("3.9.2, 4.0.1..")``.

    Attributes:
        text: the text that was parsed.
        spans: its parts; a release is in the range if one of them contains it.
    """

    text: str
    spans: tuple[_Span, ...]

    @classmethod
    def parse(cls, text: str) -> ReleaseRange:
        """Parse a range.

        Raises:
            ReleaseRangeError: a part of it is not a span, or the end of a span precedes its start.
        """
        return cls(text, tuple(_parse_span(part.strip(), text) for part in text.split(",")))

    def __contains__(self, release: str) -> bool:
        version = version_of(release)
        return any(span.contains(version) for span in self.spans)

    def __str__(self) -> str:
        return self.text


def _parse_span(part: str, text: str) -> _Span:
    match = _SPAN.fullmatch(part)
    if match is None:
        raise ReleaseRangeError(
            f"{part!r} in the range of releases {text!r} is not a span; write 3.9.2, 2.4.0..3.4.1, 4.0.1.. or >=3.5.0"
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
        raise ReleaseRangeError(f"{part!r} in the range of releases {text!r} ends before it begins")
    return _Span(low, high)


def range_of(members: Collection[str], known: Sequence[str]) -> str:
    """Return the range that contains these releases and no other known one.

    Args:
        members: one or more of the known releases.
        known: all releases, oldest first. A range that contains the newest one has no upper bound.
    """
    runs: list[list[str]] = []
    inside = False
    for release in known:
        if release in members:
            runs[-1:] = [[*runs[-1], release]] if inside else [*runs[-1:], [release]]
        inside = release in members
    if len(runs) == 1 and len(runs[0]) > 1:
        if runs[0][0] == known[0]:
            return f">={known[0]}" if runs[0][-1] == known[-1] else f"<={runs[0][-1]}"
        if runs[0][-1] == known[-1]:
            return f">={runs[0][0]}"
    spans = [run[0] if len(run) == 1 else f"{run[0]}..{run[-1]}" for run in runs]
    if runs and runs[-1][-1] == known[-1]:
        spans[-1] = f">={runs[-1][0]}" if len(runs) == 1 else f"{runs[-1][0]}.."
    return ", ".join(spans)


def did_you_mean(name: str, releases: Sequence[str]) -> str:
    """Return a hint for an unknown release, such as ``did you mean 3.9.2?``; empty if no release is similar.

    Args:
        name: the unknown name.
        releases: the known releases, oldest first.
    """
    major, dot, _ = name.partition(".")
    if dot and major.isdecimal() and not any(known.startswith(f"{major}.") for known in releases):
        return ""  # a release of another major version is not a likely meaning
    near = [known for known in releases if known.startswith(f"{name}.")][-1:]
    near += difflib.get_close_matches(name, [known for known in reversed(releases) if known not in near], 3, 0.75)
    return f"did you mean {' or '.join(near[:3])}?" if near else ""
