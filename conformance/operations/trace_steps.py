"""Checks that a machine could have recorded the steps of a trace.

A trace may have been written by hand, or come from an untrusted source. Without these checks, a step could cause a
traceback, a replay that does not end, or a file outside the directory of the replay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from conformance.clauses.machines import SERVER_MACHINES
from conformance.operations import KINDS, Operation
from conformance.operations.broker import BROKER_OPS
from conformance.operations.index import INDEX_OPS
from conformance.operations.index_steps import describe_argument, has_valid_arguments, last_of, wrong_argument
from conformance.operations.op import PATH
from conformance.operations.operation import OPS
from conformance.quoting import quoted
from kidx.printable import encodable

_LONGEST_NAME: Final = 255
_LONGEST_PATH: Final = 1024
"""The maximum lengths in bytes of a file name, and of a path, which leaves space for its parent directory."""


class StepError(ValueError):
    """Step that cannot be executed; the message contains the step and the reason."""


def is_inside(value: Any) -> bool:
    """Return True if a path is inside the directory that it is relative to, in any implementation."""
    if not isinstance(value, str) or not value or "\0" in value or not _fits(value):
        return False
    path = PurePosixPath(value)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _fits(path: str) -> bool:
    """Return True if a file system accepts a path: it is encodable as UTF-8 (no lone surrogate) and not too long."""
    try:
        lengths = [len(name.encode()) for name in path.split("/")]
    except UnicodeEncodeError:
        return False
    return max(lengths) <= _LONGEST_NAME and sum(lengths) + len(lengths) <= _LONGEST_PATH


def check_steps(machine: str, operations: Sequence[Operation]) -> None:
    """Raise an error if the machine cannot have recorded these steps.

    Raises:
        StepError: The machine does not have the operation of a step, a step precedes the opening of the file, or an
            argument is out of range.
    """
    if machine in KINDS and operations and operations[0].name != "open":
        raise StepError(f"step 1 is {operations[0].name!r}; the first step of a trace must open a file or a log")
    for number, operation in enumerate(operations, start=1):
        where = f"step {number}, {operation.name!r}"
        if machine in KINDS:
            _check_index_step(where, machine, operation)
        elif machine in SERVER_MACHINES:
            _check_broker_step(where, number, operation)
        if machine not in KINDS:
            _check_texts(where, operation.args, in_names=machine not in SERVER_MACHINES)
            _check_types(where, operation)
            if not has_valid_arguments(operation):  # its own arguments are valid
                raise StepError(f"{where}: it corrupts a file by an unknown operation or with invalid arguments")


def _check_broker_step(where: str, number: int, operation: Operation) -> None:
    if operation.name not in BROKER_OPS:
        raise StepError(f"{where}: the broker machine has no such operation")
    if (operation.name == "create_topic") != (number == 1):
        raise StepError(f"{where}: only the first step can be create_topic, and must be")


def _check_index_step(where: str, machine: str, operation: Operation) -> None:
    name, arguments = operation
    if name not in INDEX_OPS or machine not in INDEX_OPS[name].of:
        raise StepError(f"{where}: the {machine} machine has no such operation")
    _check_types(where, operation)
    if name == "open" and arguments[0] != machine:
        raise StepError(f"{where}: kind is {arguments[0]!r}; a trace of the {machine} machine has only {machine!r}")
    if INDEX_OPS[name].many:
        _check_types(where, last_of(operation), "the last ")


def _check_types(where: str, operation: Operation, which: str = "") -> None:
    name, request = operation.name, operation.to_json()
    wrong = wrong_argument(name, request)
    if not wrong and OPS[name].arguments.get("path") is PATH and not is_inside(request["path"]):
        wrong = "path"
    if wrong:
        raise StepError(
            f"{where}: {which}{wrong} is {quoted(repr(request[wrong]))}, not {describe_argument(name, wrong)}"
        )


def _check_texts(where: str, arguments: Any, *, in_names: bool) -> None:
    """Check that every text in the arguments can be encoded as UTF-8.

    Args:
        where: The step, for messages.
        arguments: The arguments of the step.
        in_names: True if texts may become parts of file names; then they must not lead out of the directory.
    """
    for text in _texts(arguments):
        if encodable(text) != text:
            raise StepError(f"{where}: {quoted(repr(text))} is not text that UTF-8 can encode")
        if in_names and (text.startswith("/") or ".." in text or "\0" in text):
            raise StepError(f"{where}: {quoted(repr(text))} leads out of the directory of the replay")


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, including keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
