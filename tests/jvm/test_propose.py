"""``conformance kafka infer-dialect RELEASE``: a copy of the package without a release gets it back from the jars."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import conformance
import kidx
from conformance.attribution.tables import machines_of
from conformance.clauses import load_clauses
from conformance.clauses.release_ranges import BehaviourRange
from kidx.dialect import DIALECTS, ROWS

pytestmark = pytest.mark.jvm
PACKAGES = [Path(package.__file__).parent for package in (kidx, conformance)]

# How the ranges of rows and clauses would read if there had never been the release.
NEVER_THERE = {
    "4.4.0": ((r">=4\.4\.0", ">=9.0.0"), (r", 4\.4\.0\.\.", ""), (r"<=4\.3\.1", ">=2.4.0"), (r"\.\.4\.3\.1", "..")),
    "4.2.2": ((r"4\.2\.2, ", ""),),
    "3.9.1": ((r"3\.9\.1, ", ""), (r"\.\.3\.9\.1", "..3.9.0"), (r"<=3\.9\.1", "<=3.9.0")),
    "4.0.1": ((r">=4\.0\.1", ">=4.0.2"), (r"4\.0\.1\.\.", "4.0.2.."), (r", 4\.0\.1", "")),
}


HIDDEN = ("flush_syncs_file", "keeps_last_batch_cleaned")
"""Behaviours of 4.4.0 that the machines ask for and cannot show: the one needs a power failure, the other a cleaner."""


class Copy:
    """A copy of both packages that has never heard of a release.

    Args:
        root: where; an empty directory.
        release: which.
    """

    def __init__(self, root: Path, release: str) -> None:
        self.root, self.release = root, release
        for package in PACKAGES:
            shutil.copytree(package, root / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        locks = root / "configuration" / "locks"
        locks.mkdir(parents=True)
        (root / "conformance" / "kafka" / "locks" / f"{release}.toml").rename(locks / f"{release}.toml")
        self._edit(root / "kidx" / "dialect" / "__init__.py", self._without_release)
        self._edit(root / "kidx" / "dialect" / "table.py", self._without_range)
        for chapter in (root / "conformance" / "clauses").glob("*.toml"):
            self._edit(chapter, self._without_range)

    def _edit(self, path, change):
        path.write_text(change(path.read_text("utf-8")), "utf-8")

    def _without_release(self, text):
        number = re.escape(self.release)
        text, times = re.subn(rf'{number} (?=\d)|(?<=\d) {number}(?=")', "", text)
        assert times == 1
        return text

    def _without_range(self, text):
        lines = text.splitlines(keepends=True)
        for number, line in enumerate(lines):
            if re.search(r"^releases = |\.flag\(|\.choice\(|\": \"|: \"[<>\d]", line):
                for old, new in NEVER_THERE[self.release]:
                    lines[number] = re.sub(old, new, lines[number])
        return "".join(lines)

    def write_the_words(self):
        """Fill in the text that the entry of a new clause leaves to a person; without it no catalogue loads."""
        for chapter in (self.root / "conformance" / "clauses").glob("*.toml"):
            self._edit(
                chapter,
                lambda text: re.sub(
                    r'^(title|statement|promise|reason|source) = ""$', r'\1 = "?"', text, flags=re.MULTILINE
                ),
            )

    def run(self, *words):
        environment = os.environ | {
            "PYTHONPATH": str(self.root),
            "KIDX_CONFIG": str(self.root / "configuration"),
            "XDG_STATE_HOME": str(self.root / "state"),
        }
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)

    def asked(self, expression):
        """Return the value of an expression in the copy, via JSON."""
        imports = "import json; from kidx.dialect import DIALECTS, ROWS; from conformance.clauses import load_clauses"
        said = self.run("-c", f"{imports}; d = DIALECTS[{self.release!r}]; print(json.dumps({expression}))")
        assert said.returncode == 0, said.stderr
        return json.loads(said.stdout)

    def dialect(self):
        """Return the behaviours of the release."""
        return self.asked("{name: getattr(d, name) for name in ROWS}")

    def holding(self):
        """Return the clauses that hold in the release."""
        return set(self.asked("[c.id for c in load_clauses().values() if c.applies_to(d.release)]"))


def exercised(ids):
    catalogue = load_clauses()
    machines = {"offset", "time", "transaction", "segment", "log"}
    return {id_ for id_ in ids if id_ not in catalogue or machines & set(machines_of(id_))}


def really(release):
    """Return the behaviours and clauses of a release in the package."""
    dialect = DIALECTS[release]
    return dialect, {clause.id for clause in load_clauses().values() if clause.applies_to(release)}


@pytest.mark.in_turn(4)
@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("release", sorted(NEVER_THERE))
def test_a_release_that_the_package_has_never_heard_of(release, tmp_path):
    copy = Copy(tmp_path, release)
    assert copy.run("-c", f"import kidx; kidx.DIALECTS[{release!r}]").returncode == 1
    command = ("kafka", "infer-dialect", release, "--max-examples", "30", "--json", "--patch", "the.patch")
    done = copy.run("-c", "from conformance.cli import main; main()", *command)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["unexplained"] == []
    subprocess.run(["git", "apply", "-p1", "the.patch"], cwd=tmp_path, check=True)
    copy.write_the_words()
    dialect, clauses = really(release)
    known = json.loads(json.dumps({name: getattr(dialect, name) for name in ROWS}))
    unread = {*told["unread"], *HIDDEN}
    mine = copy.dialect()
    assert {name for name in known if mine[name] != known[name]} <= unread
    if release == "4.2.2":
        assert list(told["rows"]) == ["limits_decompressed_size"]
        assert told["clauses"] == []
        return
    differing = exercised(copy.holding() ^ clauses)
    assert all(entry["trace"] for entry in told["clauses"] if not entry["because"])
    if release != "4.4.0":
        assert told["clauses"]
        assert differing == set(), told["clauses"]
        return
    # Clauses that name a behaviour follow its row. What no step depends on cannot be found by steps.
    assert set(told["behaviours"]) >= {"close_trims", "close_finishes_segment", "txn_text_has_version"}
    catalogue = load_clauses()
    ranges = {id_: catalogue[id_].releases for id_ in differing if id_ in catalogue}
    assert {range_.behaviour for range_ in ranges.values() if isinstance(range_, BehaviourRange)} <= unread
