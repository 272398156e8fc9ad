"""Release ranges of clauses: of a row of kidx's table of behaviours, and with one release added or removed.

A row of the table (:mod:`kidx.dialect.table`) has a name and, for each release, a value; most values are booleans.

=================================== ===================================================
``where close_trims``               releases in which ``close_trims`` is True
``where not close_trims``           releases in which ``close_trims`` is False
``where max_lookup is read``        releases in which ``max_lookup`` is ``"read"``
=================================== ===================================================

Only the row names releases, so that one edit changes both kidx and the clause. Other ranges name releases, in the
shortest form: ``2.4.0..3.9.1, 4.0.1..``. A span is the part of a range between two commas: one release, or the first
and the last release of several.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from kidx.dialect import DIALECTS, PUBLISHED, ROWS, dialect_of, version_of
from kidx.dialect.release_range import ReleaseRange, ReleaseRangeError, range_of

_WHERE: Final = re.compile(r"where (?P<not>not )?(?P<name>\w+)(?: is (?P<value>.+))?")


class BehaviourRange(ReleaseRange):
    """Releases in which a row of the table has one value.

    Attributes:
        behaviour: The name of the row.
        value: The value of the row in these releases.
    """

    behaviour: str
    value: Any

    def __init__(self, behaviour: str, value: Any) -> None:
        object.__setattr__(self, "behaviour", behaviour)
        object.__setattr__(self, "value", value)
        releases = [release for release in PUBLISHED.split() if ROWS[behaviour].value_in(release) == value]
        if releases:
            parsed = ReleaseRange.parse(range_of(releases, PUBLISHED.split()))
            super().__init__(parsed.text, parsed.spans)
        else:
            super().__init__("no published release", ())

    def __contains__(self, release: str) -> bool:
        if release in DIALECTS:
            return bool(getattr(dialect_of(release), self.behaviour) == self.value)
        return super().__contains__(release)


def parse_range(text: str) -> ReleaseRange:
    """Parse the release range of a clause.

    Raises:
        ReleaseRangeError: The text is no range, or the table does not have the row or the value that it names.
    """
    if not text.startswith("where "):
        return ReleaseRange.parse(text)
    match = _WHERE.fullmatch(text)
    row = ROWS.get(match["name"]) if match else None
    if match is None or row is None:
        raise ReleaseRangeError(f"{text!r} names no behaviour of the table")
    wanted = match["value"] or str(not match["not"])
    for value in row.values:
        if str(value) == wanted:
            return BehaviourRange(match["name"], value)
    raise ReleaseRangeError(f"{text!r}: {match['name']} has no value {wanted}")


_RELEASE: Final = re.compile(r"\d+\.\d+\.\d+")


def with_release(text: str, release: str, known: Sequence[str]) -> str:
    """Return a range that includes one more release.

    Args:
        text: A range without the release.
        release: The new release. If it is newer than all others, the range remains open after it.
        known: The other releases.
    """
    newest = all(version_of(other) < version_of(release) for other in known)
    spans = [span.strip() for span in text.split(",")]
    later = (number for number, span in enumerate(spans) if version_of(_RELEASE.findall(span)[0]) > version_of(release))
    spans.insert(next(later, len(spans)), f"{release}{'..' if newest else ''}")
    return _checked(", ".join(spans), release, known, text, included=True)


def without_release(text: str, release: str, known: Sequence[str]) -> str:
    """Return a range that excludes a release, and includes the other known ones as before.

    Args:
        text: A range with the release. If the release is newer than all others, the range ends before it.
        release: The release to exclude.
        known: The other releases.

    Raises:
        ValueError: The range would be empty.
    """
    before = sorted((other for other in known if version_of(other) < version_of(release)), key=version_of)
    newer = sorted((other for other in known if version_of(other) > version_of(release)), key=version_of)
    range_ = ReleaseRange.parse(text)
    spans = _spans([(other, other in range_) for other in before])
    later = _spans([(other, other in range_) for other in newer])
    if later and newer[-1] in range_ and "99999.0.0" in range_:  # the range has no end
        later[-1] = f"{later[-1].partition('..')[0]}.."
    if not (spans or later):
        raise ValueError(f"no other release is in the range {text!r}")
    if len(spans) == 1 and spans[0].startswith(f"{before[0]}.."):
        spans = [f"<={spans[0].partition('..')[2]}"]
    return _checked(", ".join(spans + later), release, known, text, included=False)


def _spans(releases: Sequence[tuple[str, bool]]) -> list[str]:
    """Return the spans of a range.

    Args:
        releases: All releases, oldest first, each with True if the range includes it.
    """
    spans: list[list[str]] = []
    follows = False
    for release, included in releases:
        if included and follows:
            spans[-1].append(release)
        elif included:
            spans.append([release])
        follows = included
    return [span[0] if len(span) == 1 else f"{span[0]}..{span[-1]}" for span in spans]


def _checked(text: str, release: str, known: Sequence[str], before: str, *, included: bool) -> str:
    """Return the edited range; assert that it differs from the range ``before`` in this release only."""
    old, new = ReleaseRange.parse(before), ReleaseRange.parse(text)
    assert (release in new) is included
    assert all((other in old) is (other in new) for other in known if other != release)
    return text
