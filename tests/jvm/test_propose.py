"""``conformance kafka propose RELEASE``: a copy of the package without a release gets it back from the jars."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import conformance
import kidx
from conformance.clauses import load_clauses
from conformance.clauses.release_range import ReleaseRange
from kidx.dialect import DIALECTS
from kidx.dialect.columns import Columns

pytestmark = pytest.mark.jvm
PACKAGES = [Path(package.__file__).parent for package in (kidx, conformance)]
COLUMNS = tuple(Columns.__dataclass_fields__)

# How the ranges of clauses would read if there had never been the release.
NEVER_THERE = {
    "4.4.0": ((r">=4\.4\.0", ">=9.0.0"), (r"<=4\.3\.1", ">=2.4.0"), (r"\.\.4\.3\.1", "..")),
    "3.9.1": ((r"3\.9\.1, ", ""), (r"\.\.3\.9\.1", "..3.9.0")),
    "4.0.1": ((r">=4\.0\.1", ">=4.0.2"), (r"4\.0\.1\.\.", "4.0.2.."), (r", 4\.0\.1", "")),
}


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
        self._edit(root / "kidx" / "dialect" / "__init__.py", self._without_row)
        for chapter in (root / "conformance" / "clauses").glob("*.toml"):
            self._edit(chapter, self._without_range)

    def _edit(self, path, change):
        path.write_text(change(path.read_text("utf-8")), "utf-8")

    def _without_row(self, text):
        text, alone = re.subn(rf'^    \(\("{self.release}",\),.*\n', "", text, flags=re.MULTILINE)
        if not alone:
            text, among = re.subn(rf'"{self.release}", ', "", text)
            assert among == 1
        return text

    def _without_range(self, text):
        lines = text.splitlines(keepends=True)
        for number, line in enumerate(lines):
            if line.startswith("releases = "):
                for old, new in NEVER_THERE[self.release]:
                    lines[number] = re.sub(old, new, lines[number])
        return "".join(lines)

    def run(self, *words):
        environment = os.environ | {
            "PYTHONPATH": str(self.root),
            "KIDX_CONFIG": str(self.root / "configuration"),
            "XDG_STATE_HOME": str(self.root / "state"),
        }
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)

    def dialect(self):
        """What the copy says of the release: columns and behaviours."""
        said = self.run(
            "-c",
            "import json; from kidx.dialect import BEHAVIOURS, DIALECTS;"
            f"d = DIALECTS[{self.release!r}]; names = [*{COLUMNS!r}, *BEHAVIOURS];"
            "print(json.dumps({name: getattr(d, name) for name in names}))",
        )
        assert said.returncode == 0, said.stderr
        return json.loads(said.stdout)

    def holding(self):
        """The clauses that hold in the release, as the copy says."""
        return {
            entry["id"]
            for chapter in (self.root / "conformance" / "clauses").glob("*.toml")
            for entry in tomllib.loads(chapter.read_text("utf-8")).get("clause", [])
            if self.release in ReleaseRange.parse(entry["releases"])
        }


def exercised(ids):
    catalogue = load_clauses()
    machines = {"offset", "time", "transaction", "segment", "log"}
    return {id_ for id_ in ids if id_ not in catalogue or machines & set(catalogue[id_].exercised_by)}


def really(release):
    """Columns, behaviours and clauses of a release as the package has them."""
    dialect = DIALECTS[release]
    return dialect, {clause.id for clause in load_clauses().values() if clause.applies_to(release)}


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("release", sorted(NEVER_THERE))
def test_a_release_that_the_package_has_never_heard_of(release, tmp_path):
    copy = Copy(tmp_path, release)
    assert copy.run("-c", f"import kidx; kidx.DIALECTS[{release!r}]").returncode == 1
    command = ("kafka", "propose", release, "--max-examples", "30", "--json", "--patch", "the.patch")
    done = copy.run("-c", "from conformance.cli import main; main()", *command)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["unexplained"] == []
    subprocess.run(["git", "apply", "-p1", "the.patch"], cwd=tmp_path, check=True)
    dialect, clauses = really(release)
    mine = copy.dialect()
    assert mine == json.loads(json.dumps({name: getattr(dialect, name) for name in mine}))
    differing = exercised(copy.holding() ^ clauses)
    begun = {id_ for id_ in differing if id_ not in clauses}
    assert told["clauses"]
    assert all(entry["trace"] for entry in told["clauses"] if not entry["because"])
    if release != "4.4.0":
        assert differing == set(), told["clauses"]
        return
    # Its clauses had to be taken out with it. What it ends is found by steps; what holds instead is still to be worded.
    ended = {entry["id"] for entry in told["clauses"] if not entry["holds"]}
    really_ended = exercised({c.id for c in load_clauses().values() if c.applies_to("4.3.1")} - clauses)
    # Where nothing is trimmed, nothing fails: 4.4.0 ends what SEG-24e tells of up to 4.3, though not the clause.
    assert ended <= really_ended | {"SEG-24e"}
    assert ended >= {"AI-42a", "SEG-24b", "TX-12b"}
    texts = "".join(path.read_text("utf-8") for path in (tmp_path / "conformance" / "clauses").glob("*.toml"))
    assert texts.count('statement = ""') == len(ended)
    assert begun == {entry for entry in begun if re.match(r"(AI-42|SEG-24|TX-12|AI-19|AI-18|TX-7|CL-14)", entry)}
