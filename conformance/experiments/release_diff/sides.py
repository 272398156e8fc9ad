"""Sides of a comparison: a locked release, or a build that has the dialect of one."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path
from typing import NamedTuple

from conformance.errors import ToolError
from conformance.implementations.forms import directory_of, form_of
from conformance.implementations.spec import build_of
from conformance.kafka.releases import load_release


class Side(NamedTuple):
    """Classes of one side, and the dialect that they are compared with.

    Attributes:
        label: The name for people, e.g. ``"4.4.0"`` or ``"jvm:build"``.
        specification: The implementation, ``"jvm"`` or ``"jvm:DIR"``.
        release: The release of the dialect.
    """

    label: str
    specification: str
    release: str

    @property
    def is_build(self) -> bool:
        """True if the side is not a locked release."""
        return self.specification != "jvm"

    def replay(self, trace: Path) -> str:
        """Return the command that replays a trace with these classes."""
        words = ["conformance", "replay", str(trace), "--kafka", self.release]
        return shlex.join([*words, "-i", self.specification] if self.is_build else words)


@cache
def side_of(text: str) -> Side:
    """Return the side that RELEASE or ``jvm:DIR`` names.

    Raises:
        UnknownReleaseError: The release is not locked.
        ToolError: The directory is no build of Kafka.
    """
    directory = directory_of(text)
    if directory is None:
        if form_of(text) is not None:
            raise ToolError(f"{text!r} cannot be compared: name a release or jvm:DIR")
        return Side(load_release(text).name, "jvm", text)
    if not text.startswith("jvm:"):
        raise ToolError(f"{text!r} cannot be compared: name a release or jvm:DIR")
    build = build_of(directory)
    assert build is not None
    return Side(text, text, build.release)
