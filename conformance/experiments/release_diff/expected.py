"""File of expected differences, for ``conformance diff --expectations FILE``.

::

    [[difference]]
    clause = "AI-42b"                  # a clause that separates the two, or any variant of it; or
    signature = "close: bytes"         # the signature that `conformance diff` prints if no clause covers the step
    machine = "offset"                 # optional: only differences of this machine
    reason = "4.4 no longer trims"
    link = "https://issues.apache.org/jira/browse/KAFKA-20979"

An entry that no difference matches is stale. A stale entry fails the comparison, like a difference without an entry.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.clauses import family
from conformance.errors import ToolError
from conformance.events import renamed
from conformance.experiments.release_diff.error_texts import TextChange
from conformance.runs.divergences.signatures import signature_of

if TYPE_CHECKING:
    from conformance.experiments.release_diff.comparison import Comparison, Difference

_NEEDED: Final = frozenset({"reason", "link"})
_ALLOWED: Final = _NEEDED | {"clause", "signature", "machine"}


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of a file of expected differences, with its keys; either ``clause`` or ``signature`` is empty."""

    clause: str
    signature: str
    machine: str
    reason: str
    link: str

    def __str__(self) -> str:
        where = f" ({self.machine} machine)" if self.machine else ""
        return f"{self.clause or self.signature}{where}: {self.reason}"

    def matches(self, difference: Difference | TextChange) -> bool:
        """Return True if the entry covers a difference."""
        if self.machine and self.machine != difference.machine:
            return False
        if self.clause:
            return family(self.clause) in difference.implicated.families
        return self.signature == signature_text(difference)


class ClassifiedDifferences(NamedTuple):
    """Expected differences, new differences, and stale entries."""

    expected: tuple[Difference | TextChange, ...]
    new: tuple[Difference | TextChange, ...]
    stale: tuple[Entry, ...]


def signature_text(difference: Difference | TextChange) -> str:
    """Return the signature of a difference, which identifies it if no clause covers it."""
    if isinstance(difference, TextChange):
        return f"{difference.operations[-1].name}: text of {difference.wording.error}"
    return signature_of(difference.divergence)


def load_expected(path: Path) -> tuple[Entry, ...]:
    """Read a file of entries.

    Raises:
        ToolError: The file cannot be read, or an entry is malformed.
    """
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ToolError(f"{path} is not TOML: {error}") from None
    entries = table.get("difference", [])
    if set(table) - {"difference"} or not isinstance(entries, list):
        raise ToolError(f"{path} has other keys than [[difference]] entries: {', '.join(sorted(table))}")
    return tuple(_entry(path, number, entry) for number, entry in enumerate(entries, 1))


def _entry(path: Path, number: int, entry: Any) -> Entry:
    where = f"entry {number} of {path}"
    if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
        raise ToolError(f"{where} is not a table of texts")
    entry = renamed(entry, {"shape": "signature"})  # the name until 0.2
    if unknown := set(entry) - _ALLOWED:
        raise ToolError(f"{where} has unknown keys: {', '.join(sorted(unknown))}")
    if ("clause" in entry) == ("signature" in entry):
        raise ToolError(f"{where} needs either clause or signature")
    for key in sorted(_NEEDED):
        if not entry.get(key, "").strip():
            raise ToolError(f"{where} needs a {key}")
    return Entry(**{"clause": "", "signature": "", "machine": "", **entry})


def classify(comparison: Comparison, entries: tuple[Entry, ...]) -> ClassifiedDifferences:
    """Classify differences as expected or new, and find the stale entries."""
    found = [(one, [entry for entry in entries if entry.matches(one)]) for one in comparison.all]
    stale = tuple(entry for entry in entries if not any(entry in matching for _, matching in found))
    return ClassifiedDifferences(
        tuple(one for one, matching in found if matching), tuple(one for one, matching in found if not matching), stale
    )
