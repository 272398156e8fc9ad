"""Release ranges with one release added or removed, as their author would write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kidx.dialect import version_of
from kidx.dialect.release_range import ReleaseRange

_FIRST: Final = re.compile(r"\d+\.\d+\.\d+")


def with_release(text: str, release: str, known: Sequence[str]) -> str:
    """Return a range that includes one more release.

    Args:
        text: A range without the release.
        release: The new release. If it is newer than all others, the range remains open after it.
        known: The other releases.
    """
    newest = all(version_of(other) < version_of(release) for other in known)
    spans = [span.strip() for span in text.split(",")]
    later = (number for number, span in enumerate(spans) if version_of(_FIRST.findall(span)[0]) > version_of(release))
    spans.insert(next(later, len(spans)), f"{release}{'..' if newest else ''}")
    return _checked(", ".join(spans), release, known, text, holds=True)


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
    if later and newer[-1] in range_ and "99999.0.0" in range_:
        later[-1] = f"{later[-1].partition('..')[0]}.."
    if not (spans or later):
        raise ValueError(f"no other release is in the range {text!r}")
    if len(spans) == 1 and spans[0].startswith(f"{before[0]}.."):
        spans = [f"<={spans[0].partition('..')[2]}"]
    return _checked(", ".join(spans + later), release, known, text, holds=False)


def _spans(included: Sequence[tuple[str, bool]]) -> list[str]:
    """Return the runs of releases that are in a range, oldest first."""
    spans: list[list[str]] = []
    open_ = False
    for release, holds in included:
        if holds and open_:
            spans[-1].append(release)
        elif holds:
            spans.append([release])
        open_ = holds
    return [run[0] if len(run) == 1 else f"{run[0]}..{run[-1]}" for run in spans]


def _checked(text: str, release: str, known: Sequence[str], before: str, *, holds: bool) -> str:
    old, new = ReleaseRange.parse(before), ReleaseRange.parse(text)
    assert (release in new) is holds
    assert all((other in old) is (other in new) for other in known if other != release)
    return text
