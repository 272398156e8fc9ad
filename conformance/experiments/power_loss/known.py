"""Known causes of violated guarantees after a power failure: the clause of each, and what must be lost for it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import TYPE_CHECKING

from conformance.clauses import load_clauses
from conformance.experiments.power_loss.guarantees import Guarantee

if TYPE_CHECKING:
    from conformance.experiments.power_loss.signatures import Signature


@dataclass(frozen=True)
class Known:
    """Known cause of the violation of a guarantee.

    Attributes:
        clause: clause of the cause; it applies to the releases that have the cause.
        guarantees: guarantees that may be violated.
        needs: kinds of items that must be lost, as patterns with ``*``.
        lost: patterns of other kinds that may have to be lost.
        clean: True if the broker must find a clean shutdown, False if it must not; None for either.
        during: operations that may have been interrupted; all if none is named.
        machine: machine whose findings have the cause; a cause of the log is one of a compacted log, too.
    """

    clause: str
    guarantees: frozenset[Guarantee]
    needs: frozenset[str]
    lost: frozenset[str]
    clean: bool | None
    during: frozenset[str]
    machine: str

    def covers(self, signature: Signature) -> bool:
        """Return True if a finding with a signature has this cause."""
        return (
            signature.guarantee in self.guarantees
            and self.clean in (None, signature.clean)
            and all(any(fnmatchcase(lost, pattern) for lost in signature.lost) for pattern in self.needs)
            and all(any(fnmatchcase(lost, pattern) for pattern in self.lost | self.needs) for lost in signature.lost)
            and bool(signature.lost or self.during)
            and (not self.during or signature.during in self.during)
        )


class KnownCauses:
    """All known causes."""

    def __init__(self, causes: Sequence[Known]) -> None:
        self._causes = causes
        self._clauses = load_clauses()

    def of(self, signature: Signature, release: str, machine: str = "log") -> str | None:
        """Return the clause of the known cause of a machine's finding in a release; None if it is not known."""
        machines = ("cleaned", "log") if machine == "cleaned" else (machine,)
        for known in sorted(self._causes, key=lambda each: each.machine == "log"):
            if known.machine in machines and known.covers(signature) and self._applies(known, release):
                return known.clause
        return None

    def _applies(self, known: Known, release: str) -> bool:
        return self._clauses[known.clause].applies_to(release)


def load_known() -> KnownCauses:
    """Return the causes of ``known.toml``."""
    document = tomllib.loads((files(__package__) / "known.toml").read_text("utf-8"))
    return KnownCauses(
        [
            Known(
                row["clause"],
                frozenset(Guarantee[name] for name in row.get("guarantees", Guarantee.__members__)),
                frozenset(row.get("needs", ())),
                frozenset(row.get("lost", ())),
                row.get("clean"),
                frozenset(row.get("during", ())),
                row.get("machine", "log"),
            )
            for row in document["known"]
        ]
    )
