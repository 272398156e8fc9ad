"""The forms that ``-i IMPL`` has, and what the harness can do with the implementations of each."""

from __future__ import annotations

from typing import Final, NamedTuple

from conformance.subjects import load_subjects


class Form(NamedTuple):
    """One form of IMPL.

    Attributes:
        name: what stands before the colon.
        argument: what stands behind it, in words; empty if there is no colon.
        optional: whether it may stand without the colon, too.
        machine: the machine that asks a server, one release at a time; empty where the machines of index files,
            segments and logs drive the implementation.
    """

    name: str
    argument: str = ""
    optional: bool = False
    machine: str = ""

    @property
    def is_server(self) -> bool:
        """Whether it has a protocol and files of its own: it opens no file that it is handed."""
        return bool(self.machine)

    def __str__(self) -> str:
        if self.optional:
            return f"{self.name}[:{self.argument}]"
        return f"{self.name}:{self.argument}" if self.argument else self.name


FORMS: Final = {
    form.name: form
    for form in (
        Form("jvm", "DIR", optional=True),
        Form("broker", "DIR", optional=True, machine="broker"),
        Form("wire", "HOST:PORT", machine="wire"),
        Form("subject", "NAME", machine="wire"),
        Form("exec", "COMMAND"),
        Form("python", "MODULE:FACTORY"),
        Form("mutant", "NAME"),
    )
}


SERVER_MACHINES: Final = tuple(dict.fromkeys(form.machine for form in FORMS.values() if form.is_server))
"""The machines of servers; each drives nothing else."""


def form_of(text: str) -> Form | None:
    """Return the form of an IMPL; None if it has none of them."""
    name, colon, rest = text.partition(":")
    form = FORMS.get(name)
    if form is None or (form.optional and bool(colon) != bool(rest)):
        return None
    return form if form.optional or bool(colon) == bool(form.argument) else None


def is_server(text: str) -> bool:
    """Tell whether an IMPL is a server, which has a machine of its own and is run one release at a time."""
    form = form_of(text)
    if form is not None and form.name == "subject":
        subject = load_subjects().get(text.partition(":")[2])
        return subject is None or subject.driven == "wire"
    return form is not None and form.is_server


def is_program(text: str) -> bool:
    """Tell whether an IMPL is a program behind the line protocol, which is started once for each release."""
    form = form_of(text)
    return form is not None and form.name == "exec"


def machine_of(text: str) -> str:
    """The machine of an IMPL that is a server; empty for every other one."""
    form = form_of(text)
    return form.machine if form is not None and is_server(text) else ""


def directory_of(text: str) -> str | None:
    """The DIR of ``jvm:DIR`` and ``broker:DIR``; None for every other IMPL."""
    form = form_of(text)
    return text.partition(":")[2] or None if form is not None and form.optional else None
