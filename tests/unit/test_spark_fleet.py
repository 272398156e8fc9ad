"""What the fleet's tasks do, without Spark: portions, replicas, the page."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kidx.discovery import discover
from kidx.records import build_batch, file_batches
from kidx.spark.fleet.replicas import compare_replicas
from kidx.spark.fleet.report import write_report
from kidx.spark.fleet.rows import Rows
from kidx.spark.fleet.sizing import size_of
from kidx.spark.fleet.summary import Count, Summary
from kidx.spark.fleet.work import Kept, perform_named, portions
from kidx.verify import verify_paths

GOLDEN = Path(__file__).parents[1] / "golden" / "3.9.2"


def partitions_of(*paths):
    return [partition for path in paths for partition in discover([path]).partitions]


@pytest.fixture
def pair(tmp_path):
    """Two replicas of a partition with two segments."""
    for name in ("1", "2"):
        shutil.copytree(GOLDEN / "create-time-0", tmp_path / name / "create-time-0")
    return tmp_path / "1" / "create-time-0", tmp_path / "2" / "create-time-0"


def differences(one, two):
    return list(compare_replicas(partitions_of(one, two)))


def last_log(directory):
    return max(path for path in directory.glob("*.log") if path.stat().st_size)


def test_equal_replicas_do_not_differ_wherever_they_begin_and_end(pair):
    one, two = pair
    assert not differences(one, two)
    log = last_log(two)
    *_, last = file_batches(log)
    position = last.position
    with log.open("r+b") as file:
        file.truncate(position)  # a follower that is behind
    min(one.glob("*.log")).unlink()  # and a broker that has deleted more
    assert not differences(one, two)


def test_another_byte_is_a_difference(pair):
    one, two = pair
    batch = list(file_batches(last_log(two)))[1]
    offset, position = batch.base_offset, batch.position
    data = bytearray(last_log(two).read_bytes())
    data[position + 20] ^= 1  # the checksum, as other bytes under it would have another
    last_log(two).write_bytes(data)
    (found,) = differences(one, two)
    assert (found.offset, found.path, found.other) == (offset, str(two), str(one))
    assert "has other bytes" in found.message


def test_a_missing_batch_is_a_difference_unless_a_cleaner_was_there(tmp_path):
    def write(name, bases):
        directory = tmp_path / name / "t-0"
        directory.mkdir(parents=True)
        batches = [build_batch([(1, b"k", b"v")], base_offset=base) for base in bases]
        (directory / f"{0:020d}.log").write_bytes(b"".join(batches))
        return directory

    whole, shorter = write("a", range(10)), write("b", range(8))
    assert not differences(whole, shorter)
    overlapping = write("c", range(3))
    (overlapping / f"{0:020d}.log").write_bytes(build_batch([(n, b"k", b"v") for n in range(5)]))
    (found,) = differences(whole, overlapping)
    assert found.message.endswith("the batch at offset 0 ends elsewhere")
    (found,) = differences(whole, write("d", [0, 1, 2, 3, 6, 7, 8, 9]))
    assert found.message.endswith(f"{tmp_path / 'd' / 't-0'} lacks the batch at offset 4")
    cleaned = write("e", [0, 3])
    with (cleaned / f"{0:020d}.log").open("ab") as file:
        file.write(build_batch([(1, b"k", b"v")], base_offset=4, last_offset=7))
        file.write(build_batch([(1, b"k", b"v")], base_offset=9))
    assert not differences(cleaned, write("f", [0, 1, 2, 3, 9]))


def test_what_cannot_be_read_is_a_difference(pair):
    one, two = pair
    log = last_log(two)
    data = bytearray(log.read_bytes())
    data[8:12] = b"\x00\x00\x00\x01"
    log.write_bytes(data)
    (found,) = differences(one, two)
    assert found.offset == -1
    assert "cannot be compared" in found.message


def test_portions_hold_every_segment_once_and_their_names_tell_what_changed(tmp_path):
    data = tmp_path / "data"
    shutil.copytree(GOLDEN, data, ignore=shutil.ignore_patterns("running", "*.json"))
    wanted = [str(segment.log) for partition in partitions_of(data) for segment in partition.segments]

    def portions_now():
        return portions([(partition, "1") for partition in partitions_of(data)], 4, None, None)

    work = portions_now()
    held = [str(segment.log) for portion in work for share in portion.shares for segment in share.partition.segments]
    assert sorted(held) == sorted(wanted)
    names = [portion.id for portion in work]
    assert [portion.id for portion in portions_now()] == names
    next((data / "restarted-0").glob("*.index")).write_bytes(b"")
    assert len({portion.id for portion in portions_now()} - set(names)) == 1

    kept = Kept(tmp_path / "work")
    for portion in portions_now():
        kept.lay_down(portion.id, portion)
        perform_named(kept, portion.id)
        assert kept.has(portion.id)
    rows = Rows(kept, None, None, ())
    found = [row for portion in portions_now() for row in rows.findings([[portion.id]])]
    assert found == [finding.to_json() for finding in verify_paths([data], processes=1).findings]
    assert not list((tmp_path / "work").glob("*.work"))


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "rect":
            assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(tmp_path):
    counts = (
        Count("verdict", "exact", "exact", 90, 9000),
        Count("verdict", "broken", "broken", 10, 1000),
        Count("topic", "<script>", "exact", 60, 1),
        Count("topic", "<script>", "broken", 10, 1),
        Count("topic", "quiet", "exact", 30, 1),
        Count("age", "1 under a day", "exact", 100, 1),
    )
    summary = Summary(
        counts, {"broken": 3}, 25, 4, 1000, 123_456, 1, ("/b/t-0: the batch at offset 5 has other bytes",), ()
    )
    asked = {"run_id": "monday", "paths": ["/a & b"], "release": None, "kidx": "0"}
    path = write_report(tmp_path / "report.html", summary, asked, [("/c", "Permission denied")])
    page = Page()
    text = path.read_text("utf-8")
    page.feed(text)
    assert not page.open
    assert not [attrs for _, attrs in page.tags if {"src", "href"} & set(attrs)]
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    rects = [attrs for tag, attrs in page.tags if tag == "rect"]
    assert [(each["class"], float(each["width"])) for each in rects[:2]] == [("exact", 85.714), ("broken", 14.286)]
    for said in ("under a day", "other bytes", "Permission denied", "70 · 10 bad"):
        assert said in text, said


def test_the_model_of_sizes_counts_the_tasks_that_there_are(tmp_path):
    for number in range(40):
        directory = tmp_path / f"t-{number}"
        directory.mkdir()
        for base in range(10):
            (directory / f"{base:020d}.log").write_bytes(bytes(1000))
    found = [(partition, "1") for partition in partitions_of(tmp_path)]
    for cores in (1, 2, 5):
        assert abs(len(portions(found, 4 * cores, None, None)) - size_of(400, 400_000, cores).tasks) <= 2
    petabyte = size_of(10**6, 10**15, 1000)
    assert 90_000 < petabyte.tasks <= 100_001
    assert petabyte.driver_bytes < 2 << 30
