"""Plain English: pages for readers have no phrase of ``prose.toml``, and the trees have only its exceptions."""

import re

import pytest

from tests.meta import prose

RULES = prose.rules()


@pytest.fixture(scope="module")
def pages():
    return prose.Prose(prose.lines(pages=True))


@pytest.fixture(scope="module")
def trees():
    return prose.Prose(prose.lines(pages=False))


def message(rule, matching):
    found = [str(line)[:150] for line in matching[:20]]
    return "\n".join([f"{len(matching)} lines; write {rule['write']}:", *found])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["id"])
def test_pages_for_readers_have_no_such_phrase(rule, pages):
    matching = pages.matching(rule)
    assert not matching, message(rule, matching)


@pytest.mark.thorough
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["id"])
def test_no_tree_has_such_a_phrase_apart_from_exceptions(rule, trees):
    wrong = trees.wrong(rule)
    assert not wrong, message(rule, wrong)


@pytest.mark.thorough
@pytest.mark.parametrize("rule", [r for r in RULES if "except" in r], ids=lambda rule: rule["id"])
def test_every_exception_is_needed_and_has_a_reason(rule, trees):
    lines = list(map(str, trees.matching(rule)))
    for exception in rule["except"]:
        assert exception["why"]
        assert any(re.search(exception["line"], line) for line in lines), exception["line"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["id"])
def test_rule_matches_its_example(rule):
    assert re.search(rule["regex"], rule["example"])


def test_prose_is_separated_from_code():
    source = 'def f():\n    """Return x."""\n    x = "two words"  # why\n    return "code"\n'
    found = {(line.kind, line.text) for line in prose.python_lines("f.py", source)}
    assert found == {("docstring", "Return x."), ("message", "two words"), ("comment", "# why")}
