"""Checks of an adapter's smoke test for a program: its reply to an unknown operation, and its exit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.experiments.smoke.kinds import CheckFailedError, open_new
from conformance.experiments.smoke.session import AdapterSession, ProcessSession

if TYPE_CHECKING:
    from conformance.implementations.process.messages import Request


def declares_the_unknown(kind: str, session: AdapterSession, _: Path) -> None:
    """Check that the program replies "unsupported" to an operation that no version of the protocol has."""
    assert isinstance(session, ProcessSession)
    open_new(session, kind)
    if session.send_unknown().error != "unsupported":
        raise CheckFailedError('An operation that the implementation does not have is answered {"unsupported": true}.')


def ends(request: Request | None, session: AdapterSession, _: Path) -> None:
    """Check that the program exits after a request, or after the end of its input if the request is None."""
    assert isinstance(session, ProcessSession)
    status, written = session.finish(request)
    if status is None:
        raise CheckFailedError(f"It had to be killed after {session.deadline:g} s: end when {_END[request is None]}.")
    if status != 0:
        raise CheckFailedError("It should end with exit status 0.")
    if written.strip() and (request is None or not _is_nothing(written)):
        raise CheckFailedError("It wrote to standard output without a request; write logs to standard error.")


_END: Final = {True: "standard input ends, or a killed harness leaves the process behind", False: "stop is read"}


def _is_nothing(text: str) -> bool:
    try:
        return bool(json.loads(text) == {"ok": None})
    except ValueError:
        return False
