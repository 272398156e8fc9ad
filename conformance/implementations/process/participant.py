"""Program as an implementation (``exec:COMMAND``): the common part of programs with indexes and with a log.

One process executes all examples. Each operation is a request, followed by a request for the state. A crash kills the
process, and the next request starts a new one. An operation is ``unsupported`` if the program lacks a capability that
it needs, or replied so when each request was tried once.

An error of the program itself, as opposed to a wrong result, is the outcome ``failure`` of the operation: a reply that
is late, missing, malformed or redundant, or a crash. The text has the details. It is an outcome and not an exception,
so that a lockstep compares it, it is shrunk, and a trace replays it. The process has then been killed, and all later
operations of the example fail in the same way; the next example starts a new process.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from conformance.errors import ToolError
from conformance.implementations.process.line_process import LineProcess, LineProcessError
from conformance.implementations.process.messages import (
    Introduction,
    MalformedReplyError,
    Request,
    Stop,
    Version,
    encode,
    introduction_from,
    line_of,
    outcome_from,
)
from conformance.implementations.protocol import OptionalMembers
from conformance.implementations.try_out import TryOut, missing, tried
from conformance.operations import Operation, Outcome
from conformance.operations.outcomes import FAILURE
from conformance.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.operations import Observation
    from conformance.operations.log import LogObservation

DEADLINE: Final = 10.0
"""Default time in seconds for each other reply than that to ``start``."""
START_DEADLINE: Final = 60.0
"""Time in seconds for the reply to ``start``, which includes compiling, or starting a virtual machine."""


class StartError(ToolError):
    """Program that cannot be started, or does not describe itself."""


class RestartedProcess:
    """Program that replies to requests.

    Args:
        command: The program and its arguments, in which ``{release}`` is replaced by the release.
        release: The release whose dialect the program must follow.
        version: The version of the protocol.
        deadline: The time limit in seconds for each reply.
        start_deadline: The time limit in seconds for the reply to ``start``.

    Attributes:
        holder: A list with the running process; empty if none runs.
    """

    def __init__(
        self,
        command: Sequence[str],
        release: str,
        version: Version,
        deadline: float,
        start_deadline: float,
    ) -> None:
        self.command = [word.replace("{release}", release) for word in command]
        self.holder: list[LineProcess] = []
        self._version = version
        self._deadline = deadline
        self._start_deadline = start_deadline
        self._finalizer = weakref.finalize(self, _kill, self.holder)

    def of_version(self, version: Version) -> RestartedProcess:
        """Return the same program for another version of the protocol, not started."""
        return RestartedProcess(self.command, "", version, self._deadline, self._start_deadline)

    def introduce(self) -> Any:
        """Start the program for the first time; return its introduction.

        Raises:
            StartError: The program does not exist, or does not reply properly to ``start``.
        """
        try:
            return self._start()
        except (LineProcessError, OSError) as error:
            raise StartError(f"{shlex.join(self.command)} cannot be used: {_reason(error)}") from None

    def request(self, request: Request) -> Any:
        """Send a request and return the reply, parsed; restart the process before if necessary.

        Raises:
            LineProcessError: The reply is missing or is not JSON.
        """
        if not self.holder:
            self._restart()
        process = self.holder[0]
        try:
            line = process.ask(line_of(request), self._deadline)
            return _parsed(process, line)
        except LineProcessError:
            self.holder.clear()
            raise

    def refuse(self, reply: Any, error: MalformedReplyError) -> NoReturn:
        """Raise a LineProcessError for a reply that the protocol does not allow, and kill the process."""
        process = self.holder[0]
        self.holder.clear()
        process.fail(f"gave a reply that the protocol does not allow ({error}), {quoted(encode(reply))},")

    def kill(self) -> None:
        """Kill the running process."""
        _kill(self.holder)

    def close(self, stop: Request | None) -> None:
        """End the process: send the stop request if there is one, and kill the process if it does not end."""
        if self.holder and stop is not None:
            self.holder[0].finish(line_of(stop), self._deadline)
        self._finalizer()

    def _start(self) -> Any:
        process = LineProcess(self.command)
        self.holder.append(process)
        try:
            line = process.ask(line_of(self._version.start), self._start_deadline)
            try:
                return introduction_from(self._version, _parsed(process, line))
            except MalformedReplyError as error:
                process.fail(f"gave a reply that the protocol does not allow ({error}), {quoted(line)},")
        except LineProcessError:
            self.holder.clear()
            raise

    def _restart(self) -> None:
        try:
            self._start()
        except OSError as error:
            raise LineProcessError("ended", f"could not be started again: {error.strerror or error}") from None


def _parsed(process: LineProcess, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        process.fail(f"replied with something that is not JSON, {quoted(repr(line))},")


def _kill(holder: list[LineProcess]) -> None:
    while holder:
        with contextlib.suppress(OSError):
            holder.pop().kill()


def _reason(error: LineProcessError | OSError) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror or error)
    return f"it {error}"


class ProcessParticipant(OptionalMembers):
    """Program that replies to requests (see :class:`conformance.implementations.protocol`).

    Args:
        command: The program and its arguments, in which ``{release}`` is replaced by the release.
        release: The release whose dialect the program must follow.
        name: The name in reports; by default the name in the program's introduction.
        deadline: The time limit in seconds for each reply.
        start_deadline: The time limit in seconds for the reply to ``start``.

    Attributes:
        about: The program's introduction, which is the reply to ``start``.
        capabilities: The capabilities of the program's indexes or log.
        failures_between_examples: The failures that occurred while an index or a log was closed between two examples.

    Raises:
        StartError: The program does not exist, or does not reply properly to ``start``.
    """

    speaks_kafka = False
    in_process = False
    """False, because the program has its own deadline for replies."""
    version: ClassVar[Version]
    observation_type: ClassVar[type[Observation | LogObservation]]
    """The type of its observations."""
    essential: ClassVar[frozenset[str]]
    """Operations that a machine cannot skip."""
    requests: ClassVar[dict[str, Any]]
    """The request of each operation that has one."""
    closing: ClassVar[Request]
    """The request that ends an example."""

    about: Introduction
    capabilities: frozenset[str]
    failures_between_examples: list[str]

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
        self._process = RestartedProcess(command, release, self.version, deadline, start_deadline)
        self.command, self._holder = self._process.command, self._process.holder  # the running process, in a list
        self.about = self._introduced()
        self.capabilities = self.about.declared()
        self.name = f"{self.about.name if name is None else name} {release}"
        self.failures_between_examples = []
        self._directory = Path()
        self._open = False
        self._failure: Outcome | None = None
        self._lacking: set[str] = set()
        outcomes = tried(self, self._try_outs())
        self._lacking |= missing(outcomes)
        self._judge(outcomes)
        self._failure = None
        self.failures_between_examples.clear()

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        self.end()
        self._directory = directory
        self._failure = None

    def end(self) -> None:
        """End the example; see the protocol. An open index or log is closed, so that it cannot change files later."""
        if self._open and self._failure is None:
            try:
                self._ask(self.closing)
            except LineProcessError as error:
                self.failures_between_examples.append(str(error))
        self._open = False

    def close(self) -> None:
        """End the process: send the stop request, and kill the process if it does not end."""
        self._process.close(Stop() if self._failure is None else None)

    def supports(self, operation: str) -> bool:
        """Return True if an operation is supported; all operations were tried when the process was first started."""
        return operation in self.essential or (operation in self.requests and operation not in self._lacking)

    def perform(self, operation: Operation) -> Any:
        """Execute an operation; see the protocol."""
        if self._failure is None:
            try:
                return self.observation_type(self._outcome(operation), self._state())
            except LineProcessError as error:
                self._failure = Outcome(FAILURE, None, str(error))
        return self.observation_type(self._failure, None)

    def _introduced(self) -> Any:
        """Start the program for the first time; return its introduction."""
        return self._process.introduce()

    def _try_outs(self) -> Iterable[TryOut]:
        """Return the operations to try once."""
        raise NotImplementedError

    def _judge(self, outcomes: dict[str, Outcome]) -> None:
        """Detect capabilities from the outcomes of the try-out."""

    def _outcome(self, operation: Operation) -> Outcome:
        raise NotImplementedError

    def _state(self) -> Any:
        """Return the state, or None if nothing is open."""
        raise NotImplementedError

    def _ask(self, request: Request, read: Callable[[Any], Outcome] | None = None) -> Outcome:
        """Send a request and return the outcome in its reply, which ``read`` (by default the version) extracts."""
        reply = self._process.request(request)
        try:
            return outcome_from(self.version, type(request), reply) if read is None else read(reply)
        except MalformedReplyError as error:
            self._process.refuse(reply, error)

    def _crash(self) -> None:
        self._open = False
        self._process.kill()
