"""Writer of the test vectors of a release: its own classes execute each case, and so give the answers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from conformance.clauses.machines import driven_releases
from conformance.errors import ToolError
from conformance.experiments.vectors.document import Document, Vector, document_text
from conformance.experiments.vectors.execution import VectorExecutor
from conformance.experiments.vectors.queries import queries_of
from conformance.experiments.vectors.tables import SOUND, TABLE, rows_of, sound_rows_of
from conformance.machines import MACHINES
from conformance.operations.effects import Effect
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from conformance.experiments.vectors.cases import Case
    from conformance.kafka.jar_fetch import Progress
    from conformance.operations import Json

DOCUMENT: Final = "vectors.json"
_OPEN_OR_NOT: Final = (Effect.OPENS, Effect.RELEASES)


class VectorExecutors:
    """Executors of all machines with one release's own classes; each is created on first use."""

    def __init__(self, release: str, scratch: Path, progress: Progress | None = None) -> None:
        self._release, self._scratch, self._progress = release, scratch, progress
        self._executors: dict[str, VectorExecutor] = {}

    def __getitem__(self, machine: str) -> VectorExecutor:
        if machine not in self._executors:
            implementation = MACHINES[machine].subject("jvm", self._release, self._progress)
            self._executors[machine] = VectorExecutor(machine, implementation, self._scratch / machine)
        return self._executors[machine]


def build_vectors(
    release: str, cases: Iterable[Case], progress: Progress | None = None
) -> Iterator[tuple[Vector, dict[str, bytes]]]:
    """Yield the vector of each case that a release can have, and its files by name, from the release's own classes.

    Args:
        release: a locked release.
        cases: the cases.
        progress: called while jars are fetched.

    Raises:
        ToolError: Java or jars are missing.
    """
    with scratch_directory() as scratch:
        executors = VectorExecutors(release, scratch, progress)
        for case in cases:
            if driven_releases(case.machine, [release]):
                yield _build_vector(case, executors[case.machine])


def _build_vector(case: Case, executor: VectorExecutor) -> tuple[Vector, dict[str, bytes]]:
    executor.begin()
    history = [executor.perform(step) for step in case.steps]
    # Close the files if the last opening of the case succeeded and no step has closed them.
    effects = [
        (step.effect, done) for step, done in zip(case.steps, history, strict=True) if step.effect in _OPEN_OR_NOT
    ]
    if effects and effects[-1][0] is Effect.OPENS and "error" not in effects[-1][1]:
        history.append(executor.perform(executor.scope.close_operation))
    files = executor.files()
    base_offset, opening, queries = queries_of(case.machine, case.steps, files)
    executor.state = None
    replies: list[Json] = []
    for step in opening:
        replies.append(executor.perform(step))
        if "error" in replies[-1]:
            queries = ()
            break
    answers = [executor.perform(step) for step in queries]
    executor.participant.end()
    names = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    clauses = sorted(executor.clauses)
    vector = Vector(case.name, case.title, case.machine, clauses, base_offset, names, history, replies, answers)  # type: ignore[arg-type]
    return vector, files


def write_release(directory: Path, release: str, cases: Iterable[Case], progress: Progress | None = None) -> Document:
    """Write the vectors of a release below a directory: the document, the tables of queries, and the files.

    Raises:
        ToolError: the directory cannot be written or exists already, or Java or jars are missing.
    """
    root, vectors, sound = directory / release, [], []
    try:
        root.mkdir(parents=True)
        for vector, files in build_vectors(release, cases, progress):
            for name, content in files.items():
                path = root / vector.name / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            vectors.append(vector)
            sound.append(sound_rows_of(vector, files))
        document = Document("kidx-vectors", 1, release, vectors)
        (root / DOCUMENT).write_text(document_text(document), "utf-8")
        (root / TABLE).write_text("".join(map(rows_of, vectors)), "utf-8")
        (root / SOUND).write_text("".join(sound), "utf-8")
    except FileExistsError as error:
        raise ToolError(f"{root} exists already; choose a new directory") from error
    except OSError as error:
        raise ToolError(f"the vectors {root} cannot be written: {error.strerror or error}") from error
    return document
