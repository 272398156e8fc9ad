"""External program that speaks the line protocol (``exec:COMMAND``; ``conformance/schemas/protocol.json``).

One process serves all examples. Every operation is followed by a request for the state, so a step is two requests.

An error of the program itself, as opposed to a wrong result, is the outcome ``failure`` of the operation whose request
caused it, with the details as its text: a reply that is late, missing, malformed or redundant, and a crash. It is an
outcome and not an exception, so that a lockstep compares it, Hypothesis shrinks it and a trace replays it. The process
has been killed by then, and all later operations of that example fail in the same way; the next example starts a new
process.

Operations without a request in the protocol:

============================ ======================================================================================
``bulk_append``, …           many appends, up to the first error
``crash``                    the process is killed (SIGKILL), and restarted by the next ``open``
``open`` while one is open   a ``crash`` before it: only one index is open at a time
``rename``, ``all_aborted``  unsupported
============================ ======================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.errors import NotDrivenError
from conformance.implementations.methods import BULK
from conformance.implementations.probe import missing_operations
from conformance.implementations.process.line_process import LineProcessError
from conformance.implementations.process.restarted import (
    DEADLINE,
    START_DEADLINE,
    STOP,
    RestartedProcess,
    encode,
)
from conformance.implementations.replies import (
    ESSENTIAL,
    FAILURE,
    SHAPES,
    MalformedReplyError,
    about_from,
    outcome_from,
    state_from,
)
from conformance.implementations.sizes import takes
from conformance.operations import KINDS, OK, SIGNATURES, UNSUPPORTED, Json, Observation, Operation, Outcome, State
from conformance.operations.index_capabilities import OF_OPERATION

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PROTOCOL: Final = 1
START: Final[Json] = {"op": "start", "protocol": PROTOCOL}
STATE: Final[Json] = {"op": "state"}

_STATE_REQUEST: Final = encode(STATE)


class ProcessIndex:
    """Program as an implementation (see :class:`conformance.implementations.protocol`).

    The state of an observation is None if the program does not return it: no index is open, it does not support
    ``state``, or the index is closed and the program rejects the request, or the request needs the missing
    ``calls_after_close``. An error while an index is open is a failure.

    Args:
        command: The program and its arguments; ``{release}`` in them is replaced by the release.
        release: The release whose dialect it must follow.
        name: The name in reports; by default the name in its reply to ``start``.
        deadline: The time limit for each reply, in seconds.
        start_deadline: The time limit for the reply to ``start``, in seconds.

    Attributes:
        capabilities: The capabilities of its indexes, of
            :data:`conformance.operations.index_capabilities.INDEX_CAPABILITIES`.

    Raises:
        StartError: The program does not exist, or does not reply properly to ``start``.
    """

    speaks_kafka = False
    takes_negative_sizes = False
    in_process = False
    """False: it has a separate deadline for replies."""

    def __init__(
        self,
        command: Sequence[str],
        release: str,
        *,
        name: str | None = None,
        deadline: float = DEADLINE,
        start_deadline: float = START_DEADLINE,
    ) -> None:
        self.release = release
        self._process = RestartedProcess(command, release, START, about_from, deadline, start_deadline)
        self.command, self._holder = self._process.command, self._process.holder
        self.about = self._process.introduce()
        self.capabilities = self.about.capabilities
        self.name = f"{self.about.name if name is None else name} {release}"
        self._prefix = ""
        self._kind = ""
        self._open = False
        self._closed = True
        self._failure: Outcome | None = None
        self._lacking: set[str] = set()
        self.failures_between_examples: list[str] = []
        """Failures between examples: the machines close an index in the middle of examples as well."""
        self._lacking |= missing_operations(self, [kind for kind in self.about.kinds if kind in KINDS])
        self.failures_between_examples.clear()

    def require(self, kind: str) -> None:
        """Fail if the program has no index of a kind.

        Raises:
            NotDrivenError: Its reply to ``start`` does not name the kind.
        """
        if kind not in self.about.kinds:
            self._process.kill()
            kinds = ", ".join(self.about.kinds)
            raise NotDrivenError(f"{' '.join(self.command)} has no {kind} index: its reply to start names {kinds}")

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        self.end()
        self._prefix = f"{directory}/"
        self._failure = None

    def end(self) -> None:
        """End the example; see the protocol. An open index is closed, so that it does not touch its file later."""
        if self._open and not self._closed and self._failure is None:
            try:
                self._process.request({"op": "close"})
            except LineProcessError as error:
                self.failures_between_examples.append(str(error))
        self._open = False

    def close(self) -> None:
        """End the process: request it to stop, and kill it if it does not."""
        self._process.close(STOP if self._failure is None else None)

    def supports(self, operation: str) -> bool:
        """Return True if an operation is supported; all were tried when the process was first started."""
        name = BULK.get(operation, operation)
        if not self.capabilities.issuperset(OF_OPERATION.get(name, ())):
            return False
        return name in ESSENTIAL or (name in SHAPES and name not in self._lacking)

    @property
    def tells_state(self) -> bool:
        """True if it supports ``state``; without it, only outcomes and files are compared."""
        return "state" not in self._lacking

    def perform(self, operation: Operation) -> Observation:
        """Execute an operation; see the protocol."""
        if self._failure is not None:
            return Observation(self._failure, None)
        name, arguments = operation
        try:
            outcome = self._outcome(name, arguments) if takes(self, operation) else UNSUPPORTED
            return Observation(outcome, self._state() if self._open else None)
        except LineProcessError as error:
            self._failure = Outcome(FAILURE, None, str(error))
            return Observation(self._failure, None)

    # -- operations --------------------------------------------------------------------------------------------

    def _outcome(self, name: str, arguments: tuple[Any, ...]) -> Outcome:
        if self._is_beyond and name not in ("open", "crash"):
            return UNSUPPORTED
        if name in SHAPES:
            return self._open_index(*arguments) if name == "open" else self._call(name, arguments)
        if name in BULK:
            return self._bulk(name, *arguments)
        if name == "crash":
            self._crash()
            return OK
        return UNSUPPORTED

    def _open_index(self, kind: str, path: str, base_offset: int, max_index_size: int, writable: bool) -> Outcome:
        if self._open and not self._closed:
            self._crash()
        self._open, self._kind = False, kind
        if kind not in self.about.kinds:
            return UNSUPPORTED
        outcome = self._call("open", (kind, self._prefix + path, base_offset, max_index_size, writable))
        self._open = outcome.error is None
        self._closed = False
        return outcome

    def _call(self, name: str, arguments: tuple[Any, ...]) -> Outcome:
        reply = self._process.request({"op": name, **dict(zip(SIGNATURES[name], arguments, strict=True))})
        try:
            outcome = outcome_from(name, reply)
        except MalformedReplyError as error:
            self._process.refuse(reply, error)
        if name in ("close", "delete") and outcome.error != "unsupported":
            self._closed = True
        return outcome

    def _bulk(self, bulk: str, first: int, second: int, first_step: int, second_step: int, count: int) -> Outcome:
        name = BULK[bulk]
        more = (False,) * (len(SIGNATURES[name]) - 2)
        for i in range(count):
            outcome = self._call(name, (first + i * first_step, second + i * second_step, *more))
            if outcome.error is not None:
                return outcome
        return OK

    def _crash(self) -> None:
        self._open = False
        self._process.kill()

    @property
    def _is_beyond(self) -> bool:
        """True if it is closed and rejects all calls then."""
        return self._open and self._closed and "calls_after_close" not in self.capabilities

    def _state(self) -> State | None:
        if not self.tells_state or self._is_beyond:
            return None
        reply = self._process.request(_STATE_REQUEST)
        try:
            told = state_from(self._kind, reply, is_open=not self._closed)
        except MalformedReplyError as error:
            self._process.refuse(reply, error)
        if isinstance(told, State):
            return told
        if told.error == "unsupported":
            self._lacking.add("state")
        return None
