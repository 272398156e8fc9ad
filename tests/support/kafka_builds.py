"""Builds of Kafka from the locked jars: a directory of links to them, complete or with changes."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.kafka import class_path

if TYPE_CHECKING:
    from conformance.kafka.releases import Group


def build_at(
    directory: Path,
    release: str,
    group: Group = "log",
    *,
    named: Callable[[str], str | None] = lambda name: name,
) -> Path:
    """Make a directory of a release's jars.

    Args:
        directory: The target; created if it does not exist.
        release: The release whose jars are linked.
        group: The group of jars.
        named: Function of the name of a jar that returns its new name, or None to omit the jar.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for jar in class_path(release, group):
        if (name := named(jar.name)) is not None:
            (directory / name).symlink_to(jar)
    return directory


def patched(build: Path, jar_name: str, entries: Mapping[str, bytes | None]) -> Path:
    """Replace a jar of a build by a copy with other entries; None removes an entry."""
    (jar,) = (path for path in build.glob("*.jar") if path.name.startswith(jar_name))
    with zipfile.ZipFile(jar) as source:
        content = {name: source.read(name) for name in source.namelist() if not name.endswith("/")}
    jar.unlink()  # the jar is a link into the cache, which must not change
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_STORED) as target:
        for name, data in (content | dict(entries)).items():
            if data is not None:
                target.writestr(name, data)
    return build
