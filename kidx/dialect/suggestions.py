"""Suggestions for an unknown release name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


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
