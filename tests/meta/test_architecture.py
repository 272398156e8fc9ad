"""docs/architecture.md matches this tree: every package is on it, and every path that it names exists."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text("utf-8")
PICTURE = (ROOT / "docs/rooms.svg").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LAYERS = {
    contract["containers"][0]: [room for layer in contract["layers"] for room in layer.split(" | ")]
    for contract in PROJECT["tool"]["importlinter"]["contracts"]
    if contract["type"] == "layers"
}
PATHS = re.findall(r"`((?:conformance|kidx|tests|docs)/[\w./]+)`", PAGE)


def test_layers_and_paths_are_found():
    assert LAYERS.keys() == {"kidx", "conformance"}
    assert len(PATHS) > 20


@pytest.mark.parametrize("package", LAYERS)
def test_every_room_is_on_the_page_and_in_the_picture(package):
    section = PAGE.partition(f"## Packages of {package}\n")[2].partition("\n## ")[0]
    column = PICTURE.partition(f"<!-- {package} -->")[2].partition("<!-- end -->")[0]
    for room in LAYERS[package]:
        assert f"`{room}`" in section, room
        assert re.search(rf"[> ]{room}[< ]", column), room


@pytest.mark.parametrize("path", sorted({*PATHS}))
def test_a_path_on_the_page_exists(path):
    assert (ROOT / path).exists()


def test_the_page_is_linked_and_ships_with_the_source():
    assert "docs/architecture.md" in (ROOT / "README.md").read_text("utf-8")
    assert "docs" in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]


LONG_FOR_A_REASON: dict[str, str] = {
    "kidx/log/unified_log.py": "one class, as in Kafka: every operation of a log changes the same state",
}
"""Modules of more than 800 lines, each with the reason why its one noun needs them."""


@pytest.mark.parametrize("package", LAYERS)
def test_a_module_of_more_than_800_lines_has_a_reason(package):
    paths = (ROOT / package).rglob("*.py")
    long = {str(path.relative_to(ROOT)) for path in paths if len(path.read_text("utf-8").splitlines()) > 800}
    assert long == {name for name in LONG_FOR_A_REASON if name.startswith(f"{package}/")}
    assert len(list((ROOT / "conformance").glob("*.py"))) <= 9  # eight, and the package's own


def test_a_study_rebuilds_no_part_of_the_frame():
    """The frame has the options, the limits, the known causes and the outcomes of searches."""
    for path in sorted((ROOT / "conformance/studies").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        assert not classes & {"Plan", "Search", "Known", "Outcome"}, path
        assert "typer" not in path.read_text("utf-8").split(), path


def test_nothing_that_a_jvm_leaves_behind_is_tracked():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert not re.search(r"(?m)^(.*/)?(\.attach_pid|hs_err_pid|replay_pid)", tracked)


CLAUSE = re.compile(r"[A-Z]{2,3}-\d+[a-z]?")


def compared_clauses(text):
    """Return the ids of clauses that code compares, looks up, or collects to look something up."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare | ast.Set | ast.MatchValue):
            constants = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
            found |= {each for each in constants if isinstance(each, str) and CLAUSE.fullmatch(each)}
        elif (
            isinstance(node, ast.Assign | ast.AnnAssign)
            and isinstance(node.value, ast.Constant)
            and ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target).isupper()
        ):
            found |= {each for each in [node.value.value] if isinstance(each, str) and CLAUSE.fullmatch(each)}
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            found |= {"clause" for each in parts if isinstance(each, ast.Attribute) and each.attr == "clause"}
    return found


@pytest.mark.thorough
def test_nothing_in_kidx_decides_by_the_id_of_a_clause():
    assert compared_clauses('x = finding.clause == "LG-17"') == {"LG-17", "clause"}
    assert compared_clauses('KINDS = {"LG-5", "RB-4"}') == {"LG-5", "RB-4"}
    assert compared_clauses('TAIL = "RB-4"') == {"RB-4"}
    assert compared_clauses('add(path, "RB-4", "broken")') == set()
    for path in (ROOT / "kidx").rglob("*.py"):
        assert not compared_clauses(path.read_text("utf-8")), f"{path}: decide by Fault, the kind of a finding"
