"""Pages of results: what is new since the earlier ones, badges, and the score of the wire baseline."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET

import pytest

from conformance.attribution.baseline import NAME, Score, baseline_clauses, score
from conformance.attribution.tables import machines_of
from conformance.clauses import load_clauses
from conformance.errors import ToolError
from conformance.experiments.results import (
    Edition,
    PastDivergence,
    PastRow,
    badges,
    baseline_page,
    changes_of,
    load_history,
    results_page,
    text_of,
    with_edition,
)
from conformance.report.badge import svg_badge

HOSTILE = "<b>it</b> | `x` [y](z) \x1b[31m\u202e"
TIME = PastDivergence("TI-1", "lookup", "time index", "A consumer starts too late.")
OFFSET = PastDivergence("OI-7", "lookup", "offset index", "A fetch answers with the wrong records.")


def row(*divergences, label="mine", baseline=(), **areas):
    states = {"offset index": "conforms", "time index": "conforms"} | {
        each.area: "differs" for each in divergences
    } | {name.replace("_", " "): state for name, state in areas.items()}  # fmt: skip
    return PastRow(label, "4.4.0", "1", states, divergences, baseline)


def edition(number, *rows):
    return Edition(f"run {number}", f"2026-01-0{number}T00:00:00+00:00", rows)


def test_news_are_differences_from_the_last_result_of_the_same_implementation():
    history = [edition(1, row(TIME)), edition(2, row(label="other")), edition(3, row(OFFSET))]
    (news,) = changes_of(history[2], history)
    assert news.before == history[0].rows[0]
    assert (news.appeared, news.gone) == ((OFFSET,), (TIME,))
    assert news.areas == (("offset index", "conforms", "differs"), ("time index", "differs", "conforms"))


def test_a_divergence_that_nothing_looked_for_has_not_gone():
    history = [edition(1, row(TIME)), edition(2, row(time_index="not-run"))]
    (news,) = changes_of(history[1], history)
    assert news.gone == ()
    assert news.areas == (("time index", "differs", "not-run"),)


def test_the_first_result_and_an_unchanged_one():
    history = [edition(1, row(TIME)), edition(2, row(TIME))]
    assert changes_of(history[0], history)[0].before is None
    assert "the first result" in results_page(history[0], changes_of(history[0], history), history)
    page = results_page(history[1], changes_of(history[1], history), history)
    assert "Nothing: every implementation has the results that it had before." in page


def test_the_history_is_a_file_that_editions_are_added_to(tmp_path):
    path = tmp_path / "history.ndjson"
    assert load_history(path) == []
    first, second = edition(1, row(TIME, baseline=(17, 2, 19))), edition(2, row())
    path.write_text(text_of(with_edition([second], first)), "utf-8")
    assert load_history(path) == [first, second]
    again = dataclasses.replace(second, rows=(row(OFFSET),))
    assert with_edition(load_history(path), again) == [first, again]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 1 of the history"),
        ('{"id": 1}', "line 1 of the history"),
        ('{"id": "a", "started": "b", "rows": [], "version": 2}', "another format or version"),
    ],
)
def test_a_file_that_is_no_history_is_one_clear_line(text, said, tmp_path):
    path = tmp_path / "history.ndjson"
    path.write_text(text, "utf-8")
    with pytest.raises(ToolError, match=said) as raised:
        load_history(path)
    assert "\n" not in str(raised.value)


def test_hostile_names_are_text_on_the_page_and_in_badges():
    shown = edition(1, row(dataclasses.replace(TIME, means=HOSTILE, shape=HOSTILE), label=HOSTILE))
    page = results_page(shown, changes_of(shown, [shown]), [shown])
    made = badges(shown.rows)
    for text in (page, *made, *made.values()):
        assert "<b>" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
    for path, badge in made.items():
        assert path.isascii()
        assert ".." not in path
        assert HOSTILE[:9] in "".join(ET.fromstring(badge).itertext())  # noqa: S314


def test_every_implementation_has_badges_of_its_own():
    made = badges((row(label="a/b"), row(TIME, label="a-b")))
    assert len(made) == 4
    assert sum("1 divergence" in badge for badge in made.values()) == 1


def test_a_badge_loads_nothing_and_says_its_text_to_a_screen_reader():
    badge = ET.fromstring(svg_badge("kfake · retention", "conforms · Kafka 4.3.1", "blue"))  # noqa: S314
    assert badge.get("aria-label") == "kfake · retention: conforms · Kafka 4.3.1"
    assert all("href" not in name for each in badge.iter() for name in each.attrib)


def test_the_baseline_is_the_must_clauses_of_the_wire_machine():
    chosen = baseline_clauses("4.4.0")
    wanted = {each.id for each in load_clauses().values() if each.level == "MUST" and "wire" in machines_of(each.id)}
    assert {each.id for each in chosen} == {each for each in wanted if load_clauses()[each].applies_to("4.4.0")}
    assert len(chosen) >= 15
    page = baseline_page()
    assert page.startswith(f"# {NAME}")
    assert all(f"#{each})" in page for each in wanted)


def test_the_score_counts_each_clause_once_and_its_worst_result():
    first, second, third, *rest = (each.id for each in baseline_clauses("4.4.0"))
    results = [
        {first: "conforms", second: "conforms", third: "not-run", "OI-7": "conforms"},
        {first: "conforms", second: "diverges"},
    ]
    assert score(results, "4.4.0") == Score(1, 1, 3 + len(rest))
    assert str(Score(1, 1, 19)) == "1 of 19, 1 diverge"
