"""Files that were exchanged between partitions, or copied over others: what a repair from the wrong log would hide."""

import shutil
from pathlib import Path

import pytest
from startups import EPOCH_MS, RELEASE, fill, log, start, stop_cleanly

from kidx.repair import plan, repair_paths
from kidx.verify import verify_paths

INDEX = f"{12:020d}.index"


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Make partitions with records of different sizes; the records of the last partition also have other timestamps."""
    directory = tmp_path_factory.mktemp("filled")
    for number in range(3):
        fill(directory / f"orders-{number}", repeat=20 + number, begin=EPOCH_MS + number // 2)
    return directory


@pytest.fixture
def data(filled, tmp_path):
    return stop_cleanly(filled, tmp_path / "data", dict.fromkeys(range(3), 48))


def exchange(data, name, *numbers):
    one, other = (data / f"orders-{number}" / name for number in numbers)
    kept = one.read_bytes()
    shutil.copy(other, one)
    other.write_bytes(kept)


def misplaced(result):
    return {Path(each.path): each.message for each in result.faults() if each.clause == "SEG-35"}


@pytest.mark.parametrize(
    ("name", "numbers"), [(log(12), (0, 1)), (log(36), (0, 1)), (INDEX, (0, 1)), (log(12), (0, 2))]
)
def test_exchanged_files_are_reported_as_such_and_not_repaired(data, name, numbers):
    exchange(data, name, *numbers)
    result = verify_paths([data], release=RELEASE, processes=1)
    one, other = (data / f"orders-{number}" / name.replace(".index", ".log") for number in numbers)
    found = misplaced(result)
    assert list(found) == [one, other]
    assert f"the index files of {other} fit this log" in found[one]
    assert not plan(result).repairs
    assert not repair_paths([data], release=RELEASE).changes


def test_an_exchanged_index_whose_time_index_fits_is_rebuilt(data):
    exchange(data, INDEX, 0, 2)
    result = verify_paths([data], release=RELEASE, processes=1)
    assert misplaced(result) == {}
    assert len(plan(result).repairs) == 2


@pytest.mark.thorough
def test_exchanged_logs_must_not_be_served(data):
    exchange(data, log(12), 0, 1)
    found = start(data)
    assert found.line.startswith(
        "may I start the broker? no: 2 partitions would serve the records of another partition"
    )
    assert [each.directory.name for each in found.of("foreign")] == ["orders-0", "orders-1"]
    assert any("do not repair the index files first" in line for line in found.lines())


def test_the_remedy_for_an_end_that_is_mistaken_is_not_a_repair(data):
    exchange(data, log(36), 0, 1)
    found = start(data)
    assert found.of("cut")
    assert all("do not repair the index files first" in each.remedy for each in found.of("cut", "foreign"))


def test_a_log_that_was_overwritten_is_not_the_source_of_a_repair(data):
    target, source = data / "orders-0" / log(12), data / "orders-2" / log(12)
    shutil.copy(source, target)
    result = verify_paths([data], release=RELEASE, processes=1)
    assert list(misplaced(result)) == [target]
    assert f"it has the content of {source}" in misplaced(result)[target]
    assert not plan(result).repairs


def test_zeros_after_the_entries_do_not_show_another_log(data):
    """Partitions may have equal logs, and an unclean stop leaves zeros in both index files."""
    for path in (data / "orders-0").glob(f"{48:020d}.*"):
        shutil.copy(path, data / "orders-1")
    for suffix in (".index", ".timeindex"):
        with (data / "orders-0" / f"{12:020d}{suffix}").open("ab") as file:
            file.write(bytes(24))
        shutil.copy(data / "orders-0" / log(12), data / "orders-1")
        shutil.copy((data / "orders-0" / log(12)).with_suffix(suffix), data / "orders-1")
    result = verify_paths([data], release=RELEASE, processes=1)
    assert [each.clause for each in result.faults()].count("SEG-37") == 4
    assert misplaced(result) == {}


def test_partitions_with_equal_records_are_no_copies_of_each_other(data):
    for path in (data / "orders-0").glob("0*"):
        shutil.copy(path, data / "orders-1")
    for suffix in (".index", ".timeindex"):
        path = (data / "orders-1" / log(12)).with_suffix(suffix)
        shutil.copy(data / "orders-2" / path.name, path)
    result = verify_paths([data], release=RELEASE, processes=1)
    assert misplaced(result) == {}
    assert len(plan(result).repairs) == 1


def test_broken_index_files_of_several_partitions_are_repaired(data):
    for number in range(2):
        path = data / f"orders-{number}" / f"{12:020d}.index"
        content = bytearray(path.read_bytes())
        content[7] ^= 1
        path.write_bytes(content)
    result = verify_paths([data], processes=1)
    assert len(plan(result).repairs) == 2
    assert all(finding.path.endswith(".index") for finding in result.faults())
