"""Directories of healthy brokers: none is called broken. ``tests/support/fleet_recipes.py`` says how each was made."""

from __future__ import annotations

import struct

import pytest
from fleet_recipes import ARCHIVES, RECIPES, unpacked

from kidx.discovery import discover
from kidx.lookup import ReadOnlyLog
from kidx.repair import advice, repair_paths
from kidx.verify import verify_paths


@pytest.fixture
def fleet(request, tmp_path):
    with unpacked(request.param, tmp_path) as directory:
        yield directory


every = pytest.mark.parametrize("fleet", RECIPES, indirect=True)


def case(name):
    return pytest.mark.parametrize("fleet", [name], indirect=True)


def test_every_recipe_has_an_archive_and_all_are_small():
    sizes = {path.name.removesuffix(".tar.xz"): path.stat().st_size for path in ARCHIVES.iterdir()}
    assert sorted(sizes) == sorted(RECIPES)
    assert max(sizes.values()) < 6_000


@every
def test_a_healthy_directory_has_no_fault(fleet):
    result = verify_paths([fleet])
    assert not result.faults(), "\n".join(map(str, result.faults()))
    assert result.exit_code == 0
    assert result.partitions
    assert advice(result, [fleet]) is None


@every
def test_nothing_needs_repair(fleet):
    before = {path: path.read_bytes() for path in fleet.rglob("*") if path.is_file()}
    repair = repair_paths([fleet])
    assert (repair.exit_code, repair.changes, repair.remaining) == (0, [], [])
    assert before.items() <= {path: path.read_bytes() for path in fleet.rglob("*") if path.is_file()}.items()


@case("F1")
def test_the_log_of_the_metadata_starts_with_its_oldest_snapshot(fleet):
    directory = fleet / "metadata" / "__cluster_metadata-0"
    oldest = min(int(path.name[:20]) for path in directory.glob("*.checkpoint"))
    with ReadOnlyLog(directory) as log:
        assert log.fetch_offset_by_timestamp(-2).offset == oldest > log.segments[0].base_offset
    (partition,) = discover([directory]).partitions
    assert partition.start_offset == oldest


@case("F2")
def test_a_transaction_cut_by_compaction_is_not_exact_and_not_reported_missing(fleet):
    result = verify_paths([fleet])
    files = [file for file in result.files if file.path.endswith(".txnindex")]
    assert [file.verdict for file in files] == ["sound"] * 2
    assert all("compaction" in file.why for file in files)


@case("F2")
def test_an_entry_without_a_marker_is_still_broken(fleet):
    path = next(fleet.rglob("gap-0/*11.txnindex"))
    data = path.read_bytes()
    path.write_bytes(data[:18] + (12).to_bytes(8, "big") + data[26:34])
    (fault,) = verify_paths([fleet]).faults()
    assert (fault.clause, fault.offset) == ("TX-15", 12)


@case("F3")
def test_an_epoch_that_is_missing_after_the_first_one_is_still_broken(fleet):
    path = fleet / "again" / "epochs-0" / "leader-epoch-checkpoint"
    assert path.read_text() == "0\n2\n2 70\n4 90\n"
    path.write_text("0\n2\n0 0\n4 90\n")
    (fault,) = verify_paths([fleet / "again"]).faults()
    assert (fault.clause, fault.offset) == ("LG-4", 60)


@pytest.mark.parametrize(("fleet", "said"), [("F4", "its topic was deleted"), ("F5", "a stray")], indirect=["fleet"])
def test_directories_that_no_broker_serves_are_named_and_verified_on_request_only(fleet, said):
    (left_out,) = verify_paths([fleet]).left_out
    assert said in left_out.message
    result = verify_paths([fleet], marked=True)
    assert {str(left_out.path)} == {finding.path.rpartition("/")[0] for finding in result.faults()}
    assert result.exit_code == 1
    found = advice(result, [fleet])
    assert not found.commands
    assert "repair" not in "\n".join(found.lines())


@case("F6")
def test_without_the_cleaners_checkpoint_a_gap_is_a_lost_segment(fleet):
    (fleet / "data" / "cleaner-offset-checkpoint").unlink()
    (fault,) = verify_paths([fleet]).faults()
    assert (fault.clause, fault.offset) == ("LG-5", 20)


@case("F7")
def test_a_replica_that_was_moved_names_a_transaction_after_the_marker(fleet):
    directory = fleet / "data" / "moved-0"
    (path,) = (path for path in directory.glob("*.txnindex") if path.stat().st_size)
    _, _, first, last, stable = struct.unpack(">hqqqq", path.read_bytes())
    assert stable > last + 1 > first
    path.write_bytes(path.read_bytes()[:26] + (stable - 1).to_bytes(8, "big"))  # where none begins
    (fault,) = verify_paths([fleet]).faults()
    assert (fault.clause, fault.offset) == ("TX-15", last)


@case("F8")
@pytest.mark.parametrize("stop", ["killed", "clean"])
def test_half_an_entry_is_ignored_while_a_broker_may_write_it(fleet, stop):
    directory = fleet / "data"
    if stop == "clean":
        (directory / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    faults = [fault for fault in verify_paths([fleet]).faults() if fault.file.endswith(".timeindex")]
    assert bool(faults) == (stop == "clean")


@case("F9")
def test_transactions_of_the_last_append_may_lack_their_entries(fleet):
    (remark,) = (each for each in verify_paths([fleet]).findings if each.clause == "TX-15")
    assert (remark.verdict, remark.offset) == ("sound", 6)
    (fleet / "data" / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    (fault,) = (each for each in verify_paths([fleet]).faults() if each.clause == "TX-15")
    assert (fault.verdict, fault.offset) == ("broken", 6)
