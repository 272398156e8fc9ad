"""Directories that belong together: copies of a partition under several names, and the directory of KRaft's own log.

What brokers do with them: tests/broker/test_copies.py.
"""

import shutil

import pytest
from startups import PROPERTIES, fill_partitions, start, stop_cleanly

from kidx.discovery import parse_partition


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    return fill_partitions(tmp_path_factory.mktemp("filled"), 2)


@pytest.fixture
def data(filled, tmp_path):
    return stop_cleanly(filled, tmp_path / "data", {0: 48, 1: 48})


@pytest.mark.parametrize("name", ["orders-00", "orders-+0", "orders-\uff10"])
def test_names_that_java_reads_as_one_partition_are_duplicates(data, name):
    shutil.copytree(data / "orders-0", data / name)
    found = start(data)
    assert parse_partition(name) == ("orders", 0, "")
    (duplicate,) = found.fatal
    assert duplicate.path in {data / "orders-0", data / name}
    assert (found.starts, duplicate.reason.startswith("orders-0 lies in ")) == (False, True)


def test_the_directory_of_kraft_s_own_log_needs_no_checkpoint_and_no_mark_of_a_clean_stop(data, tmp_path):
    metadata = tmp_path / "metadata"
    shutil.copytree(data / "orders-1", metadata / "__cluster_metadata-0")
    (metadata / "meta.properties").write_text(PROPERTIES)
    (metadata / "bootstrap").mkdir()  # the log manager reads no name here
    found = start(data, metadata)
    assert (found.mixed, list(found.clean), found.starts) == ((), [data], True)
    assert {each.path.parent for each in found.missing} <= {data}
    (metadata / "recovery-point-offset-checkpoint").write_text("0\n0\n")  # one of log.dirs, which also has that log
    found = start(data, metadata)
    assert found.mixed == (data,)
    assert [each.path.name for each in found.fatal] == ["bootstrap"]
