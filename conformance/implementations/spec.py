"""Specifications for ``-i IMPL``, and the implementations that they name.

========================= ===========================================================================================
``jvm``                   Kafka's own classes of the release (:mod:`conformance.implementations.jvm`)
``exec:COMMAND``          a program that speaks the line protocol (:mod:`conformance.implementations.process`); quotes
                          have their meaning in a shell, all other characters are literal; ``{release}`` is replaced
``python:MODULE:FACTORY`` Python classes (:mod:`conformance.implementations.python.objects`)
``mutant:NAME``           kidx with one reviewed defect (:mod:`conformance.implementations.mutants`)
``wire:HOST:PORT``        any broker, by its protocol alone (:mod:`conformance.implementations.wire`)
``subject:NAME``          a third-party implementation of the catalogue (:mod:`conformance.subjects`), driven as Java
                          classes (``jvm``), by the line protocol (``line``) or by Kafka's protocol (``wire``)
``broker``                a real broker, which has no index to drive: only the broker machine accepts it
``jvm:DIR, broker:DIR``   the same from a build's jars (:mod:`conformance.kafka.builds`)
========================= ===========================================================================================
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, NamedTuple

from conformance.errors import NotDrivenError, ToolError
from conformance.implementations.forms import FORMS, form_of
from conformance.implementations.process import DEADLINE, ProcessIndex
from conformance.implementations.python.objects import PythonObjectIndex, load_factory
from conformance.implementations.subject.build import classes_of
from conformance.kafka.builds import Build, open_build
from conformance.kafka.client.connection import Address
from conformance.operations import KINDS
from conformance.subjects import load_subject

if TYPE_CHECKING:
    from conformance.implementations.protocol import Implementation
    from conformance.kafka.jar_fetch import Progress

ImplementationFactory = Callable[[str, "Progress | None"], "Implementation"]
"""Function that takes a release and a callback for the progress of downloads, and returns an implementation."""


class Spec(NamedTuple):
    """Parsed IMPL.

    Attributes:
        form: ``jvm``, ``broker``, ``wire``, ``exec``, ``python`` or ``mutant``.
        words: The command of ``exec``, module and factory of ``python``, the address of ``wire``, the name of a
            ``mutant``, or the directory of ``jvm`` and ``broker`` if there is one.
    """

    form: str
    words: tuple[str, ...] = ()


def parse_spec(text: str) -> Spec:
    """Parse a value of ``-i IMPL``, without starting or importing anything.

    Raises:
        ToolError: The text has none of the forms.
    """
    form = form_of(text)
    if form is None:
        *others, last = map(str, FORMS.values())
        raise ToolError(f"{text!r} is not an implementation: write {', '.join(others)} or {last}")
    rest = text.partition(":")[2]
    if form.name == "exec":
        return Spec(form.name, _command(text, rest))
    if form.name == "python":
        module, _, factory = rest.partition(":")
        names = (*module.split("."), *factory.split("."))
        if not all(name.isidentifier() for name in names):
            raise ToolError(
                f"{text!r} does not name a factory: write python:MODULE:FACTORY, such as python:my.index:open_index"
            )
        return Spec(form.name, (module, factory))
    if form.name == "subject":
        load_subject(rest)
    if form.name == "wire":
        Address.parse(rest, repr(text))
    return Spec(form.name, (rest,) if rest else ())


def implementation_factory(text: str, *, deadline: float = DEADLINE) -> ImplementationFactory:
    """Return a factory for the implementations that a value of ``-i`` names, one for each release.

    Args:
        text: The value of ``-i``, such as ``exec:./my-index``.
        deadline: The time in seconds that a program (``exec:``) has for each reply.

    Raises:
        ToolError: The text has none of the forms, or the Python factory cannot be imported. The factory raises it if a
            program cannot be started, no Java is found, or the jars cannot be downloaded.
    """
    form, words = parse_spec(text)
    if form == "exec":
        return lambda release, _: ProcessIndex(words, release, name=text, deadline=deadline)
    if form == "python":
        factory = load_factory(*words)
        return lambda release, _: PythonObjectIndex(factory, release, text)
    if form == "mutant":
        return lambda release, _: mutant_subject(words[0], release, KINDS)
    if form == "jvm":
        return lambda release, progress: _jvm(release, progress, *words)
    if form == "subject" and load_subject(words[0]).driven == "jvm":
        return lambda release, progress: _subject(release, progress, words[0])
    if form == "subject" and load_subject(words[0]).driven == "line":
        raise NotDrivenError(f"{text} has a log and no separate index: only the log machine can test it")
    raise ToolError(f"a broker has no separate index: only the {form} machine can test it")


def mutant_subject(name: str, release: str, machines: Container[str]) -> Implementation:
    """Return the mutant of a name.

    Raises:
        NotDrivenError: None of the ``machines`` tests the part in which the mutant has its defect.
        ToolError: There is no mutant of that name.
    """
    # Imported here, because mutants need the adapters of all machines.
    from conformance.implementations.mutants import implementation_of, mutant  # noqa: PLC0415

    planted = mutant(name)
    if planted.machine not in machines:
        raise NotDrivenError(f"mutant:{name} is for the {planted.machine} machine")
    return implementation_of(planted, release)


def _jvm(release: str, progress: Progress | None, directory: str = "") -> Implementation:
    from conformance.implementations.jvm.index import JvmIndex  # noqa: PLC0415 -- needs an extra

    return JvmIndex(release, progress, build_of(directory))


def _subject(release: str, progress: Progress | None, name: str) -> Implementation:
    from conformance.implementations.jvm.index import JvmIndex  # noqa: PLC0415 -- needs an extra

    return JvmIndex(release, progress, classes_of(load_subject(name), release))


def build_of(directory: str) -> Build | None:
    """Return the build in a directory; None for an empty text, which means the locked release.

    Raises:
        ToolError: The directory has no build, or several.
    """
    return open_build(directory) if directory else None


def _command(text: str, command: str) -> tuple[str, ...]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ToolError(f"cannot parse the command of {text!r}: {str(error).lower()}") from None
    if not words or not words[0]:
        raise ToolError(f"{text!r} has no command: write exec:COMMAND, such as exec:./my-index")
    return tuple(words)
