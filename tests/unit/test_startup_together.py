"""Directories that belong together: copies of a partition under several names, and the directory of KRaft's own log.

The test of what brokers do with them is tests/broker/test_copies.py.
"""

import base64
import shutil
import struct

import pytest
from startups import (
    CONFIG,
    DISKS,
    ID,
    PROPERTIES,
    RELEASE,
    REMOVE_TOPIC_RECORD,
    change_record,
    leader_record,
    log,
    partition_record,
    start,
    stopped_broker,
    write_metadata,
    write_offsets,
)

from kidx.discovery import parse_partition
from kidx.log import UnifiedLog
from kidx.records import build_batch
from kidx.records.record import ControlRecordType
from kidx.verify import verify_paths

filled, data = stopped_broker(2)


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


def outcomes(found):
    """Return the outcomes of partitions by directory; KRaft's own log has none."""
    return {each.directory: each.outcome for each in found.partitions if each.directory.name != "__cluster_metadata-0"}


# -- copies of partitions that were being moved ------------------------------------------------------------------------

FUTURE = f"orders-0.{'0123456789abcdef' * 2}-future"
DISK_IDS = [base64.urlsafe_b64encode(disk).decode().rstrip("=") for disk in DISKS]


@pytest.fixture
def disks(data):
    """Make both log directories of a broker; its partitions are assigned to the first."""
    other = data.with_name("other")
    other.mkdir()
    (other / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    (other / ".kafka_cleanshutdown").write_text((data / ".kafka_cleanshutdown").read_text())
    for directory, disk in zip((data, other), DISK_IDS, strict=True):
        (directory / "meta.properties").write_text(f"{PROPERTIES}directory.id={disk}\n")
        (directory / "log-start-offset-checkpoint").write_text("0\n0\n")
    write_metadata(data, *(partition_record(number, [1], DISKS[:1]) for number in range(2)))
    return data, other


def shorten(path, *bases):
    for base in bases:
        for file in path.glob(f"{base:020d}.*"):
            file.unlink()


def test_a_copy_beside_its_partition_prevents_the_start(disks):
    data, other = disks
    shutil.copytree(data / "orders-0", data / FUTURE)
    found = start(*disks)
    assert [each.path for each in found.fatal] == [data / FUTURE]
    assert found.fatal[0].remedy.startswith(f"move {data / FUTURE} out of the log directory")
    shorten(data / "orders-0", 36)
    assert start(*disks).fatal[0].remedy.startswith(f"move {data / 'orders-0'} out of the log directory")
    (data / FUTURE).rename(other / FUTURE)  # not the log directory of the assignment: the move continues
    (cut,) = start(*disks).of("cut")
    assert (cut.directory, cut.end, cut.readable) == (other / FUTURE, (48, 36), 12)


def test_a_copy_in_the_assigned_directory_replaces_the_partition_elsewhere(disks):
    data, other = disks
    shutil.copytree(data / "orders-0", other / "orders-0")
    (data / "orders-0").rename(data / FUTURE)
    assert (start(*disks).answer, outcomes(start(*disks))) == ("yes", {data / FUTURE: "kept"})
    shorten(data / FUTURE, 24, 36)
    found = start(*disks)
    (cut,) = found.of("cut")
    assert (found.answer, cut.directory, cut.end, cut.readable) == ("no", other / "orders-0", (48, 24), 24)
    assert str(data / FUTURE) in cut.reason
    assert f"move {data / FUTURE} out of the log directory" in cut.remedy
    # 3.7.0 leaves the partition where it is, and continues the move.
    (data / FUTURE).rename(other / FUTURE)
    (other / "orders-0").rename(data / "orders-0")
    assert not start(*disks, release="3.7.0").of("cut")


def test_the_only_copy_of_a_partition_is_emptied_unless_it_is_where_the_metadata_assign_it(disks):
    data, other = disks
    (data / "orders-0").rename(other / FUTURE)
    found = start(*disks)
    (cut,) = found.of("cut")
    assert (found.answer, cut.directory, cut.end, cut.readable) == ("no", other / FUTURE, (48, 0), 48)
    assert cut.remedy == f"mv {other / FUTURE} {other / 'orders-0'}"
    (other / FUTURE).rename(other / "orders-0")  # as the remedy says
    assert start(*disks).answer == "yes"
    (other / "orders-0").rename(data / FUTURE)
    assert start(*disks).answer == "yes"


def test_copies_of_another_topic_are_renamed_and_are_no_duplicates(disks):
    data, other = disks
    shutil.copytree(data / "orders-0", other / "orders-0")
    assert not start(*disks).starts
    (other / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: OXyGkVjsR02DyybEsRtGng")
    found = start(*disks)
    assert (found.answer, outcomes(found)) == ("yes", {other / "orders-0": "renamed"})
    shutil.rmtree(data / "orders-0")
    assert outcomes(start(*disks)) == {other / "orders-0": "stray"}


# -- directories that KRaft's metadata explain -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([REMOVE_TOPIC_RECORD], "its topic was deleted on purpose (offset 3 of __cluster_metadata-0)"),
        (
            [change_record(0, [2, 3]), change_record(1, [2])],
            "KRaft's metadata have its replicas on 2, 3, and not on this broker",
        ),
    ],
)
def test_what_was_deleted_or_moved_on_purpose_is_no_loss(data, records, reason):
    write_metadata(data, *(partition_record(number, [1]) for number in range(2)), *records)
    (data / ".kafka_cleanshutdown").unlink()
    found = start(data)
    assert (found.answer, list(outcomes(found).values())) == ("yes", ["renamed"] * 2)
    assert found.of("renamed")[0].reason.startswith(reason)
    assert any("as it should" in line for line in found.lines())


