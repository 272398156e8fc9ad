"""Checks of an adapter's smoke test for one kind of index, each with new files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from conformance.experiments.smoke.kinds import (
    BASIC_CALLS,
    OF_KIND,
    CheckFailedError,
    NotJudgedError,
    RemarkError,
    expect_ok,
    expect_state,
    open_new,
)
from conformance.experiments.smoke.numbers import keeps_long_numbers
from conformance.experiments.smoke.session import AdapterSession, ProcessSession
from conformance.implementations.try_out import INDEX_REQUESTS, SIZE
from conformance.operations import Operation
from conformance.operations.index_capabilities import ENTRY_SIZES, OF_OPERATION

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
