"""Comparison of the error texts of two releases."""

from pathlib import Path

import pytest

from conformance.experiments.release_diff.error_texts import differing_error_texts
from conformance.operations import Observation, Outcome

OLD, NEW = Path("/old/0"), Path("/new/1")
SEGMENT = (
    "Existing segment is Optional[LogSegment(baseOffset=0, size={}, lastModifiedTime={}, largestRecordTimestamp=9)]"
)


def said(text):
    return Observation(Outcome("kafka", None, text), None)


@pytest.mark.parametrize(
    ("old", "new", "differ"),
    [
        (f"{OLD}/0.index is full", f"{NEW}/0.index is full", False),
        (SEGMENT.format(272, 1763822430000), SEGMENT.format(272, 1763822431007), False),
        (SEGMENT.format(272, 1763822430000), SEGMENT.format(136, 1763822431007), True),
        ("8192 bytes missing", "4096 bytes missing", True),
    ],
)
def test_differences_beyond_file_names_and_times(old, new, differ):
    wording = differing_error_texts(said(old), said(new), OLD, NEW)
    assert (wording is not None) is differ
