"""Findings about index entries, with the entry's fields, and the rules that ``.index`` and ``.timeindex`` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kidx.layout import OFFSET_INDEX, TIME_INDEX, Layout
from kidx.printable import counted

if TYPE_CHECKING:
    from kidx.findings import Verdict
    from kidx.scan.entries import IndexContent
    from kidx.verify.reporter import Reporter

_LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in (OFFSET_INDEX, TIME_INDEX)}


class EntryFindings:
    """Findings about the entries of one index file.

    Args:
        suffix: ``.index`` or ``.timeindex``.
        content: the entries of the file.
        reporter: receives the findings.
    """

    def __init__(self, suffix: str, content: IndexContent, reporter: Reporter) -> None:
        self._suffix = suffix
        self._content = content
        self._reporter = reporter

    def add(self, slot: Any, clause: str, message: str, *, expected: str, verdict: Verdict = "broken") -> None:
        """Add a finding about the entry in a slot; ``expected`` describes a right entry."""
        entry = self._content.entries[slot]
        columns = {name: int(entry[name]) for name in entry.dtype.names}
        key, value = columns.values()
        self._reporter.add(
            self._suffix,
            clause,
            verdict,
            message,
            slot=int(slot),
            expected=expected,
            actual=f"{key} at {value}",
            **columns,
        )

    def check_size(self, clause: str) -> None:
        """Report a file that does not consist of whole entries (OI-11, TI-11a)."""
        size, whole = self._content.size, _LAYOUTS[self._suffix].size
        if self._content.trailing_bytes:
            self._reporter.add(
                self._suffix,
                clause,
                "broken",
                f"{counted(size, 'byte')}, not a multiple of {whole}: kafka-dump-log rejects the file. "
                "A broker does not check the size: a start after a crash rebuilds the indexes of segments from the "
                "recovery point on; earlier segments, and all segments after a clean stop, keep their files",
                expected=f"a multiple of {whole}",
                actual=size,
            )

    def check_base(self) -> None:
        """Report offsets below the segment's base offset (AI-9)."""
        offsets, base = self._content.entries["offset"], self._reporter.segment.base_offset
        for slot in np.flatnonzero(offsets < base):
            message = f"offset {offsets[slot]} is below the segment's base offset {base}"
            self.add(slot, "AI-9", message, expected=f"at least {base}")
