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
        is_server: whether it is a server with a protocol and files of its own: its own machine asks it, one release
            at a time, and it opens no file that it is handed.
    """

    name: str
    argument: str = ""
    optional: bool = False
    is_server: bool = False

    def __str__(self) -> str:
        if self.optional:
            return f"{self.name}[:{self.argument}]"
        return f"{self.name}:{self.argument}" if self.argument else self.name


FORMS: Final = {
    form.name: form
    for form in (
        Form("jvm", "DIR", optional=True),
        Form("broker", "DIR", optional=True, is_server=True),
        Form("wire", "HOST:PORT", is_server=True),
        Form("subject", "NAME", is_server=True),
        Form("exec", "COMMAND"),
        Form("python", "MODULE:FACTORY"),
        Form("mutant", "NAME"),
    )
}


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


def directory_of(text: str) -> str | None:
    """The DIR of ``jvm:DIR`` and ``broker:DIR``; None for every other IMPL."""
    form = form_of(text)
    return text.partition(":")[2] or None if form is not None and form.optional else None
