"""An external program behind the line protocol (``exec:COMMAND``; ``conformance/schemas/protocol.json``).

One process lives over all examples. Every operation is followed by a request for the state, so a step is two requests.

An error of the program itself, as opposed to a wrong answer, is the outcome ``failure`` of the operation whose
request caused it, with the details as its text: a reply that is late, missing, malformed or one too many, and a crash.
An outcome, not an exception, so that a lockstep compares it, Hypothesis shrinks it and a trace replays it. The process
is gone by then, and everything in that example fails alike; the next example starts a new one.

What the protocol has no request for:

============================ ======================================================================================
``bulk_append``, …           that many appends, up to the first refusal
``crash``                    the process is killed (SIGKILL), and started again by the next ``open``
``open`` while one is open   as ``crash`` before it: only one index is open at a time
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
    """A program behind the adapter interface (see :class:`conformance.implementations.protocol`).

    The state of an observation is None where the program does not give it: nothing is open, it has no ``state`` at all,
    or the index is closed and the program refuses the request, or is not asked for want of ``calls_after_close``. A
    refusal while an index is open is a failure.

    Args:
        command: the program and its arguments; ``{release}`` in them is replaced by the release.
        release: the release whose dialect it must follow.
        name: its name in reports; by default the name in its reply to ``start``.
        deadline: seconds for each reply.
        start_deadline: seconds for the reply to ``start``.

    Attributes:
        capabilities: what its indexes have, of
            :data:`conformance.operations.index_capabilities.INDEX_CAPABILITIES`.

    Raises:
        StartError: there is no such program, or it does not answer ``start`` properly.
    """

    speaks_kafka = False
    takes_negative_sizes = False
    in_process = False
    """Its deadline for a reply is its own."""

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
        """What went wrong when an example was over: the machines close in the middle of examples as well."""
        self._lacking |= missing_operations(self, [kind for kind in self.about.kinds if kind in KINDS])
        self.failures_between_examples.clear()

    def require(self, kind: str) -> None:
        """Fail if the program has no index of a kind.

        Raises:
            NotDrivenError: its reply to ``start`` does not name the kind.
        """
        if kind not in self.about.kinds:
            self._process.kill()
            kinds = ", ".join(self.about.kinds)
            raise NotDrivenError(f"{' '.join(self.command)} has no {kind} index: its reply to start names {kinds}")

    def begin(self, directory: Path) -> None:
        """See the protocol."""
        self.end()
        self._prefix = f"{directory}/"
        self._failure = None

    def end(self) -> None:
        """See the protocol. An open index is closed, so that it does not touch its file later."""
        if self._open and not self._closed and self._failure is None:
            try:
                self._process.request({"op": "close"})
            except LineProcessError as error:
                self.failures_between_examples.append(str(error))
        self._open = False

    def close(self) -> None:
        """Ends the process: asks it to stop, then kills it if it does not."""
        self._process.close(STOP if self._failure is None else None)

    def supports(self, operation: str) -> bool:
        """See the protocol. Every operation has been tried out when the process was started for the first time."""
        name = BULK.get(operation, operation)
        if not self.capabilities.issuperset(OF_OPERATION.get(name, ())):
            return False
        return name in ESSENTIAL or (name in SHAPES and name not in self._lacking)

    @property
    def tells_state(self) -> bool:
        """Whether it has a ``state``; without one, only outcomes and files are compared."""
        return "state" not in self._lacking

    def perform(self, operation: Operation) -> Observation:
        """See the protocol."""
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
        """Whether it is closed and answers nothing then."""
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
