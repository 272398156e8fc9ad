"""Session with an adapter: one request at a time to a program, or to an implementation in this process.

Unlike :class:`~conformance.implementations.process.ProcessIndex`, which turns failures into outcomes, a session raises
errors, and records the last request and reply.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, cast

from msgspec import UNSET, to_builtins

from conformance.errors import ToolError
from conformance.implementations.process import index_messages
from conformance.implementations.process.line_process import LineProcess, LineProcessError
from conformance.implementations.process.messages import (
    MalformedReplyError,
    Request,
    Version,
    outcome_from,
    request_type,
)
from conformance.operations import KINDS, Operation, Outcome, State
from conformance.operations.outcomes import FAILURE
from conformance.quoting import quoted

if TYPE_CHECKING:
    from conformance.implementations.protocol import Implementation


_Unknown: Final = request_type("no_such_operation", "", {})


class AdapterSession(Protocol):
    """Program that replies to requests.

    Attributes:
        kinds: kinds of index that the program may have.
        declares_kinds: True if the program itself has named the kinds.
        sent: last request.
        came: reply to the last request.
    """

    kinds: tuple[str, ...]
    declares_kinds: bool
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
    """Program with the line protocol, which is started on the first request.

    Args:
        command: the program and its arguments.
        deadline: maximum seconds for each reply.
        start_deadline: maximum seconds for the reply to ``start``.
    """

    version: ClassVar[Version] = index_messages.VERSION
    declares_kinds = True
    capabilities: Collection[str] = ()

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
            return self._say(self.version.start, self.start_deadline)
        return ""

    def begin(self, directory: Path) -> None:
        """See :class:`AdapterSession`."""
        self._directory = directory

    def ask(self, name: str, *arguments: Any) -> Outcome:
        """See :class:`AdapterSession`."""
        self.start()
        if name == "open":
            if self._open:  # only one index is open at a time
                self.ask("close")
            self._kind, path, *rest = arguments
            arguments = (self._kind, str(self._directory / path), *rest)
        outcome = self.send(index_messages.REQUESTS[name](*arguments))
        if name in ("open", "close", "delete"):
            self._open = name == "open" and outcome.error is None
        return outcome

    def state(self) -> State | Outcome | None:
        """See :class:`AdapterSession`."""
        line = self._say(index_messages.State(), self.deadline)
        with self.well_formed():
            outcome = index_messages.state_from(self._kind, json.loads(line))
        if outcome.error is None:
            return cast("State", outcome.value)
        return None if outcome.error == "unsupported" else outcome

    def send(self, request: Request, ok: Any = UNSET) -> Outcome:
        """Send a request; return the outcome in its reply.

        Args:
            ok: type of the ``ok`` of its reply, if the version of the protocol does not have the request.

        Raises:
            LineProcessError: there is no valid reply.
        """
        self.start()
        line = self._say(request, self.deadline)
        with self.well_formed():
            return outcome_from(self.version, type(request), json.loads(line), ok)

    def send_unknown(self) -> Outcome:
        """Send a request that no version of the protocol has."""
        return self.send(_Unknown(), Any)

    def kill(self) -> None:
        """End the process with SIGKILL."""
        if self.process is not None:
            self.process.kill()

    def finish(self, request: Request | None) -> tuple[int | None, str]:
        """See :meth:`LineProcess.finish`."""
        self.start()
        assert self.process is not None
        line = None if request is None else json.dumps(to_builtins(request))
        self.sent = "the end of its input" if line is None else line
        status, written = self.process.finish(line, self.deadline)
        self.came = "nothing in time" if status is None else f"exit status {status}"
        if written:
            self.came = f"{quoted(repr(written))}, {self.came}"
        return status, written

    def _say(self, request: Request, deadline: float) -> str:
        assert self.process is not None
        self.sent, self.came = json.dumps(to_builtins(request)), ""
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

    declares_kinds = False

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