def test_no_directory_is_moved_on_purpose_if_the_log_directories_have_different_node_ids(disks):
    (disks[0] / "meta.properties").write_text(PROPERTIES.replace("node.id=1", "node.id=77"))
    found = start(*disks)
    assert (found.answer, outcomes(found)) == ("no", {})


def test_a_directory_without_a_topic_id_whose_topic_does_not_exist_is_only_renamed(data):
    write_metadata(data, *(partition_record(number, [1]) for number in range(2)))
    (data / "backup-2024").mkdir()
    shutil.copy(data / "orders-0" / log(0), data / "backup-2024")
    found = start(data)
    assert (found.answer, outcomes(found)) == ("yes", {data / "backup-2024": "renamed"})
    (data / "backup-2024").rename(data / "orders-9")
    assert start(data).of("stray")


def test_a_partition_that_its_topic_does_not_have_is_a_stray(data):
    write_metadata(data, partition_record(0, [1]))
    (stray,) = start(data).of("stray")
    assert stray.directory == data / "orders-1"
    assert ID in (data / "orders-1" / "partition.metadata").read_text()


def test_a_copy_that_is_being_moved_has_no_losses_of_its_partition(disks):
    """The checkpoint has the end of the partition that was here before it was moved by hand."""
    data, other = disks
    (data / "orders-0").rename(other / "orders-0")
    shutil.copytree(other / "orders-0", data / FUTURE)
    shorten(data / FUTURE, 36)
    (data / "replication-offset-checkpoint").write_text("0\n1\norders 0 48\n")
    findings = verify_paths(disks, release=RELEASE, processes=1).findings
    assert not [each for each in findings if "records were lost" in each.message]
    assert [each.end for each in start(*disks).of("cut")] == [(48, 36)]


# -- releases before 3.7 -----------------------------------------------------------------------------------------------

BEFORE = "3.6.2"
OTHER_ID = "OXyGkVjsR02DyybEsRtGng"


@pytest.fixture
def early(data, tmp_path):
    """Make both log directories of a broker before 3.7, whose metadata have no ids of log directories."""
    other = tmp_path / "other"
    shutil.copytree(data, other)
    shutil.rmtree(other / "orders-0")
    shutil.rmtree(data / "orders-1")
    write_metadata(data, *(partition_record(number, [1]) for number in range(2)))
    return data, other


