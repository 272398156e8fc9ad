"""Program as an implementation (``exec:COMMAND``): the flow that indexes and logs have in common.

One process serves all examples. Each operation is a request, followed by a request for the state; a crash kills the
process, and the next request starts a new one. Operations that the program lacks, by its capabilities or by its replies
when each request is tried once, are ``unsupported``.

An error of the program itself, as opposed to a wrong result, is the outcome ``failure`` of the operation whose request
caused it, with the details as its text: a reply that is late, missing, malformed or redundant, and a crash. It is an
outcome and not an exception, so that a lockstep compares it, Hypothesis shrinks it and a trace replays it. The process
has been killed by then, and all later operations of that example fail in the same way; the next example starts a new
process.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from conformance.implementations.process.line_process import LineProcessError
from conformance.implementations.process.messages import (
    Introduction,
    MalformedReplyError,
    Request,
    Stop,
    Version,
    outcome_from,
)
from conformance.implementations.process.restarted import DEADLINE, START_DEADLINE, RestartedProcess
from conformance.implementations.try_out import TryOut, missing, tried
from conformance.operations import Operation, Outcome
from conformance.operations.outcomes import FAILURE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.operations import Observation
    from conformance.operations.log import LogObservation


class ProcessParticipant:
    """Program that replies to requests (see :class:`conformance.implementations.protocol`).

    Args:
        command: The program and its arguments; ``{release}`` in them is replaced by the release.
        release: The release whose dialect it must follow.
        name: The name in reports; by default the name in its reply to ``start``.
        deadline: The time limit for each reply, in seconds.
        start_deadline: The time limit for the reply to ``start``, in seconds.

    Attributes:
        about: Its reply to ``start``.
        capabilities: The capabilities of its indexes or log.
        failures_between_examples: Failures between examples: the machines close an index or a log in the middle of
            examples as well.

    Raises:
        StartError: The program does not exist, or does not reply properly to ``start``.
    """

    speaks_kafka = False
    in_process = False
    """False: it has a separate deadline for replies."""
    version: ClassVar[Version]
    observed: ClassVar[type[Observation | LogObservation]]
    """The type of its observations."""
    essential: ClassVar[frozenset[str]]
    """Operations that a machine cannot skip."""
    requests: ClassVar[dict[str, Any]]
    """The request of each operation that has one."""
    closing: ClassVar[Request]
    """The request that ends an example."""

    about: Introduction

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
        self.command, self._holder = self._process.command, self._process.holder
        self.about = self._introduced()
        self.capabilities = self.about.declared()
        self.name = f"{self.about.name if name is None else name} {release}"
        self.failures_between_examples: list[str] = []
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
        """End the example; see the protocol. What is open is closed, so that it does not touch its files later."""
        if self._open and self._failure is None:
            try:
                self._ask(self.closing)
            except LineProcessError as error:
                self.failures_between_examples.append(str(error))
        self._open = False

    def close(self) -> None:
        """End the process: request it to stop, and kill it if it does not."""
        self._process.close(Stop() if self._failure is None else None)

    def supports(self, operation: str) -> bool:
        """Return True if an operation is supported; all were tried when the process was first started."""
        return operation in self.essential or (operation in self.requests and operation not in self._lacking)

    def perform(self, operation: Operation) -> Any:
        """Execute an operation; see the protocol."""
        if self._failure is None:
            try:
                return self.observed(self._outcome(operation), self._state())
            except LineProcessError as error:
                self._failure = Outcome(FAILURE, None, str(error))
        return self.observed(self._failure, None)

    def _introduced(self) -> Any:
        """Start the program for the first time; return its introduction."""
        return self._process.introduce()

    def _try_outs(self) -> Iterable[TryOut]:
        """Return the operations to try once."""
        raise NotImplementedError

    def _judge(self, outcomes: dict[str, Outcome]) -> None:
        """Detect capabilities by the outcomes of the try-out."""

    def _outcome(self, operation: Operation) -> Outcome:
        raise NotImplementedError

    def _state(self) -> Any:
        """Return the state, or None if nothing is open."""
        raise NotImplementedError

    def _ask(self, request: Request, read: Callable[[Any], Outcome] | None = None) -> Outcome:
        """Send a request; return the outcome in its reply, as ``read`` or, without it, the version reads it."""
        reply = self._process.request(request)
        try:
            return outcome_from(self.version, type(request), reply) if read is None else read(reply)
        except MalformedReplyError as error:
            self._process.refuse(reply, error)

    def _crash(self) -> None:
        self._open = False
        self._process.kill()
