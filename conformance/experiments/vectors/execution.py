"""Execution of the steps and queries of a test vector with one implementation."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from conformance.machines import MACHINES
from conformance.operations import OK, Operation
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from conformance.lockstep.scope import Scope
    from conformance.operations import Json


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
