"""Broker of ``-i``: one that runs already (``wire:HOST:PORT``), or a third-party implementation that is started."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from conformance.errors import ToolError
from conformance.implementations.spec import parse_spec
from conformance.implementations.subject.process import ServerProcess, server_of
from conformance.kafka.client.connection import Address
from conformance.subjects import load_subject

if TYPE_CHECKING:
    from collections.abc import Collection


class Endpoint(NamedTuple):
    """Listening broker.

    Attributes:
        address: The broker's address.
        lacks: The features that the broker is known to lack.
        process: The process of the broker, with which it is stopped and restarted; None if this run has not started the
            broker, or if the broker does not persist records.
    """

    address: Address
    lacks: Collection[str] = ()
    process: ServerProcess | None = None


@contextmanager
def open_endpoint(text: str, start_command: str = "") -> Iterator[Endpoint]:
    """Yield the endpoint of a broker; a process that is started here runs until the end of the block.

    Args:
        text: The value of ``-i``, such as ``wire:localhost:9092``.
        start_command: The command that starts a ``wire:`` broker in the foreground; empty if the broker runs already.

    Raises:
        ToolError: The text contains no address, or the broker cannot be built or started.
    """
    form, (argument, *_) = parse_spec(text)
    if form == "wire":
        address = Address.parse(argument, text)
        if not start_command:
            yield Endpoint(address)
            return
        with ServerProcess("the broker of --start-command", words_of(start_command), address) as process:
            process.start()
            yield Endpoint(address, (), process)
        return
    subject = load_subject(argument)
    with server_of(subject) as process:
        yield Endpoint(process.start(), subject.without, process if subject.keeps_records else None)


def words_of(command: str) -> list[str]:
    """Split a command into words, as a shell does.

    Raises:
        ToolError: The command is empty, or has an unclosed quote.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ToolError(f"cannot parse the start command {command!r}: {error}") from None
    if not words:
        raise ToolError("the start command is empty")
    return words
