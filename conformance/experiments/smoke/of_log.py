"""Checks of a log that uses version 2 of the line protocol, each with a new log."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from conformance.experiments.smoke.kinds import CheckFailedError, NotJudgedError, expect_ok
from conformance.experiments.smoke.numbers import FIRST_LOST
from conformance.experiments.smoke.session import ProcessSession
from conformance.implementations.process import log_messages as messages
from conformance.implementations.process.messages import MalformedReplyError, introduction_from
from conformance.implementations.try_out import LOG
from conformance.operations.batches import encode
from conformance.operations.log import TOPIC_DIRECTORY, LogState
from conformance.operations.log_capabilities import TIME_LOOKUPS

if TYPE_CHECKING:
    from conformance.operations import Outcome

_BATCH: Final = [{"base": 0, "epoch": 0, "records": [[0, 1000]]}]


class LogSession(ProcessSession):
    """Program that receives requests for a log."""

    version = messages.VERSION
    capabilities: Collection[str] = ()


def introduces_a_log(session: LogSession, _: Path) -> None:
    """Check the reply to ``start`` of protocol 2 from a program that has declared a log."""
    line = session.start()
    with session.well_formed():
        introduction = introduction_from(session.version, json.loads(line))
        if "log" not in introduction.kinds:
            raise MalformedReplyError('the reply to start of protocol 2 names "log" among its kinds')
        session.capabilities = introduction.capabilities


def _done(outcome: Outcome, what: str) -> Any:
    """Check that a request succeeded, and return its value."""
    expect_ok(outcome, what)
    return outcome.value


def _open(session: LogSession, directory: Path) -> Path:
    path = directory / TOPIC_DIRECTORY
    path.mkdir(exist_ok=True)
    _done(session.tell(messages.OpenLog(str(path), *LOG.opening.args)), "A new log")
    return path


def _append(session: LogSession, batches: list[dict[str, Any]] = _BATCH) -> bytes:
    data = encode(batches)
    _done(session.tell(messages.Append("follower", data, 0, False)), "Appending a batch as a follower")
    return data


def _state(session: LogSession) -> LogState:
    reply = session.tell(messages.State())
    if reply.error is not None:
        raise CheckFailedError(f"An open log returns its state; it returned {reply}.")
    return cast("LogState", reply.value)


def _life(session: LogSession, directory: Path) -> None:
    _open(session, directory)
    _append(session)
    _done(session.tell(messages.ListOffsets([1000, -1])), "Asking for offsets")
    if _state(session).end_offset != 1:
        raise CheckFailedError("The end offset after a batch of one record, whose offset is 0, is 1.")
    _done(session.tell(messages.Close(prepared=True)), "Closing")


def _files_where_told(session: LogSession, directory: Path) -> None:
    if "segments" not in session.capabilities:
        raise NotJudgedError("It does not keep Kafka's segments and files.")
    path = _open(session, directory)
    data = _append(session)
    file = path / f"{0:020d}.log"
    if not file.is_file():
        found = ", ".join(sorted(entry.name for entry in path.iterdir())) or "nothing"
        raise CheckFailedError(f"The given directory contains {found}, not {file.name}.")
    if file.read_bytes() != data:
        raise CheckFailedError(f"{file.name} does not contain the batch: write to the file before you reply.")


def _keeps_long_numbers(session: LogSession, directory: Path) -> None:
    _open(session, directory)
    is_declared = TIME_LOOKUPS in session.capabilities
    if not is_declared and not _finds_by_time(session):
        _keeps_long_offsets(session)
        return
    _append(session, [{"base": int(not is_declared), "epoch": 0, "records": [[0, FIRST_LOST]]}])
    (found,) = _done(session.tell(messages.ListOffsets([FIRST_LOST])), "Asking for a timestamp")
    if found is None or found[0] != FIRST_LOST:
        double = found is not None and found[0] in {int(float(FIRST_LOST)), int(math.nextafter(FIRST_LOST, 0))}
        said = "it looks as if your JSON library uses doubles" if double or found is None else "another number came"
        raise CheckFailedError(f"The timestamp {FIRST_LOST} comes back as {found}: {said}.")


def _finds_by_time(session: LogSession) -> bool:
    """Return True if a record with an ordinary timestamp is found."""
    _append(session)
    (found,) = _done(session.tell(messages.ListOffsets([1000])), "Asking for a timestamp")
    return found is not None and found[0] >= 0


def _keeps_long_offsets(session: LogSession) -> None:
    """Check long numbers by the end offset of a log without lookups by time."""
    no_lookups = f"It has no lookups by time ({TIME_LOOKUPS} is not declared)"
    told = session.tell(messages.TruncateFully(FIRST_LOST))
    if told.error is not None:
        raise NotJudgedError(f"{no_lookups} and no truncate_fully: none of its replies holds a number so large.")
    end = _state(session).end_offset
    if end != FIRST_LOST:
        raise CheckFailedError(
            f"{no_lookups}. Restarted at the offset {FIRST_LOST}, the log says that it ends at {end}."
        )


def _goes_on(session: LogSession, directory: Path) -> None:
    _open(session, directory)
    _append(session)
    told = session.tell(messages.Append("follower", encode(_BATCH), 0, False))
    if told.error is None:
        raise NotJudgedError("An existing offset was appended again: a run will show it.")
    _state(session)


def _every_request(session: LogSession, directory: Path) -> None:
    _open(session, directory)
    for operation in LOG.operations[:-1]:
        session.tell(messages.REQUESTS[operation.name](*operation.args))
        _state(session)
    _done(session.tell(messages.Close(prepared=True)), "Closing")


def _opens_again(session: LogSession, directory: Path) -> None:
    _open(session, directory)
    _append(session)
    session.kill()
    _open(session, directory)
    _state(session)


def _declares_the_unknown(session: LogSession, directory: Path) -> None:
    _open(session, directory)
    if session.tell_unknown().error != "unsupported":
        raise CheckFailedError('An operation that the implementation does not have is answered {"unsupported": true}.')


LogCheck = Callable[[LogSession, Path], None]
OF_LOGS: Final[tuple[tuple[str, LogCheck], ...]] = (
    ("opens, appends, looks up and closes", _life),
    ("writes its batches to the files in the given directory", _files_where_told),
    ("keeps integers of 64 bits", _keeps_long_numbers),
    ("continues after an error", _goes_on),
    ("answers every request, or declares it unsupported", _every_request),
    ("opens its directory again after it was killed", _opens_again),
    ("declares an operation that it does not know as unsupported", _declares_the_unknown),
)
