"""The pages in a real browser: wide and narrow, light and dark.

``KIDX_SCREENSHOTS=DIR`` saves the screenshots.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from readability import UNREADABLE
from thorough_params import thorough_param

pytestmark = pytest.mark.browser

GOLDEN = Path(__file__).parents[1] / "golden" / "4.4.0"
WRONG = """
from kidx import OffsetIndex

def open_index(kind, path, base_offset, max_index_size, writable, release):
    if kind != "offset":
        raise NotImplementedError
    return OffsetIndex(path, 1 + base_offset, max_index_size, writable, dialect=release)
"""
LOOKS = [(width, scheme) for width in (1400, 400) for scheme in ("light", "dark")]

WIDER = """() => [...document.querySelectorAll("body *")]
  .filter((element) => element.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .slice(0, 5).map((element) => `${element.tagName}.${element.className}`)"""


@pytest.fixture
def run_page(in_process, tmp_path):
    """Make the page of a run of an index that is wrong and incomplete."""
    (tmp_path / "wrong_page.py").write_text(WRONG)
    words = ("-i", "python:wrong_page:open_index", "--kafka", "3.9.2", "--kafka", "4.4.0", "--max-examples", 20)
    machines = ("--machine", "offset", "--machine", "time")
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    run = in_process("conformance", "run", *words, *machines, "--report", "r", work=tmp_path, environment=state)
    assert run.returncode == 1, run.stderr
    in_process("conformance", "report", "r", "--html", "run.html", work=tmp_path, environment=state)
    return tmp_path / "run.html"


@pytest.fixture
def scoreboard_page(in_process, tmp_path):
    """Make the scoreboard of that index, and of one without divergences."""
    (tmp_path / "wrong_page.py").write_text(WRONG)
    words = ("A name of some length=python:wrong_page:open_index", "python:tests.adapters.python_index:open_index")
    more = ("--kafka", "3.9.2", "--machine", "offset", "--machine", "time", "--max-examples", 10, "--report", "b")
    state = {"XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"}
    done = in_process(
        "conformance", "scoreboard", *words, *more, "--html", "scoreboard.html", work=tmp_path, environment=state
    )
    assert done.returncode == 1, done.stderr
    return tmp_path / "scoreboard.html"


@pytest.fixture
def verify_page(in_process, tmp_path):
    """Make the page of a log directory, some of whose indexes are broken."""
    logs = tmp_path / "logs"
    for partition in GOLDEN.glob("*-0"):
        shutil.copytree(partition, logs / partition.name)
    for path in sorted(logs.rglob("*.index"))[:3]:
        path.write_bytes(b"\0\0\0\1\0\0\0\1" + path.read_bytes()[8:])
    run = in_process("kidx", "verify", logs, "--kafka", "4.4.0", "--html", "verify.html", work=tmp_path)
    assert run.returncode == 1, run.stderr
    return tmp_path / "verify.html"


@pytest.fixture
def fleet_page(tmp_path):
    """Make the page of a fleet with a hostile name, a broken topic and a large one without faults."""
    pytest.importorskip("pyspark")
    from kidx.findings import Finding
    from kidx.spark.fleet.report import render_report
    from kidx.spark.fleet.summary import Count, Summary

    counts = (
        Count("verdict", "exact", "exact", 90_000, 1),
        Count("verdict", "broken", "broken", 9, 1),
        *(Count("topic", f"a-topic-of-some-length-{number}<b>", "exact", 10**number, 1) for number in range(5)),
        Count("topic", "a-topic-of-some-length-4<b>", "broken", 9, 1),
    )
    path = "/mnt/broker/a-topic-of-some-length-4<b>-0/00000000000000000000.log"
    worst = (Finding(path, "t", 0, 0, "00000000000000000000.log", "RB-1", "broken", message="fails its <checksum>"),)
    summary = Summary(counts, {"broken": 9}, {}, 10, 5, 9, 10**9, 1, ("a replica <differs>",), worst)
    asked = {"run_id": "monday", "paths": ["/mnt/broker"], "release": "4.4.0", "kidx": "0"}
    (tmp_path / "fleet.html").write_text(render_report(summary, asked, []), "utf-8")
    return tmp_path / "fleet.html"


@pytest.mark.parametrize("name", [*map(thorough_param, ("run_page", "scoreboard_page", "fleet_page")), "verify_page"])
def test_a_page_can_be_read(name, look, request):
    path = request.getfixturevalue(name)
    pictures, wrong = {}, {}
    for width, scheme in LOOKS:
        with look(path.as_uri(), width, scheme) as (page, complaints):
            pictures[width, scheme] = page.screenshot()
            if kept := os.environ.get("KIDX_SCREENSHOTS"):
                Path(kept).mkdir(parents=True, exist_ok=True)
                page.screenshot(path=Path(kept) / f"{path.stem}-{width}-{scheme}.png", full_page=True)
            # What is folded away can be unfolded, and read.
            page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
            overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if overflow > 0:
                complaints.append(f"{overflow} pixels too wide: {page.evaluate(WIDER)}")
            complaints.extend(page.evaluate(UNREADABLE))
            if complaints:
                wrong[width, scheme] = complaints
            assert page.inner_text("h1")
    assert not wrong
    assert pictures[1400, "light"] != pictures[1400, "dark"], "the page does not know dark from light"


def test_a_page_that_cannot_be_read_is_noticed(look, tmp_path):
    """The tester is tested: a wide table, pale letters, and an error of a script."""
    page = "<h1 style='color:#ccc'>pale</h1><div style='width:500px'>wide</div><script>nothing.at.all</script>"
    (tmp_path / "bad.html").write_text(page)
    with look((tmp_path / "bad.html").as_uri(), 400, "light") as (page, complaints):
        assert page.evaluate(UNREADABLE) == ["H1 1.61 pale"]
        assert page.evaluate("document.documentElement.scrollWidth") > 400
        assert "nothing is not defined" in " ".join(complaints)
