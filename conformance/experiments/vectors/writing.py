"""Writer of the test vectors of a release: its own classes execute each case, and so give the answers.

An executor executes the steps and queries of a vector with one implementation. For readers without JSON there are
tables of all queries, and of the queries about sound index files.
"""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from conformance.clauses.machines import driven_releases
from conformance.errors import ToolError
from conformance.experiments.vectors.document import Document, Vector, document_text
from conformance.experiments.vectors.queries import LAYOUTS, entries_of, queries_of
from conformance.machines import MACHINES
from conformance.operations import OK, Operation
from conformance.operations.op import Effect
from conformance.scratch import scratch_directory
from kidx.dialect import dialect_of
from kidx.java_values import INT_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from conformance.experiments.vectors.cases import Case
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep.scope import Scope
    from conformance.operations import Json

TABLE: Final = "queries.tsv"
SOUND: Final = "sound.tsv"
REPLY: Final = frozenset({"op", "ok", "error", "message", "state", "unsupported"})
"""Members of a step that are not arguments: the operation's name, and the reply."""

# Queries about index files in the second table.
_OF_READERS: Final = ("lookup", "entry", "fetch_upper_bound", "collect_aborted")


def rows_of(vector: Vector) -> str:
    """Return the queries of a vector as lines with tabs.

    The columns are: name; machine; path of the index file, or of the directory of the segment or log; base offset;
    operation; arguments, separated by commas; answer as JSON without blanks, or ``error`` and its kind.
    """
    path = _path(vector)
    rows = []
    for step in vector.queries:
        numbers = ",".join(map(str, _numbers(step)))
        columns = (vector.name, vector.machine, path, vector.base_offset, step["op"], numbers, _answer(step))
        rows.append("\t".join(map(str, columns)) + "\n")
    return "".join(rows)


def sound_rows_of(vector: Vector, files: Mapping[str, bytes]) -> str:
    """Return the queries about a sound index file as lines with tabs; nothing for other files.

    The columns are: kind; path; base offset; operation; arguments; answer. Arguments and answer are numbers that are
    separated by blanks. An answer without an entry is empty. Of a query for aborted transactions, the answer has the
    four numbers of each. Queries whose answer depends on the path of Kafka's binary search are omitted: upper bounds
    of a position that an entry has, or of a position beyond 31 bits.

    Args:
        files: content of its files, by name.
    """
    entries = _sound_entries(vector, files)
    if entries is None:
        return ""
    positions = {entry[1] for entry in entries}
    rows = []
    for step in vector.queries:
        numbers = _numbers(step)
        bound = sum(numbers[1:])
        depends_on_path = step["op"] == "fetch_upper_bound" and (bound > INT_MAX or bound in positions)
        if step["op"] in _OF_READERS and "error" not in step and not depends_on_path:
            columns = (vector.machine, _path(vector), vector.base_offset, step["op"], _words(numbers), _flat(step))
            rows.append("\t".join(map(str, columns)) + "\n")
    return "".join(rows)


def _sound_entries(vector: Vector, files: Mapping[str, bytes]) -> list[Any] | None:
    """Return the entries of an index file that Kafka accepts and whose entries ascend, or None for other files."""
    accepted = any(step["op"] == "sanity_check" and "error" not in step for step in vector.queries)
    if vector.machine not in LAYOUTS or len(files) != 1 or not accepted:
        return None
    (content,) = files.values()
    layout = LAYOUTS[vector.machine]
    entries = entries_of(layout, content)
    # No transaction begins before the last stable offset of an earlier entry. The other kinds ascend in both numbers.
    fields = ((4, 2),) if vector.machine == "transaction" else ((0, 0), (1, 1))
    strictly = vector.machine != "transaction"
    ascend = all(x[i] < y[j] or (x[i] == y[j] and not strictly) for x, y in pairwise(entries) for i, j in fields)
    return entries if ascend and len(content) % layout.size == 0 else None


def _path(vector: Vector) -> str:
    if vector.machine in ("log", "cleaned"):
        return f"{vector.name}/t-0"
    one_file = len(vector.files) == 1 and vector.machine != "segment"
    return f"{vector.name}/{next(iter(vector.files))}" if one_file else vector.name


