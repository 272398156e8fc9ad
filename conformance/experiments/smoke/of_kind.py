"""Checks of an adapter's smoke test for one kind of index, each with new files, and for a program.

Requests write a number to an index and read it. Numbers must return unchanged, which fails with JSON libraries that use
doubles. A program must also reply to an unknown operation, and exit.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.experiments.smoke.session import AdapterSession, ProcessSession
from conformance.implementations.process.line_process import LineProcessError
from conformance.implementations.try_out import INDEX_REQUESTS, SIZE
from conformance.operations import Operation, Outcome, State
from conformance.operations.index_capabilities import ENTRY_SIZES, OF_OPERATION
from kidx.java_values import LONG_MAX

if TYPE_CHECKING:
    from conformance.implementations.process.messages import Request

FIRST_LOST: Final = (1 << 53) + 1
"""Smallest positive integer that a double cannot represent; a double returns the preceding integer."""
_FRACTION: Final = re.compile(r"\d(?:\.\d|[eE][+-]?\d)")
_DOUBLES: Final = "It looks as if your JSON library uses doubles"
_HOW: Final = "Read and write JSON numbers as integers of 64 bits, not as doubles."


def keeps_long_numbers(kind: str, session: AdapterSession, _: Path) -> None:
    """Check that an index returns small numbers, and numbers that doubles cannot represent.

    The largest long alone does not suffice: the nearest double becomes the largest long again if conversions saturate.
    """
    if 7 not in _coming_back(session, kind, 7):
        raise NotJudgedError(
            "A small number is returned wrong, so large ones were not checked; `conformance run` reports this."
        )
    for key in (LONG_MAX, FIRST_LOST):
        session.ask("close")
        try:
            found = _coming_back(session, kind, key)
        except LineProcessError:
            if _FRACTION.search(session.came):
                raise CheckFailedError(f"{_DOUBLES}, and writes them. {_HOW}") from None
            raise
        if key not in found:
            raise CheckFailedError(f"{_lost(key, found)} {_HOW}")


def _lost(key: int, found: list[int]) -> str:
    for number in found:
        if number in {int(float(key)), int(math.nextafter(float(key), 0))}:
            return f"{_DOUBLES}: {key} comes back as {number}."
    return f"7 comes back, {key} does not."


def _coming_back(session: AdapterSession, kind: str, key: int) -> list[int]:
    """Write a number to a new index; return every number in the replies."""
    open_new(session, kind, str(key), OF_KIND[kind].base_of(key))
    expect_ok(session.ask(*OF_KIND[kind].append(key)), f"Appending {key}")
    outcome = session.ask(*OF_KIND[kind].read(key))
    found = list(_numbers(outcome.value))
    if isinstance(state := session.state(), State):
        found += state.last
    return found


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, tuple):
        for item in value:
            yield from _numbers(item)
    elif value is not None:
        yield value


BASIC_CALLS: Final = "opens, appends, looks up and closes"
"""Name of the first check of each kind; without it a run would compare nothing."""
_POSITION: Final = 120
"""Position that is appended to an offset index."""


class CheckFailedError(Exception):
    """Failed check; the message is the hint."""


class NotJudgedError(Exception):
    """Check that cannot be evaluated; the message is the reason."""


class RemarkError(Exception):
    """Passed check with something that the author of the adapter should know; the message says it."""


class NoSuchKindError(NotJudgedError):
    """Kind of index that the implementation does not have."""


class Kind(NamedTuple):
    """Requests that write a number to an index of one kind and read it back.

    Attributes:
        suffix: suffix of the index file.
        append: function that returns the request that writes a number.
        read: function that returns the request that reads the number.
        base_of: function that returns the base offset of an index for the number.
        provocations: requests that should raise errors.
    """

    suffix: str
    append: Callable[[int], tuple[Any, ...]]
    read: Callable[[int], tuple[Any, ...]]
    base_of: Callable[[int], int]
    provocations: tuple[tuple[Any, ...], ...]


# By the kind of index.
OF_KIND: Final = {
    "offset": Kind(
        ".index",
        lambda key: ("append", key, _POSITION),
        lambda key: ("lookup", key),
        lambda key: max(0, key - 100),
        (("append", 0, 0), ("entry", 1_000_000)),
    ),
    "time": Kind(
        ".timeindex",
        lambda key: ("maybe_append", key, 7, False),
        lambda key: ("lookup", key),
        lambda _: 0,
        (("maybe_append", 1, 0, False), ("entry", 1_000_000)),
    ),
    "transaction": Kind(
        ".txnindex",
        lambda key: ("append_aborted", 1, 0, key, key),
        lambda _: ("collect_aborted", 0, LONG_MAX),
        lambda _: 0,
        (("append_aborted", 1, 0, 0, 0), ("open", "transaction", "missing/0.txnindex", 0, -1, True)),
    ),
}


def open_new(session: AdapterSession, kind: str, name: str = "0", base_offset: int = 0) -> str:
    """Open a new index; return the name of its file."""
    name += OF_KIND[kind].suffix
    outcome = session.ask("open", kind, name, base_offset, SIZE, True)
    if outcome.error == "unsupported":
        raise NoSuchKindError(f"It has no index of kind {kind}.")
    expect_ok(outcome, f"A new index of kind {kind}")
    return name


def expect_ok(outcome: Outcome, what: str) -> None:
    """Check that a request succeeded."""
    if outcome.error == "unsupported":
        raise NotJudgedError(f"{what} is unsupported.")
    if outcome.error is not None:
        message = f"{what} was rejected although it is valid: {outcome}"
        raise CheckFailedError(f"{message}. Are the arguments read by their names?")


def expect_state(session: AdapterSession) -> None:
    """Check that the open index returns its state."""
    if isinstance(reply := session.state(), Outcome):
        raise CheckFailedError(
            f"An open index returns its state, or declares state as unsupported; it returned {reply}."
        )


KindCheck = Callable[[str, AdapterSession, Path], None]
"""Check of a kind of index, with a session and a new directory; it raises an error if the adapter fails."""


def _basic_calls(kind: str, session: AdapterSession, _: Path) -> None:
    open_new(session, kind)
    expect_ok(session.ask(*OF_KIND[kind].append(7)), "The first append")
    expect_ok(session.ask(*OF_KIND[kind].read(7)), "Looking up what was appended")
    expect_state(session)
    expect_ok(session.ask("close"), "Closing")


def _writes_to_given_path(kind: str, session: AdapterSession, directory: Path) -> None:
    name = open_new(session, kind)
    expect_ok(session.ask(*OF_KIND[kind].append(7)), "The first append")
    found = sorted(entry.name for entry in directory.iterdir())
    if found != [name]:
        raise CheckFailedError(
            f"After an append there should be the file {directory / name} and no other, but there is"
            f" {', '.join(found) or 'nothing'}: use the path of open unchanged, and create no other files."
        )
    if not any((directory / name).read_bytes()):
        raise CheckFailedError(
            f"The entry was acknowledged, but {name} has {(directory / name).stat().st_size} bytes and all are zero:"
            " the harness reads the file after every reply, so write through to the operating system before replying."
        )


def _continues_after_error(kind: str, session: AdapterSession, _: Path) -> None:
    open_new(session, kind)
    expect_ok(session.ask(*OF_KIND[kind].append(7)), "The first append")
    refusals = [session.ask(*provocation) for provocation in OF_KIND[kind].provocations]
    if all(outcome.error in (None, "unsupported") for outcome in refusals):
        raise NotJudgedError("It accepted every invalid call, so no error was checked; `conformance run` reports this.")
    open_new(session, kind, "1")
    expect_ok(session.ask(*OF_KIND[kind].append(7)), "An append to a new index after an error")
    expect_state(session)


def _every_operation(kind: str, session: AdapterSession, _: Path) -> None:
    """Check each reply, and the state after it, as a run does."""
    open_new(session, kind)
    for operation in INDEX_REQUESTS[kind]:
        session.ask(operation.name, *operation.args)
        expect_state(session)
    # Both for a closed and an open index, because an adapter may reject one and accept the other.
    for number, names in enumerate((("close", "delete"), ("delete", "delete"))):
        if number:
            open_new(session, kind, str(number))
        for name in names:
            session.ask(name)
            session.state()


def _reports_corruption(kind: str, session: AdapterSession, directory: Path) -> None:
    """Open and check a file that Kafka considers corrupt."""
    name = open_new(session, kind)
    expect_ok(session.ask(*OF_KIND[kind].append(7)), "The first append")
    expect_ok(session.ask("close"), "Closing")
    base_offset = 0
    if kind == "transaction":
        base_offset = 100  # a transaction that ended before the segment began
    else:
        with (directory / name).open("ab") as file:
            file.write(b"\1")  # part of an entry
    outcome = session.ask("open", kind, name, base_offset, SIZE, True)
    if outcome.error is None:
        outcome = session.ask("sanity_check")
    if outcome.error == "unsupported":
        raise NotJudgedError("sanity_check is unsupported.")
    if outcome.error != "corrupt":
        result = "accepted it" if outcome.error is None else f"reported {outcome.error}, not corrupt"
        raise NotJudgedError(f"It was given a corrupt file and {result}; `conformance run` reports this.")
    open_new(session, kind, "1")
    expect_ok(session.ask(*OF_KIND[kind].append(7)), "An append to a new index after a corrupt one")
    expect_state(session)


def _reopen_after_kill(kind: str, session: AdapterSession, _: Path) -> None:
    assert isinstance(session, ProcessSession)
    name = open_new(session, kind)
    expect_ok(session.ask(*OF_KIND[kind].append(7)), "The first append")
    session.kill()
    expect_ok(session.ask("open", kind, name, 0, SIZE, True), "Opening the file that a killed process left behind")
    expect_state(session)


def _as_declared(kind: str, session: AdapterSession, directory: Path) -> None:
    """Compare what the index does with the capabilities that the program declares."""
    assert isinstance(session, ProcessSession)
    declared = session.capabilities
    if kind in ENTRY_SIZES:
        _preallocates_as_declared(kind, session, directory)
    remarks = []
    for number, request in enumerate(each for each in _asked(kind) if each.name in OF_OPERATION):
        needed = OF_OPERATION[request.name]
        open_new(session, kind, f"{number}-of-several")
        has = session.ask(request.name, *request.args).error != "unsupported"
        missing = [capability for capability in needed if capability not in declared]
        if not has and not missing:
            raise CheckFailedError(f"It declares {' and '.join(needed)}, and answers {request.name} with unsupported.")
        if has and missing:
            remarks.append(f"It has {request.name}, which is not compared without {' and '.join(missing)}.")
    if remarks:
        raise RemarkError(f"{' '.join(remarks)} Declare what it has in index_capabilities.")


def _preallocates_as_declared(kind: str, session: ProcessSession, directory: Path) -> None:
    name, full = open_new(session, kind), SIZE - SIZE % ENTRY_SIZES[kind]
    expect_ok(session.ask(*OF_KIND[kind].append(7)), "The first append")
    if not (directory / name).exists():
        raise NotJudgedError("It creates no file at the given path.")
    size = (directory / name).stat().st_size
    seen = f"After the first append the new file has {size} bytes"
    if size == full and "preallocation" not in session.capabilities:
        raise CheckFailedError(
            f"{seen}, as many as max_index_size allows: the index preallocates its file. Declare preallocation in"
            " index_capabilities, or a run takes the zeros for entries."
        )
    if size != full and "preallocation" in session.capabilities:
        raise CheckFailedError(
            f"{seen}, not the {full} of max_index_size: the index does not preallocate its file. Reply to start with"
            " index_capabilities without preallocation; without index_capabilities it declares all of them."
        )


def _asked(kind: str) -> tuple[Operation, ...]:
    return (*INDEX_REQUESTS[kind], Operation("delete"))


OF_ALL: Final[tuple[tuple[str, KindCheck], ...]] = (
    (BASIC_CALLS, _basic_calls),
    ("writes its bytes to the file at the given path", _writes_to_given_path),
    ("keeps integers of 64 bits", keeps_long_numbers),
    ("continues after an error", _continues_after_error),
    ("reports a corrupt file, and continues", _reports_corruption),
    ("answers every operation, or declares it unsupported", _every_operation),
)
"""Checks of every implementation, each with the property that it checks; the others need the first."""
OF_PROCESSES: Final[tuple[tuple[str, KindCheck], ...]] = (
    ("opens its file again after it was killed", _reopen_after_kill),
    ("does what it declares", _as_declared),
)
"""Further checks of a program."""


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
    reply = None if request is None else _json(written)
    if not written.strip() or reply == {"ok": None}:
        return
    if reply is not None:
        raise CheckFailedError(f'It replies {written.strip()} to stop: end, with {{"ok": null}} or no reply at all.')
    raise CheckFailedError("It wrote to standard output without a request; write logs to standard error.")


_END: Final = {True: "standard input ends, or a killed harness leaves the process behind", False: "stop is read"}


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
