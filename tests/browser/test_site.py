"""The site: built with its links checked, and rendered, wide and narrow, light and dark.

``KIDX_SCREENSHOTS=DIR`` saves the screenshots.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote_plus

import pytest

from conformance.clauses import load_clauses

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

ROOT = Path(__file__).parents[2]
LOOKS = [(width, scheme) for width in (1400, 400) for scheme in ("light", "dark")]
SEEN = ("", "docs/operating/", "specification/offset_index/", "specification/changes/", "reports/damage/")
RESULTS = ("specification/results/", "specification/wire_baseline/", "specification/results/drop.html")
MORE = tuple(
    f"{path.relative_to(ROOT).with_suffix('')}/".removesuffix("index/")
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if path.parent.name != "spec"  # which the site replaces by pages with the answers of the releases
)
SEARCHED = {
    "timeindex zeroed": "timeindex-zeroed-cut-or-lost",
    "zeroed timeindex": "timeindex-zeroed-cut-or-lost",
    "lost timeindex": "timeindex-zeroed-cut-or-lost",
    "corrupted index file": "found-a-corrupted-index-file",
    "will not start": "the-broker-will-not-start-because-of-an-index",
    "broker does not start": "the-broker-does-not-start-after-a-full-disk",
    "disk replaced": "a-disk-was-replaced",
    "dump-log mismatch": "kafka-dump-log-reports-mismatches",
}
"""Words that a person with trouble types, and the section of the runbook that comes first."""
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def build(directory, *runs):
    """Build the site with the traces of two machines: logs take a minute."""
    words = (*runs, "--machine", "offset", "--machine", "segment")
    return subprocess.run(
        [sys.executable, "docs/build_site.py", directory, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    directory = tmp_path_factory.mktemp("built")
    tool = Path(sys.executable).with_name("conformance")
    wrong = ("-i", "python:tests.adapters.python_index:open_off_by_one", "--kafka", "4.4.0", "--machine", "offset")
    subprocess.run([tool, "run", *wrong, "--max-examples", "5", "--report", directory / "run"], cwd=ROOT, check=False)
    done = build(directory, directory / "run")
    assert done.returncode == 0, done.stdout + done.stderr
    return directory / "site"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words):
        """Log nothing."""


@pytest.fixture(scope="module")
def served(site):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_every_clause_has_an_address(site):
    contents = (site / "specification" / "index.html").read_text("utf-8")
    for clause in load_clauses().values():
        page = site / "specification" / clause.chapter / "index.html"
        assert f'id="{clause.id}"' in page.read_text("utf-8")
        assert f'id="{clause.id}"' in contents, "specification/#ID leads to the chapter"


def test_the_results_page_names_what_is_new(site):
    """The first run of an index that is wrong by one."""
    page = site / "specification" / "results" / "index.html"
    assert "the first result" in page.read_text("utf-8")
    assert (site / "specification" / "results" / "history.ndjson").read_text("utf-8").count("OI-7") == 1
    scoreboard = site / "specification" / "results" / "scoreboard.html"
    assert "conformance replay" in scoreboard.read_text("utf-8")


def test_nothing_is_loaded_from_another_host(site):
    loaded = re.compile(
        r'<(?:script|img|iframe|link [^>]*rel="?(?:stylesheet|preconnect)"?)[^>]*(?:src|href)="?https?:'
    )
    for page in site.rglob("*.html"):
        assert not loaded.search(page.read_text("utf-8")), page


def test_a_search_brings_the_runbook_first(served, look):
    """The search ranks titles of pages and sections first; it finds only what has all words."""
    first = {}
    for typed in SEARCHED:
        with look(served, 1400, "light") as (page, _):
            page.click(".md-search__button")
            page.locator("input[aria-label=Search]").fill(typed)
            results = page.locator(f"a[href*='h={quote_plus(typed)}']")
            first[typed] = results.first.get_attribute("href").removeprefix(served)
    assert first == {typed: f"docs/runbook/?h={quote_plus(typed)}#{section}" for typed, section in SEARCHED.items()}


@pytest.mark.parametrize(
    "address", ["docs/architecture/", "docs/understand/warm/", "docs/understand/finding/", "docs/output/"]
)
def test_labels_of_pictures_can_be_read_on_a_telephone(address, served, site, look):
    with look(served + address, 400, "light") as (page, _):
        pictures = page.locator("article img[src$='.svg']")
        shown = pictures.evaluate_all("(all) => all.map((each) => [each.src, each.getBoundingClientRect().width])")
        assert page.evaluate(TOO_WIDE) <= 0
    assert shown
    for source, width in shown:
        text = (site / source.removeprefix(served)).read_text("utf-8")
        drawn = float(re.search(r'viewBox="0 0 ([\d.]+) ', text)[1])
        sizes = map(float, re.findall(r"font(?:-size)?: (?:\d{3} )?([\d.]+)px", text))
        assert min(sizes) * width / drawn > 9, source


def test_requirements_are_filtered_by_level_and_by_chapter(served, look):
    shown = "(all) => all.filter((each) => each.offsetParent !== null).map((each) => each.id)"
    chapter = [each for each in load_clauses().values() if each.chapter == "offset_index"]
    with look(f"{served}specification/offset_index/", 1400, "light") as (page, complaints):
        heads = page.locator("article h2[id]")
        assert heads.evaluate_all(shown) == [each.id for each in chapter]
        for box in page.locator("form.filters input:not([value=MUST])").all():
            box.uncheck()
        assert heads.evaluate_all(shown) == [each.id for each in chapter if each.level == "MUST"]
        hidden = next(each.id for each in chapter if each.level != "MUST")
        page.evaluate(f"location.hash = '{hidden}'")
        page.wait_for_function(f"document.getElementById('{hidden}').offsetParent !== null")
        assert not complaints
    with look(f"{served}specification/", 400, "dark") as (page, complaints):
        page.select_option("form.filters select", "offset_index")
        assert page.locator("li > a[data-level]").evaluate_all(shown) == [each.id for each in chapter]
        assert page.evaluate(TOO_WIDE) <= 0
        assert not complaints


def test_the_changelog_is_not_searched(site):
    found = {
        each["location"].partition("#")[0] for each in json.loads((site / "search.json").read_text("utf-8"))["items"]
    }
    assert not found & {"CHANGELOG/", "CODE_OF_CONDUCT/", "specification/changes/"}
    assert {"docs/runbook/", "docs/changes/", "specification/segment/"} <= found


def test_there_is_no_map_of_a_site_without_an_address(site):
    """Zensical writes an empty one, which tells search engines that there are no pages."""
    assert not (site / "sitemap.xml").exists()


@pytest.mark.parametrize("address", dict.fromkeys((*SEEN, *RESULTS, *MORE)))
def test_a_page_of_the_site_can_be_read(address, served, look):
    wrong = {}
    for width, scheme in LOOKS:
        with look(served + address, width, scheme) as (page, complaints):
            page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
            if (overflow := page.evaluate(TOO_WIDE)) > 0:
                complaints.append(f"{overflow} pixels too wide")
            if kept := os.environ.get("KIDX_SCREENSHOTS"):
                Path(kept).mkdir(parents=True, exist_ok=True)
                name = address.strip("/").replace("/", "-") or "home"
                page.screenshot(path=Path(kept) / f"{name}-{width}-{scheme}.png")
            if complaints:
                wrong[width, scheme] = complaints
            assert page.inner_text("h1")
    assert not wrong


def test_a_broken_link_fails_the_build(tmp_path):
    """The builder is tested: a page with a link to nowhere, built in the same strict mode."""
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text("# Page\n\n[nowhere](nowhere.md) [no anchor](#none)\n", "utf-8")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\ndocs_dir: pages\n", "utf-8")
    zensical = Path(sys.executable).with_name("zensical")
    done = subprocess.run([zensical, "build", "--strict"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "2 issues found" in done.stdout + done.stderr
