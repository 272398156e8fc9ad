"""Forms of ``-i IMPL``, and the machines that test the implementations of each form."""

from __future__ import annotations

from typing import Final, NamedTuple

from conformance.subjects import load_subjects


class Form(NamedTuple):
    """One form of IMPL, the argument of ``-i``.

    Attributes:
        name: The text before the colon.
        argument: A description of the text after the colon; empty if there is no colon.
        optional: True if the form may also be used without the colon.
        machine: The machine that tests the implementation if it is a server, such as a broker; empty if the machines of
            index files, segments and logs test it.
    """

    name: str
    argument: str = ""
    optional: bool = False
    machine: str = ""

    @property
    def is_server(self) -> bool:
        """True if the implementation is a server, which has its own files and cannot open a given file."""
        return bool(self.machine)

    def __str__(self) -> str:
        if self.optional:
            return f"{self.name}[:{self.argument}]"
        return f"{self.name}:{self.argument}" if self.argument else self.name


FORMS: Final = {
    form.name: form
    for form in (
        Form("jvm", "DIR", optional=True),  # Kafka's own classes, of a release or of a build in DIR
        Form("broker", "DIR", optional=True, machine="broker"),  # a broker of a release or of a build, with its files
        Form("wire", "HOST:PORT", machine="wire"),  # any running broker, by its protocol alone
        Form("subject", "NAME", machine="wire"),  # a third-party implementation of the catalogue
        Form("exec", "COMMAND"),  # a program that speaks the line protocol
        Form("python", "MODULE:FACTORY"),  # Python classes
        Form("mutant", "NAME"),  # kidx with one planted defect
    )
}


def form_of(text: str) -> Form | None:
    """Return the form of a value of ``-i IMPL``, such as ``exec:COMMAND``; None if it has no known form."""
    name, colon, rest = text.partition(":")
    form = FORMS.get(name)
    if form is None or (form.optional and bool(colon) != bool(rest)):
        return None
    return form if form.optional or bool(colon) == bool(form.argument) else None


def is_server(text: str) -> bool:
    """Return True if a value of ``-i`` names a server: it has its own machine, and each run tests one release."""
    form = form_of(text)
    if form is not None and form.name == "subject":
        subject = load_subjects().get(text.partition(":")[2])
        return subject is None or subject.driven == "wire"  # others are driven as Java classes or by the line protocol
    return form is not None and form.is_server


def is_program(text: str) -> bool:
    """Return True if a value of ``-i`` names a program of the line protocol, which is started once for each release."""
    form = form_of(text)
    return form is not None and form.name == "exec"


def machine_of(text: str) -> str:
    """Return the machine of a value of ``-i`` that names a server; empty for any other value."""
    form = form_of(text)
    return form.machine if form is not None and is_server(text) else ""


def directory_of(text: str) -> str | None:
    """Return the DIR of ``jvm:DIR`` and ``broker:DIR``; None without a DIR."""
    form = form_of(text)
    return text.partition(":")[2] or None if form is not None and form.optional else None
