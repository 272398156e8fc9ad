"""``conformance diff --expectations FILE``: the differences that are meant, as data.

::

    [[difference]]
    clause = "AI-42b"                  # a clause that parts the two, whatever the letter of its variant; or
    shape = "close: bytes"             # what `conformance diff` says of a difference that no clause speaks of
    machine = "offset"                 # only there; may be left out
    reason = "4.4 no longer trims"
    link = "https://issues.apache.org/jira/browse/KAFKA-20979"

An entry that no difference meets is stale, and as wrong as a difference without an entry.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.clauses import family
from conformance.errors import ToolError
from conformance.experiments.release_diff.texts import TextChange
from conformance.runs.differences.shapes import shape_of

if TYPE_CHECKING:
    from conformance.experiments.release_diff.comparison import Comparison, Difference

_NEEDED: Final = frozenset({"reason", "link"})
_ALLOWED: Final = _NEEDED | {"clause", "shape", "machine"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A difference that is meant; of ``clause`` and ``shape`` one is empty."""

    clause: str
    shape: str
    machine: str
    reason: str
    link: str

    def __str__(self) -> str:
        where = f" ({self.machine} machine)" if self.machine else ""
        return f"{self.clause or self.shape}{where}: {self.reason}"

    def meets(self, difference: Difference | TextChange) -> bool:
        """Whether it speaks of a difference."""
        if self.machine and self.machine != difference.machine:
            return False
        if self.clause:
            return family(self.clause) in difference.stakes.families
        return self.shape == shape_in_words(difference)


class Judged(NamedTuple):
    """What is meant, what is new, and entries that nothing meets."""

    meant: tuple[Difference | TextChange, ...]
    new: tuple[Difference | TextChange, ...]
    stale: tuple[Entry, ...]


def shape_in_words(difference: Difference | TextChange) -> str:
    """What a difference is known by where no clause speaks of it."""
    if isinstance(difference, TextChange):
        return f"{difference.operations[-1].name}: text of {difference.wording.error}"
    return shape_of(difference.divergence)


def load_expected(path: Path) -> tuple[Entry, ...]:
    """Reads a file of entries.

    Raises:
        ToolError: it cannot be read, or an entry is not written as this module says.
    """
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ToolError(f"{path} is not TOML: {error}") from None
    entries = table.get("difference", [])
    if set(table) - {"difference"} or not isinstance(entries, list):
        raise ToolError(f"{path} holds something else than [[difference]] entries: {', '.join(sorted(table))}")
    return tuple(_entry(path, number, entry) for number, entry in enumerate(entries, 1))


def _entry(path: Path, number: int, entry: Any) -> Entry:
    where = f"entry {number} of {path}"
    if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
        raise ToolError(f"{where} is not a table of texts")
    if unknown := set(entry) - _ALLOWED:
        raise ToolError(f"{where} has unknown keys: {', '.join(sorted(unknown))}")
    if ("clause" in entry) == ("shape" in entry):
        raise ToolError(f"{where} needs either clause or shape")
    for key in sorted(_NEEDED):
        if not entry.get(key, "").strip():
            raise ToolError(f"{where} needs a {key}")
    return Entry(**{"clause": "", "shape": "", "machine": "", **entry})


def judge(comparison: Comparison, entries: tuple[Entry, ...]) -> Judged:
    """Sorts differences by whether an entry speaks of them, and finds the entries that speak of none."""
    found = [(one, [entry for entry in entries if entry.meets(one)]) for one in comparison.all]
    stale = tuple(entry for entry in entries if not any(entry in of for _, of in found))
    return Judged(tuple(one for one, of in found if of), tuple(one for one, of in found if not of), stale)
