"""The page that shows a dropped ``events.ndjson``: a real drop, hostile content as text, and what is no report."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from readability import UNREADABLE

from conformance.report.html import drop_page

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

LOOKS = [(width, scheme) for width in (1400, 400) for scheme in ("light", "dark")]
HOSTILE = "<img src=x onerror='window.pwned=1'><script>window.pwned=1</script>\x1b[31m\u202e"
DROP = """(text) => {
  const data = new DataTransfer();
  data.items.add(new File([text], "events.ndjson"));
  const drop = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
  document.getElementById("drop").dispatchEvent(drop);
}"""


def events(*more, **header):
    started = {
        "event": "RunStarted", "format": "kidx-events", "version": 2, "releases": ["4.4.0"],
        "implementations": [HOSTILE], "machines": ["offset"], "profile": "ci", "level": "must", "seed": 7,
        "versions": {HOSTILE: HOSTILE}, "started": "2026-01-02T03:04:05+00:00", "command": HOSTILE,
    }  # fmt: skip
    result = {
        "event": "Result", "machine": "offset", "implementation": HOSTILE, "release": "4.4.0", "examples": 5,
        "steps": 12345, "divergences": 1, "verdicts": {"OI-7": "diverges", "OI-8": "conforms", "OI-9": "conforms"},
    }  # fmt: skip
    diverged = {
        "event": "Diverged", "machine": "offset", "implementation": HOSTILE, "clause": "OI-7",
        "failure": {"step": 1, "release": "4.4.0", "aspects": ["outcome"], "expected": [None, 1], "actual": HOSTILE},
        "requirements": [["OI-7", "MUST", HOSTILE]], "steps": ["open()", HOSTILE], "replay": HOSTILE,
    }  # fmt: skip
    unknown = {"event": "Later", "what": HOSTILE}
    return "".join(json.dumps(each) + "\n" for each in (started | header, unknown, result, diverged, *more))


@pytest.fixture
def address(tmp_path):
    (tmp_path / "drop.html").write_text(drop_page(), "utf-8")
    return (tmp_path / "drop.html").as_uri()


def test_a_dropped_report_is_shown_and_nothing_of_it_is_executed(look, address):
    wrong = {}
    for width, scheme in LOOKS:
        with look(address, width, scheme) as (page, complaints):
            page.evaluate(DROP, events({"event": "RunFinished", "verdict": "diverges"}))
            page.wait_for_selector("#shown .banner")
            page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
            text = page.inner_text("#shown")
            assert "1 divergence from the reference" in text
            assert "12,345" in text
            assert "<img src=x onerror='window.pwned=1'>" in text
            assert "\\u001b[31m\\u202e" in text
            assert "\u202e" not in text
            assert page.evaluate("window.pwned") is None
            assert page.locator("#shown img, #shown script").count() == 0
            cells = page.locator("#shown tbody td").all_inner_texts()
            assert cells[2:] == ["4.4.0", "12,345", "1", "1", "0", "0", "2", "0", "0", "0"]
            if kept := os.environ.get("KIDX_SCREENSHOTS"):
                Path(kept).mkdir(parents=True, exist_ok=True)
                page.screenshot(path=Path(kept) / f"drop-{width}-{scheme}.png", full_page=True)
            overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if overflow > 0:
                complaints.append(f"{overflow} pixels too wide")
            complaints.extend(page.evaluate(UNREADABLE))
            if complaints:
                wrong[width, scheme] = complaints
    assert not wrong


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it does not begin with RunStarted"),
        ("<b>no</b>\n", "its first line is not JSON"),
        (events(version=99), "a report of version 99; this page reads versions 1 and 2"),
        (events().replace("\n", "\nx\n", 1), "Line 2 is not JSON."),
        (events(), "The run was cut off"),
        (events() + '{"event": "Res', "The run was cut off"),
        (json.dumps({"event": "RunStarted", "format": "kidx-events", "version": 1}) + "\n[]\n", "The run was cut off"),
    ],
)
def test_a_file_that_is_no_whole_report(text, said, look, address):
    with look(address, 400, "light") as (page, complaints):
        page.evaluate(DROP, text)
        page.wait_for_selector("#shown .banner")
        assert said in page.inner_text("#shown")
        assert not complaints


def test_a_file_can_be_chosen_instead(look, address, tmp_path):
    (tmp_path / "events.ndjson").write_text(events({"event": "RunFinished", "verdict": "diverges"}), "utf-8")
    with look(address, 400, "dark") as (page, _):
        page.set_input_files("#file", tmp_path / "events.ndjson")
        page.wait_for_selector("#shown .banner")
        assert "1 divergence" in page.inner_text("#shown")
