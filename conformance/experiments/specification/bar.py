"""Bar of all releases as inline SVG, with a text for screen readers."""

from __future__ import annotations

from html import escape
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final

from kidx.dialect import PUBLISHED, version_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from kidx.dialect.release_range import ReleaseRange

_RELEASES: Final = PUBLISHED.split()
_CELL: Final = 10
_WIDTH: Final = _CELL * len(_RELEASES)
_LABELLED: Final = ("2.4.0", "3.0.0", "4.0.0")


def release_bar(releases: ReleaseRange | Collection[str], label: str) -> str:
    """Return a bar with one cell per published release.

    Args:
        releases: the releases whose cells are filled.
        label: the text for screen readers.
    """
    parts, at = list[str](), 0
    for filled, cells in groupby(release in releases for release in _RELEASES):
        count = len(list(cells))
        if filled:
            parts.append(f'<rect class="held" x="{at * _CELL}" width="{count * _CELL}" height="12"/>')
        at += count
    minors = [version_of(release)[:2] for release in _RELEASES]
    starts = [number for number, (one, other) in enumerate(pairwise(minors), 1) if one != other]
    ticks = "".join(f"M{number * _CELL} 0v12" for number in starts)
    words = "".join(
        f'<text x="{_RELEASES.index(release) * _CELL}" y="25">{release.removesuffix(".0")}</text>'
        for release in _LABELLED
    )
    newest = f'<text x="{_WIDTH}" y="25" text-anchor="end">{_RELEASES[-1]}</text>'
    return (
        f'<svg class="releases" viewBox="0 0 {_WIDTH} 28" role="img" aria-label="{escape(label)}">'
        f'<rect class="all" width="{_WIDTH}" height="12"/>{"".join(parts)}<path d="{ticks}"/>{words}{newest}</svg>'
    )
