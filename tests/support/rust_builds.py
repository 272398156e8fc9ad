"""Compiled crates of Rust, which the tests share, and crates with the proposed fixes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

from foreign_findings import fixed_copy

from conformance.kafka.jar_fetch import cache_directory

COMPILED = cache_directory() / "cargo"
"""Target directory of cargo: krabka-log's program and the tests of its findings compile the same crates."""


def use_fixed_crate(cargo: Callable[..., CompletedProcess[str]], package: Path, name: str, version: str) -> None:
    """Let a package depend on a copy of a crate with the proposed fixes, which is next to the package.

    Args:
        cargo: function that runs cargo in a directory.
        package: directory of the package, which depends on exactly one version of the crate and has the patch.
        name: name of the crate.
        version: the version.
    """
    described = cargo(package, "metadata", "--format-version", "1")
    assert described.returncode == 0, described.stderr
    (found,) = (each for each in json.loads(described.stdout)["packages"] if each["name"] == name)
    fixed_copy(Path(found["manifest_path"]).parent, package / f"{name}.patch", package.parent / name)
    manifest = package / "Cargo.toml"
    wanted = f'{name} = "={version}"'
    text, changes = re.subn(re.escape(wanted), f'{name} = {{ path = "../{name}" }}', manifest.read_text("utf-8"))
    assert changes == 1
    manifest.write_text(text, "utf-8")
