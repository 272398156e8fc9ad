"""Findings in foreign implementations: results of their tests, and sources with the proposed fixes."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

FOREIGN: Final = Path(__file__).parents[2] / "findings" / "foreign"


def fixed_copy(sources: Path, patch: Path, target: Path, *ignored: str) -> Path:
    """Copy the sources of an implementation, and apply a patch with the proposed fixes.

    Args:
        sources: directory of the sources; its files may be read-only, as in the caches of package managers.
        patch: the patch, with paths relative to the directory.
        target: directory that is created.
        ignored: patterns of the names that are not copied.
    """
    shutil.copytree(sources, target, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns(*ignored))
    for directory in (target, *(path for path in target.rglob("*") if path.is_dir())):
        directory.chmod(0o755)
    apply_patch(patch, target)
    return target


def apply_patch(patch: Path, sources: Path) -> None:
    """Apply a patch to the sources of an implementation, which are not in a repository."""
    subprocess.run(["git", "apply", patch.resolve()], cwd=sources, check=True)


def assert_each_fails(
    found: Mapping[str, Sequence[str]], expected: Mapping[str, Sequence[str]], implementation: str
) -> None:
    """Check that each test fails, with its messages and no others.

    Args:
        found: messages of each test that ran; empty if it passed.
        expected: regular expressions of the messages of each test, in their order.
        implementation: name and version of the implementation.
    """
    passed = [name for name, messages in found.items() if not messages]
    assert not passed, f"fixed in {implementation}: remove {passed}, and its section of the page in findings/foreign"
    assert found.keys() == expected.keys()
    for name, patterns in expected.items():
        messages = found[name]
        assert len(messages) == len(patterns), (name, messages)
        for pattern, message in zip(patterns, messages, strict=True):
            assert re.search(pattern, message), (name, message)
