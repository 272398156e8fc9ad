"""From what ``-i`` says to a broker that listens: ``wire:HOST:PORT``, or a subject of the catalogue that is started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from conformance.implementations.forms import form_of
from conformance.implementations.spec import parse_spec
from conformance.implementations.subject.server import started
from conformance.kafka.client.connection import Address
from conformance.subjects import load_subject

if TYPE_CHECKING:
    from collections.abc import Collection


@contextmanager
def address_of(text: str) -> Iterator[tuple[Address, Collection[str]]]:
    """Where the broker listens, and what it is known not to have; a subject runs as long as the block.

    Raises:
        ToolError: the text is no address, or the subject cannot be built or started.
    """
    form, (argument, *_) = parse_spec(text)
    if form == "wire":
        yield Address.parse(argument, text), ()
        return
    subject = load_subject(argument)
    with started(subject) as address:
        yield address, subject.without


def is_wire(text: str) -> bool:
    """Whether an IMPL is a broker that is driven over its protocol alone."""
    form = form_of(text)
    if form is None:
        return False
    return form.name == "wire" or (form.name == "subject" and load_subject(parse_spec(text).words[0]).driven == "wire")
