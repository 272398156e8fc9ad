"""``conformance diff`` with builds: the same as with releases, and a gate with the differences that are meant."""

from __future__ import annotations

import json

import pytest
from broken_kafka import broken
from kafka_builds import build_at
from kafka_changes import BROKEN, RELEASE

from conformance.errors import ToolError
from conformance.experiments.release_diff import Plan, compare, describe, load_expected, to_json, to_markdown
from conformance.experiments.release_diff.sides import side_of
from conformance.runs.profiles import round_of

pytestmark = pytest.mark.jvm

ENTRY = """
[[difference]]
{what}
reason = "meant"
link = "https://issues.apache.org/jira/browse/KAFKA-20979"
"""


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    root = tmp_path_factory.mktemp("builds")
    return {release: build_at(root / release, release) for release in ("4.3.1", "4.4.0")}


def differences(old, new, traces, machine="offset", examples=60):
    """Return the findings, without the names of the sides."""
    document = to_json(compare(Plan(old, new, (machine,), traces, max_examples=examples)))
    told = [
        {name: one[name] for name in ("machine", "operation", "aspects", "steps", "clauses")}
        for one in document["differences"]
    ]
    return told, [one["texts"] for one in document["texts"]]


@pytest.mark.thorough
def test_builds_of_releases_differ_as_the_releases_do(builds, tmp_path):
    old, new = (f"jvm:{builds[release]}" for release in ("4.3.1", "4.4.0"))
    releases = differences("4.3.1", "4.4.0", tmp_path)
    assert releases[0]
    assert differences("4.3.1", new, tmp_path) == releases
    assert differences(old, new, tmp_path) == releases
    assert differences(old, "4.4.0", tmp_path) == releases
    assert not any(differences("4.3.1", old, tmp_path))


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.parametrize("machine", ["offset", "time", "transaction", "segment", "log"])
def test_a_build_of_a_release_differs_from_its_neighbours_like_the_release(builds, machine, tmp_path):
    examples = round_of(machine)
    for old, new in (("4.2.1", "4.3.1"), ("4.3.1", "4.4.0")):
        releases = differences(old, new, tmp_path, machine, examples)
        if machine in ("offset", "time"):  # 4.4.0 changes what these show
            assert bool(releases[0]) is (new == "4.4.0")
        assert differences(old, f"jvm:{builds[new]}", tmp_path, machine, examples) == releases


@pytest.mark.thorough
def test_a_build_unknown_to_kidx_can_be_the_base(builds, tmp_path, conformance):
    """A behaviour that a fork's base and its patch share is no difference, even if no release has it."""
    name = "equal-timestamps-appended"
    before = broken(builds[RELEASE], BROKEN[name].change, tmp_path / "before")
    after = broken(before, BROKEN["reserved-slot-given-away"].change, tmp_path / "after")
    few = ("--machine", "time", "--max-examples", 60)
    same = conformance("diff", f"jvm:{before}", f"jvm:{before}", *few)
    assert same.returncode == 0, same.stdout + same.stderr
    found = conformance("diff", f"jvm:{before}", f"jvm:{after}", *few, "--json")
    assert found.returncode == 1, found.stdout + found.stderr
    assert json.loads(found.stdout)["differences"]


class TestGate:
    few = ("--machine", "offset", "--max-examples", 60)

    @pytest.mark.thorough
    def test_expected_differences_have_exit_code_0_and_others_1(self, builds, tmp_path, conformance):
        meant = tmp_path / "meant.toml"
        command = ("diff", "4.3.1", f"jvm:{builds['4.4.0']}", *self.few, "--expectations", meant, "--json")
        families = [ENTRY.format(what=f'clause = "{clause}"') for clause in ("AI-42", "AI-19")]
        for entries, code in (
            (families, 0),
            (families[:1], 1),
            ([*families, ENTRY.format(what='signature = "none: text"')], 1),
        ):
            meant.write_text("".join(entries), "utf-8")
            done = conformance(*command)
            assert done.returncode == code, done.stdout + done.stderr
        assert json.loads(done.stdout)["expected"]["stale"] == ["none: text: meant"]

    @pytest.mark.thorough
    def test_markdown_and_report(self, builds, tmp_path, conformance):
        command = ("diff", "4.3.1", f"jvm:{builds['4.4.0']}", *self.few, "--markdown", "c.md", "--report", "out")
        assert conformance(*command).returncode == 1
        comment = (tmp_path / "c.md").read_text("utf-8")
        assert comment.count("<details>") == comment.count("</details>") == comment.count("| new |")
        assert "AI-42b" in comment
        page = conformance("report", "out", "--markdown", "summary.md", "--html", "page.html")
        assert page.returncode == 1, page.stderr
        assert "AI-42" in (tmp_path / "page.html").read_text("utf-8")

    @pytest.mark.thorough
    def test_markup_in_a_name_is_text(self, builds, tmp_path):
        odd = tmp_path / "<b>|`@everyone"
        odd.symlink_to(builds["4.4.0"])
        found = compare(Plan("4.3.1", f"jvm:{odd}", ("offset",), tmp_path / "traces", max_examples=60))
        heading = to_markdown(found, None).splitlines()[0]
        assert "<b>" not in heading
        assert "@" not in heading

    @pytest.mark.thorough
    def test_both_results_are_in_one_column(self, builds, tmp_path):
        side = f"jvm:{builds['4.4.0']}"
        found = compare(Plan("4.3.1", side, ("offset",), tmp_path / "traces", max_examples=60))
        text = describe(found.differences[0]).splitlines()
        (newer,) = (number for number, line in enumerate(text) if line.startswith(f"         {side} "))
        column = text[newer].index(side) + len(side) + 1
        assert text[newer - 1][:column].split() == ["4.3.1"]
        assert text[newer - 1][column] != " "

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("[[difference]]", "either clause or signature"),
            (ENTRY.format(what='clause = "AI-1"\nsignature = "x"'), "either clause or signature"),
            (ENTRY.format(what='clause = "AI-1"').replace("meant", " "), "needs a reason"),
            (ENTRY.format(what='clause = "AI-1"\nowner = "x"'), "unknown keys: owner"),
            ("[difference]\n", "other keys"),
            ("x =", "is not TOML"),
        ],
    )
    def test_bad_entries(self, text, said, tmp_path):
        path = tmp_path / "meant.toml"
        path.write_text(text, "utf-8")
        with pytest.raises(ToolError, match=said):
            load_expected(path)

    def test_builds_that_cannot_be_compared(self):
        for text in ("broker", "broker:x", "exec:x", "jvm"):
            with pytest.raises(ToolError, match="cannot be compared"):
                side_of(text)
        with pytest.raises(ToolError, match="no build at"):
            side_of("jvm:/nowhere")
