"""Files of real brokers, which are exact or sound, and have no false findings."""

from pathlib import Path

import pytest

from kidx.verify import verify_paths

GOLDEN = Path(__file__).parents[1] / "golden"
RELEASES = sorted(path.parent.name for path in GOLDEN.glob("*/corpus.json"))


def partitions(release):
    return [path for path in sorted((GOLDEN / release).glob("*-0")) if path.is_dir()]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("options", [{}, {"index_interval_bytes": 250}, {"release": "own"}], ids=str)
def test_files_of_a_broker_have_no_fault(release, options):
    options = {name: release if value == "own" else value for name, value in options.items()}
    result = verify_paths(partitions(release), **options)
    assert {file.verdict for file in result.files} == {"exact", "sound"}
    assert result.exit_code == 0
    assert not [finding for finding in result.findings if finding.verdict != "sound"]
    assert all(file.why for file in result.files if file.verdict == "sound")
