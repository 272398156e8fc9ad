"""Program with indexes that speaks the line protocol, version 1 (``conformance/schemas/protocol.json``).

Operations without a request in the protocol:

============================ ======================================================================================
``bulk_append``, …           many appends, up to the first error
``crash``                    the process is killed (SIGKILL), and restarted by the next ``open``
``open`` while one is open   a ``crash`` before it: only one index is open at a time
``rename``, ``all_aborted``  unsupported
============================ ======================================================================================
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from conformance.errors import NotDrivenError
from conformance.implementations.process import index_messages as messages
from conformance.implementations.process.participant import ProcessParticipant
from conformance.implementations.protocol import BULK, takes
from conformance.implementations.try_out import TRIED_ON_INDEXES, TryOut
from conformance.operations import KINDS, OK, SIGNATURES, UNSUPPORTED, Observation, Operation, Outcome, State
from conformance.operations.index import ESSENTIAL
from conformance.operations.index_capabilities import OF_OPERATION

if TYPE_CHECKING:
    from collections.abc import Iterable


class ProcessIndex(ProcessParticipant):
    """Program with indexes as an implementation.

    The state of an observation is None in these cases: no index is open; the program does not support ``state``; or the
    index is closed, and the program rejects the request or lacks ``calls_after_close``. An error in reply to ``state``
    while an index is open is a failure.
    """

    takes_negative_sizes = False
    version = messages.VERSION
    observation_type = Observation
    essential = ESSENTIAL
    requests = messages.REQUESTS
    closing = messages.REQUESTS["close"]()

    about: messages.IndexIntroduction

    _kind = ""
    _closed = False
    """True if the index has been closed or deleted, and requests follow."""

    def _try_outs(self) -> Iterable[TryOut]:
        return [TRIED_ON_INDEXES[kind] for kind in self.about.kinds if kind in KINDS]

    def require(self, kind: str) -> None:
        """Raise an error if the program has no index of a kind.

        Raises:
            NotDrivenError: Its reply to ``start`` does not name the kind.
        """
        if kind not in self.about.kinds:
            self._process.kill()
            kinds = ", ".join(self.about.kinds)
            raise NotDrivenError(f"{' '.join(self.command)} has no {kind} index: its reply to start names {kinds}")

    def end(self) -> None:
        """End the example; see the protocol."""
        super().end()
        self._closed = False

    def supports(self, operation: str) -> bool:
        """Return True if an operation is supported, and if it needs no missing capability."""
        name = BULK.get(operation, operation)
        return self.capabilities.issuperset(OF_OPERATION.get(name, ())) and super().supports(name)

    @property
    def reports_state(self) -> bool:
        """True if the program supports ``state``; if not, only outcomes and files are compared."""
        return "state" not in self._lacking

    def _outcome(self, operation: Operation) -> Outcome:
        name, arguments = operation
        if not takes(self, operation) or (self._rejects_requests and name not in ("open", "crash")):
            return UNSUPPORTED
        if name == "open":
            return self._open_index(*arguments)
        if name in messages.REQUESTS:
            return self._call(name, arguments)
        if name in BULK:
            return self._bulk(name, *arguments)
        if name == "crash":
            self._crash()
            return OK
        return UNSUPPORTED

    def _open_index(self, kind: str, path: str, *arguments: Any) -> Outcome:
        if self._open:
            self._crash()
        self._closed, self._kind = False, kind
        if kind not in self.about.kinds:
            return UNSUPPORTED
        outcome = self._ask(messages.REQUESTS["open"](kind, f"{self._directory}/{path}", *arguments))
        self._open = outcome.error is None
        return outcome

    def _call(self, name: str, arguments: tuple[Any, ...]) -> Outcome:
        outcome = self._ask(messages.REQUESTS[name](*arguments))
        if name in ("close", "delete") and outcome.error != "unsupported":
            self._closed, self._open = self._closed or self._open, False
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
        super()._crash()
        self._closed = False

    @property
    def _rejects_requests(self) -> bool:
        """True if the index is closed and the program rejects all requests to a closed index."""
        return self._closed and "calls_after_close" not in self.capabilities

    def _state(self) -> State | None:
        if not (self._open or self._closed) or not self.reports_state or self._rejects_requests:
            return None
        outcome = self._ask(messages.State(), partial(messages.state_from, self._kind, is_open=self._open))
        if outcome.error == "unsupported":
            self._lacking.add("state")
        state: State | None = outcome.value
        return state
