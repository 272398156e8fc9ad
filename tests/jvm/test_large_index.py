"""An index file of 2 GiB, sparse: no implementation can map it, and none changes it (AI-45)."""

from __future__ import annotations

import os

import pytest

from conformance.implementations.jvm import JvmIndex
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.operations import Operation
from kidx.java_values import INT_MAX

ERAS = ("2.4.1", "3.9.1", "4.4.0")

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize("kind", ["offset", "time"])
@pytest.mark.parametrize("release", ERAS)
@pytest.mark.parametrize("bytes_more", [0, 1])
def test_a_file_of_2_gib_is_rejected_and_remains(tmp_path, release, kind, bytes_more):
    length = INT_MAX + 1 + bytes_more
    opening = Operation("open", (kind, "0", 0, 80, True))
    seen = []
    for number, implementation in enumerate((JvmIndex(release), ReferenceIndex(release))):
        directory = tmp_path / str(number)
        directory.mkdir()
        (directory / "0").touch()
        os.truncate(directory / "0", length)
        implementation.begin(directory)
        seen.append(implementation.perform(opening))
        implementation.end()
        assert (directory / "0").stat().st_size == length
    assert seen[0] == seen[1]
    assert seen[0].outcome.error == "invalid_argument"
