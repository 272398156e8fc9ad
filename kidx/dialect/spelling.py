"""Which release a name that is none may mean."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def meant(name: str, releases: Sequence[str]) -> str:
    """What to ask after a release that there is not: ``did you mean 3.9.2?``; empty if none is near.

    Args:
        name: as it was given.
        releases: those that there are, oldest first.
    """
    major, dot, _ = name.partition(".")
    if dot and major.isdecimal() and not any(each.startswith(f"{major}.") for each in releases):
        return ""  # another era: one that looks alike is not meant
    near = [each for each in releases if each.startswith(f"{name}.")][-1:]
    near += difflib.get_close_matches(name, [each for each in reversed(releases) if each not in near], 3, 0.75)
    return f"did you mean {' or '.join(near[:3])}?" if near else ""
