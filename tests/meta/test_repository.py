"""Properties of the repository as a whole."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import conformance
import kidx

ROOT = Path(__file__).parents[2]
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
HOSTS = re.compile("|".join(("pypi" + r"\.org", "maven" + r"\.org", "maven" + r"\.apache", "crates" + r"\.io")))
BINARY = {".log", ".index", ".timeindex", ".txnindex"}
# Pages of the people who planned this: not in the repository, so that a reader of it looks in vain.
ELSEWHERE = re.compile("KAFKA_(BEHAVIOUR|RELEASES)|(KAFKA_[A-Z_]+|DESIGN|DEVELOPERS|STYLE)" + r"\.md")


def _text(name):
    path = ROOT / name
    return path.read_text("utf-8", "replace") if path.is_file() and path.suffix not in BINARY else ""


@pytest.mark.skipif("KIDX_WHEEL" not in os.environ, reason="only the bootstrapped environment holds the wheel")
@pytest.mark.parametrize("package", [kidx, conformance])
def test_the_wheel_is_tested(package):
    """The packages under test are the installed ones, not the source tree."""
    assert ROOT / package.__name__ not in Path(package.__file__).parents


def test_kidx_does_not_import_conformance():
    """Imports go in one direction."""
    importing = re.compile(r"^\s*(from|import) conformance", re.MULTILINE)
    assert not [path for path in (ROOT / "kidx").rglob("*.py") if importing.search(path.read_text("utf-8"))]


@pytest.mark.skipif(not TRACKED, reason="no git checkout")
def test_no_jar_and_no_registry_host_in_the_repository():
    """Kafka's jars are not in the repository, and clients know their own registries."""
    assert not [name for name in TRACKED if name.endswith((".jar", ".class"))]
    for name in TRACKED:
        assert not HOSTS.search(_text(name)), name


@pytest.mark.skipif(not TRACKED, reason="no git checkout")
def test_nothing_refers_to_a_page_outside_the_repository():
    """The clause catalogue and docs/ are the places to refer to."""
    found = {name: match[0] for name in TRACKED if (match := ELSEWHERE.search(_text(name)))}
    assert not found
