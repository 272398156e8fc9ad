"""A fragment of a function is changed in a copy: it must occur once, and the original function is unchanged."""

from __future__ import annotations

import pytest

from conformance.implementations.mutants.planting import FragmentError, planted


def double(number):
    return number + number


def quadruple(number, *, plus=0):
    return double(double(number)) + plus


class Base:
    def greeting(self):
        return "hello"


class Polite(Base):
    factory = Base

    def greeting(self):
        words = super().greeting()  # a comment, and a call
        return words + " there"

    @property
    def length(self):
        return len(self.greeting())

    @staticmethod
    def quadruple(number):
        return quadruple(number, plus=1)


def changed(path, before, after):
    return planted(Polite, path.split("."), before, after)()


def test_an_expression_of_a_method_is_changed_and_super_still_works():
    assert changed("greeting", "words + ' there'", "words.upper()").greeting() == "HELLO"
    assert Polite().greeting() == "hello there"


def test_statements_are_changed_whatever_their_layout():
    two = "words = super( ).greeting()\nreturn words + ' there'"
    assert changed("greeting", two, "return 'bye'").greeting() == "bye"
    assert changed("greeting", "words = super().greeting()", "words = 'a'; words += 'b'").greeting() == "ab there"


def test_nothing_is_the_beginning_of_the_function():
    assert changed("greeting", "", "if self: return 'first'").greeting() == "first"


def test_properties_and_static_methods_remain_what_they_are():
    assert changed("length", "len(self.greeting())", "-1").length == -1
    assert changed("quadruple", "1", "2").quadruple(3) == 14


def test_a_path_leads_through_classes_and_global_names():
    assert changed("factory.greeting", "'hello'", "'hi'").factory().greeting() == "hi"
    assert changed("quadruple.quadruple.double", "number + number", "number * 3").quadruple(2) == 19
    assert (quadruple(2), Polite.quadruple(2)) == (8, 9)


def test_a_traceback_names_the_line_of_the_source():
    with pytest.raises(ZeroDivisionError) as caught:
        changed("greeting", "words + ' there'", "1 / 0").greeting()
    assert str(caught.traceback[-1].statement).strip() == 'return words + " there"'


@pytest.mark.parametrize(
    ("path", "before", "message"),
    [
        ("greeting", "words - 1", "Polite.greeting has 'words - 1' 0 times, not once"),
        ("quadruple.quadruple.double", "number", "double has 'number' 2 times, not once"),
        ("greeting", "words = super().greeting(); pass", "Polite.greeting has .* 0 times, not once"),
        ("missing", "1", "Polite has no missing"),
        ("quadruple.missing", "1", "Polite.quadruple has no missing"),
    ],
)
def test_a_fragment_that_does_not_occur_once_is_an_error(path, before, message):
    with pytest.raises(FragmentError, match=message):
        changed(path, before, "2")
