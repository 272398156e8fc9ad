"""Adapter session: one request at a time to an implementation in a process or in this one.

:class:`~conformance.implementations.process.ProcessIndex` turns failures into outcomes and continues; a session
records the last exchange and raises.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from conformance.errors import ToolError
from conformance.implementations.process import START, STATE
from conformance.implementations.process.line_process import LineProcess, LineProcessError
from conformance.implementations.replies import FAILURE, MalformedReplyError, outcome_from, state_from
from conformance.operations import KINDS, SIGNATURES, Operation, Outcome, State
from conformance.quoting import quoted

if TYPE_CHECKING:
    from conformance.implementations.protocol import Implementation
    from conformance.operations import Json


class AdapterSession(Protocol):
    """Program that replies to requests.

    Attributes:
        kinds: kinds of index that it may have.
        sent: last request.
        came: reply to it.
    """

    kinds: tuple[str, ...]
    sent: str
    came: str

    def begin(self, directory: Path) -> None:
        """Set the directory of the following requests."""

    def ask(self, name: str, *arguments: Any) -> Outcome:
        """Execute one operation; names of files are relative to the directory.

        Raises:
            LineProcessError: there is no valid reply.
        """

    def state(self) -> State | Outcome | None:
        """Return the state, an error, or None if it is unsupported."""


class ProcessSession:
    """Program that uses the line protocol, started when needed with ``start_request``.

    Args:
        command: the program and its arguments.
        deadline: maximum seconds for each reply.
        start_deadline: maximum seconds for the reply to ``start``.
    """

    start_request: ClassVar[Json] = START

    def __init__(self, command: list[str], deadline: float, start_deadline: float) -> None:
        self.command = command
        self.deadline = deadline
        self.start_deadline = start_deadline
        self.kinds: tuple[str, ...] = ()
        self.sent = self.came = ""
        self.process: LineProcess | None = None
        self._kind = ""
        self._open = False
        self._directory = Path()

    def start(self) -> str:
        """Start the program if it is not running.

        Returns:
            The reply to ``start``, unchecked; empty if it was running.

        Raises:
            LineProcessError: there is no reply.
            ToolError: the program does not exist.
        """
        if self.process is None or not self.process.alive:
            self._open = False
            try:
                self.process = LineProcess(self.command)
            except OSError as error:
                raise ToolError(f"cannot start {shlex.join(self.command)}: {error.strerror or error}") from None
            return self._say(self.start_request, self.start_deadline)
        return ""

    def begin(self, directory: Path) -> None:
        """See :class:`AdapterSession`."""
        self._directory = directory

    def ask(self, name: str, *arguments: Any) -> Outcome:
        """See :class:`AdapterSession`."""
        request = {"op": name, **dict(zip(SIGNATURES.get(name, ()), arguments, strict=True))}
        self.start()
        if name == "open":
            if self._open:  # only one index is open at a time
                self.ask("close")
            self._kind = arguments[0]
            request["path"] = str(self._directory / arguments[1])
        line = self._say(request, self.deadline)
        with self.well_formed():
            outcome = outcome_from(name, json.loads(line))
        if name in ("open", "close", "delete"):
            self._open = name == "open" and outcome.error is None
        return outcome

    def state(self) -> State | Outcome | None:
        """See :class:`AdapterSession`."""
        line = self._say(STATE, self.deadline)
        with self.well_formed():
            told = state_from(self._kind, json.loads(line))
        return None if isinstance(told, Outcome) and told.error == "unsupported" else told

    def kill(self) -> None:
        """End the process with SIGKILL."""
        if self.process is not None:
            self.process.kill()

    def finish(self, request: Json | None) -> tuple[int | None, str]:
        """See :meth:`LineProcess.finish`."""
        self.start()
        assert self.process is not None
        self.sent = "the end of its input" if request is None else json.dumps(request)
        status, written = self.process.finish(None if request is None else json.dumps(request), self.deadline)
        self.came = "nothing in time" if status is None else f"exit status {status}"
        if written:
            self.came = f"{quoted(repr(written))}, {self.came}"
        return status, written

    def _say(self, request: Json, deadline: float) -> str:
        assert self.process is not None
        self.sent, self.came = json.dumps(request), ""
        self.came = self.process.ask(self.sent, deadline)
        return self.came

    @contextmanager
    def well_formed(self) -> Iterator[None]:
        """Raise every error in the reply that this block checks as LineProcessError."""
        assert self.process is not None
        try:
            yield
        except MalformedReplyError as error:
            self.process.fail(f"gave a reply that the protocol does not have ({error})")
        except (ValueError, RecursionError):
            self.process.fail("replied with something that is not JSON")


class ObjectSession:
    """Implementation in this process."""

    def __init__(self, implementation: Implementation) -> None:
        self.implementation = implementation
        self.kinds: tuple[str, ...] = KINDS
        self.sent = self.came = ""
        self._state: State | None = None

    def begin(self, directory: Path) -> None:
        """See :class:`AdapterSession`."""
        self.implementation.begin(directory)

    def ask(self, name: str, *arguments: Any) -> Outcome:
        """See :class:`AdapterSession`."""
        operation = Operation(name, arguments)
        self.sent, self.came = str(operation), ""
        outcome, self._state = self.implementation.perform(operation)
        self.came = str(outcome)
        if outcome.error == FAILURE:
            self.came = ""
            raise LineProcessError("malformed", outcome.text or "")
        return outcome

    def state(self) -> State | Outcome | None:
        """See :class:`AdapterSession`."""
        return self._state
