"""docs/architecture.md matches this tree: every package is on it, and every path that it names exists."""

import re
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


@pytest.mark.parametrize("package", LAYERS)
def test_no_room_has_a_file_that_wants_to_be_two(package):
    sizes = {path: len(path.read_text("utf-8").splitlines()) for path in (ROOT / package).rglob("*.py")}
    assert {path: size for path, size in sizes.items() if size > 400} == {}
    assert len(list((ROOT / "conformance").glob("*.py"))) <= 9  # eight, and the package's own
