"""Program with a log that speaks the line protocol, version 2 (``conformance/schemas/protocol.json``)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from conformance.errors import NotDrivenError
from conformance.implementations.process import index_messages
from conformance.implementations.process import log_messages as messages
from conformance.implementations.process.messages import Stop
from conformance.implementations.process.participant import ProcessParticipant, StartError
from conformance.implementations.try_out import TRIED_ON_LOGS, TryOut
from conformance.operations import OK, UNSUPPORTED, Operation, Outcome
from conformance.operations.batches import first_batch
from conformance.operations.log import TOPIC_DIRECTORY, UNLIMITED, LogObservation, LogState
from conformance.operations.log_capabilities import NOT_REQUESTED, TIME_LOOKUPS, is_by_time
from conformance.operations.log_capabilities import missing as missing_capability
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path


class ProcessLog(ProcessParticipant):
    """Program with a log as an implementation.

    Attributes:
        excused: The number of steps with a tolerated difference, by the description of the difference.

    Raises:
        NotDrivenError: The program has no log, or supports only version 1 of the protocol.
    """

    version = messages.VERSION
    observation_type = LogObservation
    essential = frozenset({"open_log", "close_log", "crash_log", "append_as_follower"})
    requests = messages.REQUESTS
    closing = messages.Close(prepared=True)

    about: messages.LogIntroduction
    excused: Counter[str]

    def _introduced(self) -> Any:
        """Start the program with version 2, or with version 1 if that fails; return its introduction."""
        self.excused = Counter()
        self._dialect = dialect_of(self.release)
        try:
            about = self._process.introduce()
        except StartError:
            first = self._process.of_version(index_messages.VERSION)
            try:
                about = first.introduce()
            finally:
                first.close(None)
            if "log" in about.kinds:
                raise
        if "log" not in about.kinds:
            self._process.close(Stop())
            raise NotDrivenError(f"{' '.join(self.command)} has no log: its reply to start of protocol 2 names none")
        return about

    def _try_outs(self) -> Iterable[TryOut]:
        self.capabilities |= {TIME_LOOKUPS}
        return [TRIED_ON_LOGS]

    def _judge(self, outcomes: Mapping[str, Outcome]) -> None:
        """Add the capability of lookups by time if the program finds a record by time.

        Programs that are older than this capability do not declare it.
        """
        listed = outcomes.get("list_offsets", UNSUPPORTED)
        is_found = listed.error is not None or any(answer is not None and answer[0] >= 0 for answer in listed.value)
        if not is_found and TIME_LOOKUPS not in self.about.capabilities:
            self.capabilities -= {TIME_LOOKUPS}

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        super().begin(directory / TOPIC_DIRECTORY)

    def _outcome(self, operation: Operation) -> Outcome:
        name, arguments = operation
        if name == "crash_log":
            self._crash()
            return OK
        if missing_capability(operation, self.capabilities) or not self.supports(name):
            return UNSUPPORTED
        if name == "open_log":
            return self._open_log(*arguments)
        if name == "list_offsets":
            return self._list_offsets(*arguments)
        outcome = self._ask(messages.REQUESTS[name](*arguments))
        if name == "close_log" and outcome.error is None:
            self._open = False
        is_read = name == "read_log" and outcome.error is None
        return Outcome(None, first_batch(outcome.value)) if is_read else outcome

    def _list_offsets(self, targets: Sequence[int]) -> Outcome:
        """List offsets; without lookups by time, do not request these, and return NOT_REQUESTED for them."""
        if TIME_LOOKUPS in self.capabilities:
            return self._ask(messages.ListOffsets(list(targets)))
        asked = [target for target in targets if not is_by_time(target, self._dialect)]
        outcome = self._ask(messages.ListOffsets(asked))
        if outcome.error is not None or len(outcome.value) != len(asked):
            return outcome
        answers = iter(outcome.value)
        return Outcome(None, tuple(NOT_REQUESTED if is_by_time(t, self._dialect) else next(answers) for t in targets))

    def _open_log(self, settings: dict[str, Any], *arguments: Any) -> Outcome:
        if self._open:
            self._crash()
        self._directory.mkdir(parents=True, exist_ok=True)
        outcome = self._ask(messages.OpenLog(str(self._directory), UNLIMITED | settings, *arguments))
        self._open = outcome.error is None
        return outcome

    def _state(self) -> LogState | None:
        if not self._open:
            return None
        state: LogState = self._ask(messages.State(), messages.state_from).value
        return state
