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
    ],
)
def test_every_form_is_taken_apart(text, spec):
    assert parse_spec(text) == spec
    assert form_of(text) is FORMS[spec.form]
    assert is_server(text) == (text == "broker")


@pytest.mark.parametrize("text", ["", "jvm:", "broker:", "exec", "python", "mutant", "JVM", "brokers", ":jvm"])
def test_what_has_none_of_the_forms_is_told_all_of_them(text):
    assert form_of(text) is None
    assert not is_server(text)
    with pytest.raises(ToolError, match=r"write jvm, broker, exec:COMMAND, python:MODULE:FACTORY or mutant:NAME$"):
        parse_spec(text)
