"""Possible contents of a disk after a power failure: the rules of ``conformance power-loss``, without Java."""

from random import Random

from conformance.implementations.jvm.journal import DirectorySynced, Renamed, Synced, SyncKind, Written
from conformance.studies.power_loss.disk import PAGE, SECTOR, Disk, Length, Name, Page, torn
from conformance.studies.power_loss.failures import losses
from conformance.studies.power_loss.guarantees import Guarantee
from conformance.studies.power_loss.planted import PLANTED
from conformance.studies.power_loss.signatures import Signature
from conformance.studies.power_loss.study import POWER_LOSS


def disk_after(*events):
    disk = Disk()
    for event in events:
        disk.apply(event)
    return disk


def all_states(disk):
    return [disk.surviving(loss) for loss in losses(disk, 1000, Random(0))]  # noqa: S311


def test_a_file_that_is_synced_with_its_directory_survives_unchanged():
    disk = disk_after(Renamed("", "a", 0), Written(0, b"abc"), Synced(0, SyncKind.WHOLE, ""), DirectorySynced(""))
    assert disk.options() == {}
    assert all_states(disk) == [{"a": b"abc"}]


def test_a_creation_a_length_and_a_page_are_lost_independently():
    disk = disk_after(Renamed("", "a", 0), Written(0, b"abc"))
    states = all_states(disk)
    assert len(states) == 8
    for state in ({}, {"a": b""}, {"a": bytes(3)}, {"a": b"abc"}):
        assert state in states


def test_a_file_that_is_synced_may_still_have_no_name():
    disk = disk_after(Renamed("", "a", 0), Written(0, b"abc"), Synced(0, SyncKind.WHOLE, ""))
    assert all_states(disk) == [{"a": b"abc"}, {}]


def test_a_rename_is_atomic():
    disk = disk_after(
        Renamed("", "a", 0), Written(0, b"x"), Synced(0, SyncKind.WHOLE, ""), DirectorySynced(""), Renamed("a", "b", 0)
    )
    assert all_states(disk) == [{"b": b"x"}, {"a": b"x"}]


def test_a_sync_of_a_mapping_may_lose_a_shorter_length():
    events = [Renamed("", "a", 0), Written(0, b"abc" + bytes(5)), Synced(0, SyncKind.WHOLE, ""), DirectorySynced("")]
    disk = disk_after(*events, Written(0, b"abc"), Synced(0, SyncKind.MAPPING, ""))
    assert all_states(disk) == [{"a": b"abc"}, {"a": b"abc" + bytes(5)}]
    assert all_states(disk_after(*events, Written(0, b"abc"), Synced(0, SyncKind.WHOLE, ""))) == [{"a": b"abc"}]


def test_a_sync_of_a_mapping_makes_a_length_that_grew_durable():
    disk = disk_after(Renamed("", "a", 0), DirectorySynced(""), Written(0, b"abc"), Synced(0, SyncKind.MAPPING, ""))
    assert all_states(disk) == [{"a": b"abc"}]


def test_pages_are_lost_one_by_one_and_may_have_any_earlier_content():
    one, two = b"1" * PAGE, b"2" * PAGE
    disk = disk_after(Renamed("", "a", 0), Written(0, one), Written(0, two + one), DirectorySynced(""))
    assert disk.options()[Page(0, 0)] == [bytes(PAGE), one]
    assert disk.options()[Page(0, 1)] == [bytes(PAGE)]
    assert disk.surviving({Page(0, 0): one}) == {"a": one + one}
    assert disk.surviving({Page(0, 1): bytes(PAGE)}) == {"a": two + bytes(PAGE)}
    assert disk.surviving({Length(0): PAGE}) == {"a": two}


def test_a_torn_page_has_whole_sectors():
    page = torn([b"1" * PAGE, b"2" * PAGE], [True, *[False] * 7])
    assert page == b"1" * SECTOR + b"2" * (PAGE - SECTOR)


def test_a_journalling_file_system_loses_the_last_names():
    disk = disk_after(Renamed("", "a", 0), Renamed("", "b", 1))
    assert disk.is_ordered({Name(1): None})
    assert not disk.is_ordered({Name(0): None})


def test_a_draw_loses_everything_and_each_thing_alone():
    events = [event for n in range(8) for event in (Renamed("", f"{n}", n), Written(n, b"x"))]
    disk = disk_after(*events)
    drawn = list(losses(disk, 10, Random(1)))  # noqa: S311
    options = disk.options()
    assert {} in drawn
    assert {item: values[0] for item, values in options.items()} in drawn
    for item, values in options.items():
        assert {item: values[0]} in drawn


def test_a_cause_with_less_loss_explains_one_with_more():
    one = Signature(None, False, frozenset({"length of .log"}), "roll_log")
    more = Signature(None, False, frozenset({"length of .log", "content of .log"}), "append_as_leader")
    assert one.explains(more)
    assert not more.explains(one)
    nothing = Signature(None, False, frozenset(), "roll_log")
    assert nothing.explains(one)
    assert not nothing.explains(more)


def test_every_known_cause_is_covered_by_a_clause():
    """A row that needs something is one of a loss; a loss of anything at all is not known."""
    lost = Signature(Guarantee.BY_TIME, True, frozenset({"length of .timeindex"}), "close_log")
    assert POWER_LOSS.clause_of_signature("log", lost, "4.3.1") == "PF-2"
    assert POWER_LOSS.clause_of_signature("log", lost, "4.4.0") is None


def test_planted_defects_are_many():
    assert len(PLANTED) >= 20
