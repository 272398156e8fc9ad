"""The forms of ``-i IMPL``."""

from __future__ import annotations

import pytest

from conformance.errors import ToolError
from conformance.implementations.forms import FORMS, form_of, is_server
from conformance.implementations.spec import Spec, parse_spec


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("jvm", Spec("jvm")),
        ("broker", Spec("broker")),
        ("exec:a 'b c'", Spec("exec", ("a", "b c"))),
        ("python:m.n:f", Spec("python", ("m.n", "f"))),
        ("mutant:x", Spec("mutant", ("x",))),
        ("wire:localhost:9092", Spec("wire", ("localhost:9092",))),
        ("wire:[::1]:9092", Spec("wire", ("[::1]:9092",))),
        ("subject:kfake", Spec("subject", ("kfake",))),
    ],
)
def test_every_form_is_taken_apart(text, spec):
    assert parse_spec(text) == spec
    assert form_of(text) is FORMS[spec.form]
    assert is_server(text) == (spec.form in ("broker", "wire", "subject"))


@pytest.mark.parametrize(
    "text", ["", "jvm:", "broker:", "wire", "subject", "exec", "python", "mutant", "JVM", "brokers", ":jvm"]
)
def test_an_invalid_form_gets_a_message_with_all_forms(text):
    assert form_of(text) is None
    assert not is_server(text)
    with pytest.raises(
        ToolError,
        match=r"write jvm\[:DIR\], broker\[:DIR\], wire:HOST:PORT, subject:NAME, exec:COMMAND, .* or mutant:NAME$",
    ):
        parse_spec(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("wire:", "must be HOST:PORT, not ''"),
        ("wire:localhost", "must be HOST:PORT, not 'localhost'"),
        ("wire:localhost:99999", "must be HOST:PORT"),
        ("subject:nothing", "unknown subject 'nothing'; choose from "),
    ],
)
def test_an_impossible_server_is_one_line(text, said):
    with pytest.raises(ToolError) as raised:
        parse_spec(text)
    assert said in str(raised.value)
