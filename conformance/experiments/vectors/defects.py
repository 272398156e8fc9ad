"""Test of the vectors with planted defects of indexes: ``python -m conformance.experiments.vectors.defects``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.experiments.mutation.measuring import chosen_mutants
from conformance.experiments.vectors.cases import load_cases
from conformance.experiments.vectors.checking import wrong_answers, wrong_readings
from conformance.experiments.vectors.writing import VectorExecutor, build_vectors
from conformance.implementations.mutants import implementation_of
from conformance.operations import KINDS
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.implementations.mutants import Mutant

_NONE: Final = ""


@dataclass(frozen=True, slots=True)
class Detection:
    """First vectors that detect a planted defect.

    Attributes:
        by_reading: the first vector whose queries about the stored files detect the defect; empty if none does.
        by_writing: the first vector whose history detects the defect; empty if none does.
    """

    mutant: Mutant
    by_reading: str
    by_writing: str


def find_defects(mutants: Iterable[Mutant]) -> list[Detection]:
    """Return the vectors that detect each mutant of an index file.

    Raises:
        ToolError: Java or jars are missing.
    """
    mutants, found = list(mutants), []
    cases = [case for case in load_cases() if case.machine in KINDS]
    with scratch_directory() as scratch:
        for release in sorted({mutant.release for mutant in mutants}):
            vectors = list(build_vectors(release, cases))
            for mutant in mutants:
                if mutant.release != release:
                    continue
                own = [each for each in vectors if each[0].machine == mutant.machine]
                executor = VectorExecutor(mutant.machine, implementation_of(mutant, release), scratch / mutant.name)
                reading = (vector.name for vector, files in own if any(wrong_readings(vector, files, executor)))
                writing = (vector.name for vector, _ in own if any(wrong_answers(vector, executor)))
                found.append(Detection(mutant, next(reading, _NONE), next(writing, _NONE)))
    return found


if __name__ == "__main__":
    results = find_defects(chosen_mutants(machines=KINDS))
    for each in results:
        if not each.by_writing:
            sys.stdout.write(f"not found: {each.mutant.name}: {each.mutant.title}\n")
    read, written = (sum(bool(getattr(each, how)) for each in results) for how in ("by_reading", "by_writing"))
    sys.stdout.write(f"{read} of {len(results)} by queries about the files, {written} by history and queries\n")