def give_id(path, topic_id):
    (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")


def test_before_3_7_a_log_without_a_topic_id_gets_the_one_of_the_metadata(early):
    (early[1] / "orders-1" / "partition.metadata").unlink()
    found = start(*early, release=BEFORE)
    assert (found.answer, outcomes(found)) == ("yes", {})
    assert outcomes(start(*early, release="3.7.0")) == {early[1] / "orders-1": "stray"}


def test_before_3_7_a_stray_is_deleted_and_prevents_others_from_being_served_where_it_leads(early):
    path = early[1] / "orders-1"
    give_id(path, OTHER_ID)
    (refused,) = start(*early, release=BEFORE).of("refused")
    assert refused.reason.endswith(
        "nor others that it was about to serve; and the broker deletes the directory (file.delete.delay.ms later)"
    )
    assert refused.remedy.endswith(f"topic_id: {ID}")
    write_metadata(early[0], *(partition_record(number, [1]) for number in range(2)), leader_record(1, -1))
    (stray,) = start(*early, release=BEFORE).of("stray")  # as after a clean stop
    assert stray.reason.endswith("deletes the directory (file.delete.delay.ms later), and the partition starts empty")
    assert "renamed" not in "".join(start(*early, release=BEFORE).lines())


def test_before_3_7_a_stray_without_a_topic_id_prevents_the_deletion_of_all(early):
    give_id(early[1] / "orders-1", OTHER_ID)
    shutil.copytree(early[0] / "orders-0", early[0] / "gone-0")
    (early[0] / "gone-0" / "partition.metadata").unlink()
    (refused,) = start(*early, release=BEFORE).of("refused")
    assert refused.reason.endswith("and the broker leaves the directory")


def test_before_3_7_what_was_deleted_on_purpose_is_deleted_on_the_disk(early):
    write_metadata(early[0], *(partition_record(number, [1]) for number in range(2)), REMOVE_TOPIC_RECORD)
    found = start(*early, release=BEFORE)
    assert (found.answer, list(outcomes(found).values())) == ("yes", ["renamed"] * 2)
    assert all("the broker deletes the directory" in each.reason for each in found.of("renamed"))


def test_before_3_7_partitions_of_a_directory_that_goes_offline_are_made_elsewhere(early):
    (early[1] / "orders-1" / "partition.metadata").write_text(f"version: 7\ntopic_id: {ID}")
    found = start(*early, release=BEFORE)
    assert (found.answer, outcomes(found)) == ("no", {early[1] / "orders-1": "empty"})
    assert found.line.endswith("and then 1 partition would start empty, above")
    assert "once the partition is in two, the broker does not start" in "".join(found.lines())
    assert not outcomes(start(*early, release="3.7.0"))
    give_id(early[1] / "orders-1", ID)
    (early[1] / "replication-offset-checkpoint").write_text("garbage\n")  # is read for each partition that is served
    found = start(*early, release=BEFORE)
    assert (list(found.offline), outcomes(found)) == ([early[1]], {})
    (early[1] / "replication-offset-checkpoint").rename(early[0] / "replication-offset-checkpoint")
    found = start(*early, release=BEFORE)  # the log directory with KRaft's own log
    assert (found.starts, list(found.offline)) == (True, [early[0]])
    assert not start(*early, release="3.7.0").starts


@pytest.mark.parametrize(("release", "starts"), [("2.8.2", True), ("3.0.0", False), ("3.6.2", False), ("4.4.0", False)])
@pytest.mark.parametrize("is_clean", [True, False])
def test_an_open_transaction_in_a_log_directory_that_is_offline_already_ends_the_broker(
    early, release, starts, is_clean
):
    data, other = early
    checkpoint = other / "log-start-offset-checkpoint"
    checkpoint.write_text("garbage\n")
    path = other / "orders-1"
    assert start(data, other, release=release).starts
    begin_transaction(path)
    if not is_clean:
        (other / ".kafka_cleanshutdown").unlink()
        for snapshot in path.glob("*.snapshot"):
            snapshot.unlink()
    found = start(data, other, release=release)
    assert (found.starts, list(found.offline)) == (starts, [other])
    if not starts:
        assert [each.path for each in found.fatal] == [path]
        assert f"because {checkpoint} has taken its log directory offline" in found.line
    checkpoint.rename(other / "replication-offset-checkpoint")  # is read for each partition that is served
    assert start(data, other, release=release).starts


def test_an_open_transaction_that_is_loaded_before_its_log_directory_goes_offline_does_not_end_the_broker(early):
    data, other = early
    shutil.copytree(data / "orders-0", other / "orders-2")
    first, last = (path for path in other.iterdir() if path.is_dir())
    text = (first / "partition.metadata").read_text()
    begin_transaction(first)
    (last / "partition.metadata").write_text("garbage\n")
    assert start(data, other).starts
    (last / "partition.metadata").write_text(text)
    (first / "partition.metadata").write_text("garbage\n")  # this log itself is not loaded
    assert start(data, other).starts
    begin_transaction(last)
    assert not start(data, other).starts


def begin_transaction(path):
    with UnifiedLog(path, CONFIG, dialect=RELEASE) as log:
        now = log.clock()
        log.append_as_leader(
            build_batch([(now, None, b"x")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True), 0
        )


def test_before_3_7_a_partition_that_is_a_link_to_nothing_is_made_elsewhere(early):
    path = early[1] / "orders-1"
    path.rename(early[1].parent / "aside")
    path.symlink_to("nowhere")
    found = start(*early, release=BEFORE)
    assert (list(found.offline), outcomes(found)) == ([early[1]], {path: "empty"})


def test_with_zookeeper_a_partition_of_another_topic_is_not_served(early):
    of_zookeeper(early)
    shutil.copytree(early[0] / "orders-0", early[0] / "orders-2")
    give_id(early[1] / "orders-1", OTHER_ID)
    assert start(*early, release="2.8.2").partitions == ()
    (refused,) = start(*early, release="3.9.2").partitions
    assert (refused.directory, refused.outcome) == (early[1] / "orders-1", "refused")
    assert refused.reason.endswith("the broker does not serve the partition (InconsistentTopicIdException)")


def of_zookeeper(directories):
    for directory in directories:
        shutil.rmtree(directory / "__cluster_metadata-0", ignore_errors=True)
        (directory / "meta.properties").write_text("version=0\ncluster.id=c1\nbroker.id=1\n")


def test_with_zookeeper_an_empty_log_directory_is_a_condition(early, tmp_path):
    of_zookeeper(early)
    empty = tmp_path / "empty"
    (empty / "lost+found").mkdir(parents=True)
    found = start(*early, empty, release="2.8.2")
    assert found.line == f"may I start the broker? yes, if {empty} had no partition"
    assert any(f"{empty}: it is empty: the broker takes it for a new log directory" in line for line in found.lines())


def test_a_stray_prevents_the_start_of_brokers_that_do_not_know_the_name(early):
    of_zookeeper(early)
    stray = early[0] / f"orders-7.{'0' * 32}-stray"
    shutil.copytree(early[0] / "orders-0", stray)
    assert start(*early, release="3.6.2").answer == "yes"
    assert [each.path for each in start(*early, release="3.5.2").fatal] == [stray]


def test_with_zookeeper_properties_may_be_missing_in_a_log_directory(early):
    (early[1] / "meta.properties").unlink()
    (fatal,) = start(*early, release=BEFORE).fatal
    assert fatal.path == early[1] / "meta.properties"
    of_zookeeper(early[:1])
    assert start(*early, release="2.8.2").answer == "yes"


def test_up_to_3_6_all_properties_of_log_directories_are_compared(early):
    properties = early[1] / "meta.properties"
    properties.write_text("\r\n".join(reversed(PROPERTIES.split())))
    assert start(*early, release=BEFORE).answer == "yes"
    properties.write_text(f"{PROPERTIES}color: red\n")
    assert start(*early, release="3.7.0").answer == start(*early, release="2.7.2").answer == "yes"
    (fatal,) = start(*early, release=BEFORE).fatal
    assert fatal.reason == "its 'color' is not the same as in another log directory"


def test_a_directory_as_the_mark_of_a_clean_stop_is_one(early):
    for directory in early:
        (directory / ".kafka_cleanshutdown").unlink()
        (directory / ".kafka_cleanshutdown").mkdir()
    found = start(*early, release=BEFORE)
    assert (found.answer, set(found.clean.values())) == ("yes", {True})
    (early[0] / ".kafka_cleanshutdown" / "x").touch()
    assert start(*early, release=BEFORE).answer == "no"


@pytest.mark.parametrize("kraft", [False, True])
def test_a_partition_that_only_a_checkpoint_names_starts_empty_unless_its_topic_is_deleted(early, kraft):
    for directory in early:
        shutil.rmtree(directory / "__cluster_metadata-0", ignore_errors=True)
        if not kraft:
            (directory / "meta.properties").write_text("version=0\ncluster.id=c1\nbroker.id=1\n")
    path = early[1] / "orders-1"
    write_offsets(early[1] / "recovery-point-offset-checkpoint", {1: 48})
    release = RELEASE if kraft else "2.8.2"
    assert start(*early, release=release).answer == "yes"
    shutil.copytree(path, moved := early[0] / "orders-1")
    shutil.rmtree(path)
    assert start(*early, release=release).answer == "yes"  # moved by hand: it is recovered from its beginning on
    deleted = moved.rename(f"{moved}.{'0' * 32}-delete")
    assert start(*early, release=release).answer == "yes"
    shutil.rmtree(deleted)
    found = start(*early, release=release)
    assert (found.answer, outcomes(found)) == ("no", {path: "empty"})
    assert "its topic may still exist" in found.line


@pytest.mark.parametrize("text", ["garbage", "", "version: 7\n", f"version: 0\ntopic_id: {OTHER_ID}"])
def test_before_2_8_partition_metadata_is_not_read(early, text):
    for directory in early:
        shutil.rmtree(directory / "__cluster_metadata-0", ignore_errors=True)
        (directory / "meta.properties").write_text("version=0\ncluster.id=c1\nbroker.id=1\n")
    (early[1] / "orders-1" / "partition.metadata").write_text(text)
    found = start(*early, release="2.7.2")
    assert (found.fatal, found.offline, found.partitions) == ((), {}, ())


def test_a_copy_whose_partition_is_made_next_to_it_takes_its_log_directory_offline(early):
    data, other = early
    copy = other / FUTURE.replace("orders-0", "orders-1")
    (other / "orders-1").rename(copy)
    found = start(*early, release=BEFORE)  # as many logs as in the first log directory, which therefore gets orders-1
    assert (outcomes(found), found.offline) == ({copy: "cut"}, {})
    shutil.copytree(data / "orders-0", data / "orders-2")
    found = start(*early, release=BEFORE)
    assert [(path, why.path) for path, why in found.offline.items()] == [(other, copy)]
    assert "cannot rename it to that name (DirectoryNotEmptyException)" in found.line
    assert f"  mv {copy} {other / 'orders-1'}" in found.lines()
    assert not outcomes(found).get(other / "orders-1"), "its partition was served, and is not made elsewhere"


def test_before_3_7_a_copy_beside_its_partition_is_filled_and_takes_the_log_directory_offline(early):
    data, _ = early
    shutil.copytree(data / "orders-0", data / FUTURE)
    assert start(*early, release="3.7.0").answer == "yes"
    found = start(*early, release=BEFORE)
    assert (found.answer, [why.path for why in found.offline.values()]) == ("no", [data / FUTURE])
    of_zookeeper(early)
    assert list(start(*early, release="2.8.2").offline) == [data]
    assert start(*early, release="3.9.2").answer == "yes"


@pytest.mark.parametrize("records", [24, 48])
def test_before_3_7_1_a_copy_of_another_topic_costs_its_partition(early, records):
    data, other = early
    copy = other / FUTURE
    shutil.copytree(data / "orders-0", copy)
    give_id(copy, OTHER_ID)
    shorten(data / "orders-0", *(range(records, 48, 12)))
    found = start(*early, release=BEFORE)
    assert outcomes(found)[copy] == "stray"
    assert "the broker deletes this copy, and orders-0 with it, which starts empty" in found.line
    found = start(*early, release="3.7.0")
    assert outcomes(found) == {data / "orders-0": "stray"}
    assert "this release renames orders-0 to …-stray instead" in found.line
    found = start(*early, release="3.7.1")
    assert (found.answer == "no", outcomes(found)[copy]) == (False, "renamed")


def test_before_3_2_1_a_log_whose_topic_id_cannot_be_read_ends_the_broker(early):
    (early[1] / "orders-1" / "partition.metadata").write_text(f"version: 7\ntopic_id: {ID}")
    assert (start(*early, release="3.2.1").starts, start(*early, release="3.2.0").starts) == (True, False)


def test_without_the_metadata_no_place_of_a_missing_partition_is_known(disks):
    data, _ = disks
    shutil.rmtree(data / "__cluster_metadata-0")
    (data / "orders-0").rename(data / FUTURE)
    assert not start(data).offline
    for directory in disks:  # without ids of log directories, the broker makes it where the fewest logs are
        (directory / "meta.properties").write_text(PROPERTIES)
    assert start(data, release=BEFORE).fatal[0].path == data / FUTURE


@pytest.mark.parametrize(("is_second", "gives_up"), [(False, True), (True, False)])
def test_a_file_in_the_place_of_a_partition_takes_its_log_directory_offline(disks, is_second, gives_up):
    data, other = disks
    path = (other if is_second else data) / "orders-1"
    shutil.rmtree(data / "orders-1")
    path.write_text("tar: stopped")
    found = start(data, other)
    assert list(found.offline) == ([data] if gives_up else [])
    if gives_up:
        assert f"{path}: it is a file: the broker cannot create" in found.line
        assert "move it out of the log directory" in found.lines()[1]


# -- other releases ------------------------------------------------------------------------------------------------


def feature_record(level):
    """Return a FeatureLevelRecord of version 0."""
    return b"\1\x0c\0\x11metadata.version" + struct.pack(">h", level) + b"\0"


@pytest.mark.parametrize(
    ("level", "dying", "starting"),
    [(30, "4.2.2", "4.3.1"), (30, "3.9.2", "4.4.0"), (21, "3.8.1", "3.9.2"), (6, "4.0.2", "3.9.2")],
)
@pytest.mark.parametrize("is_bootstrap", [False, True])
def test_no_release_starts_with_the_metadata_version_of_a_later_one(data, level, dying, starting, is_bootstrap):
    records = [partition_record(number, [1]) for number in range(2)]
    write_metadata(data, *records, *([] if is_bootstrap else [feature_record(level)]))
    footer = build_batch([(0, ControlRecordType.SNAPSHOT_FOOTER.record_key, b"\0\0")], is_control=True)
    content = build_batch([(0, None, feature_record(level if is_bootstrap else 7))])
    (data / "bootstrap.checkpoint").write_bytes(content + footer)
    found = start(data, release=dying)
    assert f"its metadata.version is {level}, and Kafka {dying} knows" in found.line
    assert "start a release that knows it" in found.lines()[0 if len(found.lines()) == 1 else 1]
    assert start(data, release=starting).answer == "yes"


def test_a_release_does_not_start_with_records_that_it_cannot_read(data):
    record = bytearray(partition_record(0, [1], [bytes(16)]))
    record[2] = 2  # the version with eligible leader replicas, which are tags
    write_metadata(data, bytes(record), partition_record(1, [1]))
    assert "it has a record of type 3 and version 2" in start(data, release="3.6.2").line
    assert start(data, release="3.9.2").answer == "yes"


def test_a_release_without_zookeeper_needs_metadata(data):
    (data / "meta.properties").write_text("version=0\ncluster.id=c1\nbroker.id=1\n")
    assert start(data, release="3.9.2").line == "may I start the broker? yes"
    assert start(data, release="4.3.1").line.endswith("yes, if KRaft's own log is elsewhere")
    (data / "orders-1" / "partition.metadata").unlink()
    assert [each.directory.name for each in start(data, release="4.3.1").of("stray")] == ["orders-1"]
