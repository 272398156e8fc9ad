"""Checks of an adapter's smoke test for a log, each with a new log; the adapter uses version 2 of the line protocol."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from conformance.experiments.smoke.of_kind import BASIC_CALLS, FIRST_LOST, CheckFailedError, NotJudgedError, expect_ok
from conformance.experiments.smoke.session import ProcessSession
from conformance.implementations.process import log_messages as messages
from conformance.implementations.process.messages import MalformedReplyError, introduction_from
from conformance.implementations.try_out import TRIED_ON_LOGS
from conformance.operations.batches import encode
from conformance.operations.log import TOPIC_DIRECTORY, LogState
from conformance.operations.log_capabilities import TIME_LOOKUPS

if TYPE_CHECKING:
    from conformance.operations import Outcome

_BATCH: Final = [{"base": 0, "epoch": 0, "records": [[0, 1000]]}]


class LogSession(ProcessSession):
    """Program that receives requests for a log."""

    version = messages.VERSION


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
    _done(session.send(messages.OpenLog(str(path), *TRIED_ON_LOGS.opening.args)), "A new log")
    return path


def _append(session: LogSession, batches: list[dict[str, Any]] = _BATCH) -> bytes:
    data = encode(batches)
    _done(session.send(messages.Append("follower", data, 0, False)), "Appending a batch as a follower")
    return data


def _state(session: LogSession) -> LogState:
    reply = session.send(messages.State())
    if reply.error is not None:
        raise CheckFailedError(f"An open log returns its state; it returned {reply}.")
    return cast("LogState", reply.value)


def _basic_calls(session: LogSession, directory: Path) -> None:
    try:
        _open(session, directory)
        _append(session)
    except NotJudgedError as reason:
        raise CheckFailedError(
            f"It declares log in its reply to start, and nothing can be compared. {reason}"
        ) from None
    _done(session.send(messages.ListOffsets([1000, -1])), "ListOffsets")
    if _state(session).end_offset != 1:
        raise CheckFailedError("After one batch of one record with offset 0, the end offset must be 1.")
    _done(session.send(messages.Close(prepared=True)), "Closing")


def _writes_to_given_path(session: LogSession, directory: Path) -> None:
    if "segments" not in session.capabilities:
        raise NotJudgedError("It does not declare the capability segments, so its files are not checked.")
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
    (found,) = _done(session.send(messages.ListOffsets([FIRST_LOST])), "A lookup by timestamp")
    if found is None or found[0] != FIRST_LOST:
        double = found is not None and found[0] in {int(float(FIRST_LOST)), int(math.nextafter(FIRST_LOST, 0))}
        hint = ": it looks as if your JSON library uses doubles" if double or found is None else ""
        raise CheckFailedError(f"A lookup of the timestamp {FIRST_LOST} returned {found}, not its record{hint}.")


def _finds_by_time(session: LogSession) -> bool:
    """Return True if a record with an ordinary timestamp is found."""
    _append(session)
    (found,) = _done(session.send(messages.ListOffsets([1000])), "A lookup by timestamp")
    return found is not None and found[0] >= 0


def _keeps_long_offsets(session: LogSession) -> None:
    """Check long numbers by the end offset of a log without lookups by time."""
    no_lookups = f"It has no lookups by time ({TIME_LOOKUPS} is not declared)"
    outcome = session.send(messages.TruncateFully(FIRST_LOST))
    if outcome.error is not None:
        raise NotJudgedError(f"{no_lookups} and no truncate_fully, so no reply can contain so large a number.")
    end = _state(session).end_offset
    if end != FIRST_LOST:
        raise CheckFailedError(f"{no_lookups}. After truncate_fully({FIRST_LOST}) the end offset is {end}.")


def _continues_after_error(session: LogSession, directory: Path) -> None:
    _open(session, directory)
    _append(session)
    outcome = session.send(messages.Append("follower", encode(_BATCH), 0, False))
    if outcome.error is None:
        raise NotJudgedError("It accepted an offset twice, so no error was checked; `conformance run` reports this.")
    _state(session)


def _every_request(session: LogSession, directory: Path) -> None:
    _open(session, directory)
    for operation in TRIED_ON_LOGS.operations[:-1]:
        session.send(messages.REQUESTS[operation.name](*operation.args))
        _state(session)
    _done(session.send(messages.Close(prepared=True)), "Closing")


def _opens_again(session: LogSession, directory: Path) -> None:
    _open(session, directory)
    _append(session)
    session.kill()
    _open(session, directory)
    _state(session)


def _declares_the_unknown(session: LogSession, directory: Path) -> None:
    _open(session, directory)
    if session.send_unknown().error != "unsupported":
        raise CheckFailedError('An operation that the implementation does not have is answered {"unsupported": true}.')


LogCheck = Callable[[LogSession, Path], None]
"""Check with a session and a new directory; it raises an error if the adapter fails."""
OF_LOGS: Final[tuple[tuple[str, LogCheck], ...]] = (
    (BASIC_CALLS, _basic_calls),
    ("writes its batches to the files in the given directory", _writes_to_given_path),
    ("keeps integers of 64 bits", _keeps_long_numbers),
    ("continues after an error", _continues_after_error),
    ("answers every request, or declares it unsupported", _every_request),
    ("opens its directory again after it was killed", _opens_again),
    ("declares an operation that it does not know as unsupported", _declares_the_unknown),
)
"""Checks, each with the property that it checks."""