def _numbers(step: Json) -> list[int]:
    arguments = (value for name, value in step.items() if name not in REPLY)
    return [n for value in arguments for n in (value if isinstance(value, list) else [value])]


def _answer(step: Json) -> str:
    if "error" in step:
        return f"error {step['error']}"
    value: Any = step.get("ok")
    if step["op"] == "list_offsets":
        (value,) = value
    return json.dumps(value, separators=(",", ":"))


def _flat(step: Json) -> str:
    value: Any = step["ok"]
    if step["op"] == "collect_aborted":
        return _words(n for transaction in value["aborted"] for n in transaction)
    return _words(value or ())


def _words(numbers: Any) -> str:
    return " ".join(map(str, numbers))


class VectorExecutor:
    """Executor of steps with one implementation, in a separate directory.

    Args:
        machine: name of the machine whose operations are executed.
        implementation: the implementation that executes them.
        directory: an empty directory.

    Attributes:
        scope: scope of the machine: which files are read, and which clauses a step exercises.
        participant: the implementation with its directory.
        dialect: rules of the implementation's release.
        clauses: the clauses that the steps have exercised, according to the implementation's own results.
        tracked: state of the steps so far, from which the exercised clauses are determined.
        name: name of the files that are read, as the scope defines it.
        seen: the last observation, and the contents of the files after it.
        state: the state in the last reply, which a reply with the same state omits.
    """

    def __init__(self, machine: str, implementation: Any, directory: Path) -> None:
        self.scope: Scope[Any, Any] = MACHINES[machine].lockstep_type.scope
        self.participant = self.scope.participant(implementation, directory)
        self.dialect = dialect_of(implementation.release)
        self.clauses: set[str] = set()

    def begin(self) -> None:
        """Begin a vector in the empty directory."""
        self.participant.clear()
        self.participant.begin()
        self.tracked = self.scope.tracked(self.dialect.release)
        self.name = self.scope.no_file_name
        self.seen: tuple[Any, Any] = (self.scope.empty_observation, self.scope.no_files)
        self.state: Any = None
        self.clauses = set()

    def perform(self, operation: Operation) -> Json:
        """Execute an operation; return its step with the reply: the outcome, and the state if that has changed."""
        scope = self.scope
        if operation.name in scope.file_selecting_operations:
            self.name = scope.named(operation, self.name)
            self.participant.watch(self.name)
            self.seen = (self.seen[0], self.participant.read())
        before = self.seen
        if operation.name in scope.corrupting_operations:
            only: Any = SimpleNamespace(
                reference=self.participant, unbatched=[], observation=before[0], files=before[1]
            )
            scope.corrupt(only, operation, self.name)
            scope.track(self.tracked, operation, before[0])
            self.seen = (before[0], self.participant.read())
            return operation.to_json()
        observation = self.participant.implementation.perform(operation)
        self.seen = (observation, self.participant.read())
        self.clauses.update(scope.clauses_of(operation, self.dialect, self.tracked, before, self.seen, {}))
        scope.track(self.tracked, operation, observation)
        reply = operation.to_json() | _reply(observation.outcome, with_text="text" in scope.aspects)
        if observation.state is not None and observation.state != self.state:
            reply["state"] = observation.state.to_json()
        self.state = observation.state
        plain: Json = json.loads(json.dumps(reply))
        return plain

    def files(self) -> dict[str, bytes]:
        """Return the files of the directory by their paths in it; of logs and caches, those that are compared."""
        participant = self.participant
        below: str = getattr(participant, "below", ".")
        kept: tuple[str, ...] = getattr(participant, "compared", ("",))
        root = participant.directory
        found = (path for path in sorted((root / below).rglob("*")) if path.is_file() and path.name.endswith(kept))
        return {str(path.relative_to(root)): path.read_bytes() for path in found}


def _reply(outcome: Any, *, with_text: bool) -> Json:
    """Return the reply as in the line protocol, with the error's message if ``with_text``."""
    if outcome == OK:
        return {"ok": None}
    reply: Json = outcome.to_json()
    if not (with_text and reply.get("message")):
        reply.pop("message", None)
    return reply


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
