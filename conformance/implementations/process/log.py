"""Program with a log that speaks the line protocol, version 2 (``exec:COMMAND`` on the log machine).

It works like :mod:`conformance.implementations.process.index`: each operation is a request, followed by a request for
the state while a log is open; an error of the program itself is the outcome ``failure``. A crash kills the process.
Operations that the program lacks, by its capabilities or by its replies when each request is tried once, are
``unsupported``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from conformance.errors import NotDrivenError
from conformance.implementations.process import log_messages as messages
from conformance.implementations.process.line_process import LineProcessError
from conformance.implementations.process.restarted import (
    DEADLINE,
    START_DEADLINE,
    STOP,
    RestartedProcess,
    StartError,
)
from conformance.implementations.replies import FAILURE, MalformedReplyError, about_from
from conformance.operations import OK, UNSUPPORTED, Json, Operation, Outcome
from conformance.operations.batches import encode, first_batch, is_marker
from conformance.operations.log import TOPIC_DIRECTORY, UNLIMITED, LogObservation, LogState
from conformance.operations.log_capabilities import NOT_REQUESTED, TIME_LOOKUPS, is_by_time, missing
from conformance.scratch import scratch_directory
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Sequence

LOG_START: Final[Json] = {"op": "start", "protocol": messages.PROTOCOL}
_ONE_BATCH: Final = 1

REQUESTS: Final[dict[str, Callable[..., messages.Request]]] = {
    "append_as_leader": lambda batches, epoch: messages.Append("leader", encode(batches), epoch, is_marker(batches)),
    "append_as_follower": lambda batches, epoch: messages.Append("follower", encode(batches), epoch, False),
    **messages.OF_OPERATION,
    "read_log": lambda offset: messages.Read(offset, _ONE_BATCH),
}
"""Request of each operation that has one, except opening."""
ESSENTIAL: Final = frozenset({"open_log", "close_log", "crash_log", "append_as_follower"})

TRY_OUT_SETTINGS: Final[dict[str, Any]] = {
    "segment.bytes": 1000,
    "segment.index.bytes": 1200,
    "index.interval.bytes": 0,
}
_ONE: Final = {"base": 1, "epoch": 0, "records": [[0, 1000]]}
TRY_OUT: Final = (
    Operation("append_as_leader", ([{"records": [[0, 1000]]}], 0)),
    Operation("append_as_follower", ([_ONE], 0)),
    Operation("list_offsets", ((1000,),)),
    Operation("read_log", (0,)),
    Operation("update_high_watermark", (2,)),
    Operation("roll_log"),
    Operation("assign_epoch", (1, 2)),
    Operation("set_clock", (20_000,)),
    Operation("expire_producers"),
    Operation("delete_records", (1,)),
    Operation("apply_retention"),
    Operation("truncate_log", (2,)),
    Operation("truncate_fully", (5,)),
    Operation("close_log", (True,)),
)
"""Every request once, on a separate log."""


class ProcessLog:
    """Program with a log as an implementation (see :class:`conformance.implementations.protocol`).

    Args:
        command: The program and its arguments; ``{release}`` in them is replaced by the release.
        release: The release whose dialect it must follow.
        name: The name in reports; by default the name in its reply to ``start``.
        deadline: The time limit for each reply, in seconds.
        start_deadline: The time limit for the reply to ``start``, in seconds.

    Attributes:
        capabilities: The capabilities of its log, of :data:`conformance.operations.log_capabilities.CAPABILITIES`.
        excused: The number of steps with a tolerated difference, by the text of the tolerance.

    Raises:
        NotDrivenError: It has no log, or supports only version 1 of the protocol.
        StartError: The program does not exist, or does not reply properly to ``start``.
    """

    speaks_kafka = False
    in_process = False

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
        self._process = RestartedProcess(
            command, release, LOG_START, messages.introduction_from, deadline, start_deadline
        )
        self.command, self._holder = self._process.command, self._process.holder
        introduction = self._introduced(command, deadline, start_deadline)
        if introduction is None:
            self._process.close(STOP)
            raise NotDrivenError(f"{' '.join(self.command)} has no log: its reply to start of protocol 2 names none")
        self.about = introduction
        self.name = f"{introduction.name if name is None else name} {release}"
        self.capabilities = frozenset(introduction.capabilities) | {TIME_LOOKUPS}
        self.excused: Counter[str] = Counter()
        self._directory = Path()
        self._open = False
        self._failure: Outcome | None = None
        self._lacking: set[str] = set()
        self._dialect = dialect_of(release)
        self.failures_between_examples: list[str] = []
        self._try_out()

    def _introduced(
        self, command: Sequence[str], deadline: float, start_deadline: float
    ) -> messages.Introduction | None:
        """Return its description, or None; a program that fails at protocol 2 may support protocol 1, without a log."""
        try:
            return self._process.introduce()
        except StartError:
            first = RestartedProcess(
                command, self.release, {"op": "start", "protocol": 1}, about_from, deadline, start_deadline
            )
            try:
                about = first.introduce()
            finally:
                first.close(None)
            if "log" in about.kinds:
                raise
            return None

    def _try_out(self) -> None:
        """Detect missing operations; if the program fails, the machines will find the cause."""
        with scratch_directory() as directory:
            self.begin(directory)
            if self.perform(Operation("open_log", (TRY_OUT_SETTINGS, 0, 0, True, 10_000))).outcome.error is None:
                for operation in TRY_OUT:
                    outcome = self.perform(operation).outcome
                    if outcome.error == "unsupported":
                        self._lacking.add(operation.name)
                    elif operation.name == "list_offsets" and outcome.error is None:
                        self._look_at(outcome.value)
            self.end()
        self._failure = None
        self.failures_between_examples.clear()

    def _look_at(self, answers: Sequence[tuple[int, int, int] | None]) -> None:
        """Detect whether it supports lookups by time, unless its capabilities include them.

        Programs from before this capability do not list it: they support lookups if they find a record.
        """
        is_found = any(answer is not None and answer[0] >= 0 for answer in answers)
        if not is_found and TIME_LOOKUPS not in self.about.capabilities:
            self.capabilities -= {TIME_LOOKUPS}

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        self.end()
        self._directory = directory / TOPIC_DIRECTORY
        self._failure = None

    def end(self) -> None:
        """End the example; see the protocol. An open log is closed, so that it does not touch its files later."""
        if self._open and self._failure is None:
            try:
                self._ask(messages.Close(prepared=True))
            except LineProcessError as error:
                self.failures_between_examples.append(str(error))
        self._open = False

    def close(self) -> None:
        """End the process: request it to stop, and kill it if it does not."""
        self._process.close(STOP if self._failure is None else None)

    def supports(self, operation: str) -> bool:
        """Return True if an operation is supported; all requests were tried when the process was first started."""
        return operation in ESSENTIAL or (operation in REQUESTS and operation not in self._lacking)

    def perform(self, operation: Operation) -> LogObservation:
        """Execute an operation; see the protocol."""
        if self._failure is not None:
            return LogObservation(self._failure, None)
        try:
            outcome = self._outcome(operation)
            return LogObservation(outcome, self._state() if self._open else None)
        except LineProcessError as error:
            self._failure = Outcome(FAILURE, None, str(error))
            return LogObservation(self._failure, None)

    def _outcome(self, operation: Operation) -> Outcome:
        name, arguments = operation
        if name == "crash_log":
            self._crash()
            return OK
        if missing(operation, self.capabilities) or name in self._lacking:
            return UNSUPPORTED
        if name == "open_log":
            return self._open_log(*arguments)
        if name not in REQUESTS:
            return UNSUPPORTED
        outcome = self._list_offsets(*arguments) if name == "list_offsets" else self._told(REQUESTS[name](*arguments))
        if name == "close_log" and outcome.error is None:
            self._open = False
        if name == "read_log" and outcome.error is None:
            return Outcome(None, first_batch(outcome.value))
        return outcome

    def _list_offsets(self, targets: Sequence[int]) -> Outcome:
        """List offsets; without lookups by time request the other targets only, and put the results in their places."""
        if TIME_LOOKUPS in self.capabilities:
            return self._told(messages.ListOffsets(list(targets)))
        asked = [target for target in targets if not is_by_time(target, self._dialect)]
        outcome = self._told(messages.ListOffsets(asked))
        if outcome.error is not None or len(outcome.value) != len(asked):
            return outcome
        answers = iter(outcome.value)
        return Outcome(None, tuple(NOT_REQUESTED if is_by_time(t, self._dialect) else next(answers) for t in targets))

    def _open_log(self, settings: dict[str, Any], start: int, recovery_point: int, clean: bool, now: int) -> Outcome:
        if self._open:
            self._crash()
        self._directory.mkdir(parents=True, exist_ok=True)
        path = str(self._directory)
        outcome = self._told(messages.OpenLog(path, UNLIMITED | settings, start, recovery_point, clean, now))
        self._open = outcome.error is None
        return outcome

    def _crash(self) -> None:
        self._open = False
        self._process.kill()

    def _told(self, request: messages.Request) -> Outcome:
        told = self._ask(request)
        if isinstance(told, Outcome):
            return told
        return OK if told is None else Outcome(None, told)

    def _state(self) -> LogState:
        told = self._ask(messages.State())
        if isinstance(told, Outcome):
            self._process.refuse(told.to_json(), MalformedReplyError("a log that is open returns its state"))
        return cast("messages.StateReply", told).to_state()

    def _ask(self, request: messages.Request) -> Any:
        reply = self._process.request(messages.to_line.encode(request).decode())
        try:
            return messages.reply_from(type(request), reply)
        except MalformedReplyError as error:
            self._process.refuse(reply, error)
