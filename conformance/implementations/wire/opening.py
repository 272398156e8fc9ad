"""From what ``-i`` says to a broker that listens: ``wire:HOST:PORT``, or a subject of the catalogue that is started."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from conformance.errors import ToolError
from conformance.implementations.forms import form_of
from conformance.implementations.spec import parse_spec
from conformance.implementations.subject.process import ServerProcess
from conformance.implementations.subject.server import server_of
from conformance.kafka.client.connection import Address
from conformance.subjects import load_subject

if TYPE_CHECKING:
    from collections.abc import Collection


class Reached(NamedTuple):
    """A broker that listens.

    Attributes:
        address: where.
        lacks: what it is known not to have.
        process: stops it and starts it again; None for one that is not ours, or that keeps nothing.
    """

    address: Address
    lacks: Collection[str] = ()
    process: ServerProcess | None = None


@contextmanager
def reached(text: str, start_command: str = "") -> Iterator[Reached]:
    """Where the broker listens; what is started here runs as long as the block.

    Args:
        text: the IMPL.
        start_command: starts the broker of a ``wire:`` in the foreground; empty for one that runs.

    Raises:
        ToolError: the text is no address, or the broker cannot be built or started.
    """
    form, (argument, *_) = parse_spec(text)
    if form == "wire":
        address = Address.parse(argument, text)
        if not start_command:
            yield Reached(address)
            return
        with ServerProcess("the broker of --start-command", words_of(start_command), address) as process:
            process.start()
            yield Reached(address, (), process)
        return
    subject = load_subject(argument)
    with server_of(subject) as process:
        yield Reached(process.start(), subject.without, process if subject.keeps else None)


def words_of(command: str) -> list[str]:
    """A command as its words, as a shell takes it apart.

    Raises:
        ToolError: it has none, or an open quote.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ToolError(f"the start command {command!r} cannot be taken apart: {error}") from None
    if not words:
        raise ToolError("the start command is empty")
    return words


def is_wire(text: str) -> bool:
    """Whether an IMPL is a broker that is driven over its protocol alone."""
    form = form_of(text)
    if form is None:
        return False
    return form.name == "wire" or (form.name == "subject" and load_subject(parse_spec(text).words[0]).driven == "wire")
