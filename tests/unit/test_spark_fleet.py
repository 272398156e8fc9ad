"""Tasks of the fleet, without Spark: listing, verdicts, replicas, the page."""

from __future__ import annotations

import json
import os
import shutil
import time
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet
import pytest

from kidx.findings import Finding, in_order
from kidx.records import build_batch, file_batches
from kidx.spark.fleet import listing
from kidx.spark.fleet.listing import Request, list_roots, roots_of
from kidx.spark.fleet.output import reason_of_spark
from kidx.spark.fleet.places import Place
from kidx.spark.fleet.replicas import Replica, compare_listed, compare_replicas
from kidx.spark.fleet.report import render_report
from kidx.spark.fleet.run import MAX_TASKS, SMALLEST, tasks_of
from kidx.spark.fleet.summary import WAYS, Count, Summary, count
from kidx.spark.fleet.tables import LISTING, VERDICTS
from kidx.spark.fleet.work import settle_rows, verify_rows
from kidx.verify import verify_paths

GOLDEN = Path(__file__).parents[1] / "golden" / "3.9.2"
TOGETHER = pa.schema([
    ("together", pa.string()),
    ("listed", pa.struct(list(LISTING))),
    ("found", pa.struct(list(VERDICTS))),
])  # fmt: skip


def listed(*paths, asked=Request()):  # noqa: B008 -- it is frozen
    """Return the rows of the listing of one task."""
    roots = roots_of(paths, asked.options)
    numbers = pa.record_batch({"id": range(len(roots))})
    return [row for batch in list_roots(roots, asked, iter([numbers])) for row in batch.to_pylist()]


def verified(*paths, asked=Request()):  # noqa: B008
    """Return the findings, and verdicts by path, of the tasks of a run."""
    findings, verdicts = [], {}
    for row in listed(*paths, asked=asked):
        assert row["problem"] is None
        rows = [row | {"segments": [segment]} for segment in row["segments"]]
        batches = pa.Table.from_pylist(rows, LISTING).to_batches()
        found = pa.Table.from_batches(verify_rows(asked, lambda _: None, iter(batches)))
        both = pa.Table.from_pylist([{"together": row["together"], "listed": row, "found": None}], TOGETHER)
        some = [{"together": row["together"], "listed": None, "found": each} for each in found.to_pylist()]
        batches = [*both.to_batches(), *pa.Table.from_pylist(some, TOGETHER).to_batches()]
        for settled in pa.Table.from_batches(settle_rows(asked, iter(batches))).to_pylist():
            findings += [Finding(**finding) for finding in settled["findings"]]
            verdicts |= {file["path"]: file["verdict"] for file in settled["files"]}
    return in_order(findings), verdicts


@pytest.fixture
def pair(tmp_path):
    """Make two replicas of a partition with two segments."""
    for name in ("1", "2"):
        shutil.copytree(GOLDEN / "create-time-0", tmp_path / name / "create-time-0")
    return tmp_path / "1" / "create-time-0", tmp_path / "2" / "create-time-0"


def differences(one, two):
    replicas = [
        Replica(row["topic"], row["partition"], Place(row["place"], os.fsdecode(row["raw"])),
                tuple((each["base_offset"], each["log"]) for each in row["segments"]),
                row["start_offset"], row["cluster"], row["topic_id"])
        for row in listed(one, two)
    ]  # fmt: skip
    return list(compare_replicas(replicas))


def last_log(directory):
    return max(path for path in directory.glob("*.log") if path.stat().st_size)


def test_equal_replicas_do_not_differ_wherever_they_begin_and_end(pair):
    one, two = pair
    assert not differences(one, two)
    log = last_log(two)
    *_, last = file_batches(log)
    position = last.position
    with log.open("r+b") as file:
        file.truncate(position)  # a follower that lags
    min(one.glob("*.log")).unlink()  # and a broker that has deleted more
    assert not differences(one, two)


@pytest.mark.parametrize("clusters", [("A", "B"), ("A", "A"), ("A", None)])
def test_replicas_are_compared_within_their_cluster(clusters, pair):
    for directory, cluster in zip(pair, clusters, strict=True):
        if cluster is not None:
            (directory.parent / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\n")
    data = bytearray(last_log(pair[1]).read_bytes())
    data[17] ^= 1
    last_log(pair[1]).write_bytes(data)
    assert bool(differences(*pair)) == (clusters != ("A", "B"))


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


OLD, NEW = "rKcGn0ygQ8OEsl1EDgbTnQ", "1Z2y3X4w5V6u7T8s9R0qPA"


@pytest.mark.parametrize("ids", [(OLD, OLD), (OLD, NEW), (OLD, None), (OLD, "<script>")])
def test_directories_of_two_topics_are_no_replicas(ids, pair):
    for directory, topic_id in zip(pair, ids, strict=True):
        if topic_id is not None:
            (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    found = [(each.expected, each.actual, each.message) for each in differences(*pair)]
    message = f"{pair[1]}: another topic: topic id {NEW}, and {pair[0]} has {OLD}"
    assert found == ([(OLD, NEW, message)] if NEW in ids else [])


def test_the_topic_id_is_listed_from_a_directory_and_from_a_store(pair):
    (pair[0] / "partition.metadata").write_text(f"version: 0\ntopic_id: {OLD}\n")
    store = fsspec.filesystem("memory")
    store.put(str(pair[0].parents[1]), "/topics", recursive=True)
    try:
        for path in (pair[0].parents[1], "memory://topics", "memory://topics/1", "memory://topics/1/create-time-0"):
            found = [(Path(row["place"]).parent.name, row["topic_id"]) for row in listed(path)]
            assert sorted(found) in ([("1", OLD)], [("1", OLD), ("2", None)])
    finally:
        store.rm("/topics", recursive=True)


def test_a_table_of_an_earlier_version_lacks_columns(tmp_path):
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    from kidx.spark.fleet.parquet import ParquetOverFsspec

    pa.parquet.write_table(pa.table({"path": ["/a"], "segments": [3]}), tmp_path / "part.parquet")
    names = {"path": StringType(), "topic_id": StringType(), "segments": LongType(), "later": LongType()}
    schema = StructType([StructField(name, kind) for name, kind in names.items()])
    reader = ParquetOverFsspec({"path": f"file://{tmp_path}"}).reader(schema)
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert rows == [{"path": "/a", "topic_id": None, "segments": 3, "later": None}]


def test_a_missing_batch_is_a_difference_unless_compaction_ran(tmp_path):
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
    assert found.message.endswith("the batch at offset 0 ends at another offset")
    (found,) = differences(whole, write("d", [0, 1, 2, 3, 6, 7, 8, 9]))
    assert found.message.endswith(f"{tmp_path / 'd' / 't-0'} lacks the batch at offset 4")
    cleaned = write("e", [0, 3])
    with (cleaned / f"{0:020d}.log").open("ab") as file:
        file.write(build_batch([(1, b"k", b"v")], base_offset=4, last_offset=7))
        file.write(build_batch([(1, b"k", b"v")], base_offset=9))
    assert not differences(cleaned, write("f", [0, 1, 2, 3, 9]))


def test_an_unreadable_file_is_a_difference(pair):
    one, two = pair
    log = last_log(two)
    data = bytearray(log.read_bytes())
    data[8:12] = b"\x00\x00\x00\x01"
    log.write_bytes(data)
    (found,) = differences(one, two)
    assert found.offset == -1
    assert "cannot be compared" in found.message


@pytest.fixture
def data(tmp_path):
    copy = tmp_path / "data"
    shutil.copytree(GOLDEN, copy, ignore=shutil.ignore_patterns("running", "*.json"))
    index = min(path for path in (copy / "restarted-0").glob("*.index") if path.stat().st_size)
    content = bytearray(index.read_bytes())
    content[7] ^= 64
    index.write_bytes(content)
    return copy


def test_the_tasks_have_the_verdicts_of_one_machine(data, monkeypatch):
    plain = verify_paths([data], processes=1)
    assert plain.findings
    findings, verdicts = verified(data)
    assert findings == plain.findings
    assert verdicts == {file.path: file.verdict for file in plain.files}
    monkeypatch.chdir(data.parent)
    for given in (["data"], ["."], [Path("data") / "restarted-0"], sorted(Path("data/restarted-0").glob("*.log"))):
        assert verified(*given)[0] == verify_paths(given, processes=1).findings


def test_a_store_is_verified_as_a_directory_is_with_its_own_names(data):
    store = fsspec.filesystem("memory")
    store.put(str(data), "/fleet/data", recursive=True)
    try:
        plain = verify_paths([data], processes=1)
        for below in ("", "/restarted-0"):
            url = f"memory://fleet/data{below}"
            findings, verdicts = verified(url)
            expected = verify_paths([f"{data}{below}"], processes=1)
            assert [str(finding) for finding in findings] == [
                str(finding).replace(str(data), "memory:///fleet/data") for finding in expected.findings
            ]
            assert len(verdicts) == len(expected.files)
        assert plain.findings
        (row,) = listed("memory://fleet/nowhere")
        assert row["problem"] == "No such file or directory"
    finally:
        store.rm("/fleet", recursive=True)


def test_a_verdict_is_used_again_only_if_nothing_can_have_changed(data):
    def keys():
        return {each["log"]: each["key"] for row in listed(data / "restarted-0") for each in row["segments"]}

    fresh = keys()
    assert not set(fresh.values()) & set(keys().values()), "a file may change again within a tick of its clock"
    time.sleep(2.1)
    settled = keys()
    assert keys() == settled
    index = max((data / "restarted-0").glob("*.index"))
    status = index.stat()
    index.write_bytes(bytes(status.st_size))
    os.utime(index, ns=(status.st_atime_ns, status.st_mtime_ns))
    changed = keys()
    assert [log for log in settled if settled[log] != changed[log]] == [index.with_suffix(".log").name]


def test_names_that_are_no_utf_8_are_reported_with_their_bytes(tmp_path):
    directory = tmp_path / os.fsdecode(b"caf\xe9-0")
    shutil.copytree(GOLDEN / "restarted-0", directory)
    findings, verdicts = verified(tmp_path)
    plain = verify_paths([tmp_path], processes=1)
    assert sorted(verdicts.values()) == sorted(file.verdict for file in plain.files)
    assert len(findings) == len(plain.findings)
    assert all("caf\\xe9-0" in path for path in verdicts)


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


def test_the_page_is_whole_and_needs_nothing_else():
    counts = (
        Count("verdict", "exact", "exact", 90, 9000),
        Count("verdict", "broken", "broken", 10, 1000),
        Count("topic", "<script>", "exact", 60, 1),
        Count("topic", "<script>", "broken", 10, 1),
        Count("topic", "quiet", "exact", 30, 1),
        Count("release", "2.4.0 – 4.4.0", "exact", 100, 1),
        Count("age", "1 under a day", "exact", 100, 1),
    )
    summary = Summary(
        counts, {"broken": 3}, {}, 25, 4, 1000, 123_456, 1, ("/b/t-0: the batch at offset 5 has other bytes",), ()
    )
    asked = {"run_id": "monday", "paths": ["/a & b"], "release": None, "kidx": "0"}
    text = render_report(summary, asked, [("/c", "Permission denied")])
    page = Page()
    page.feed(text)
    assert not page.open
    assert not [attrs for _, attrs in page.tags if {"src", "href"} & set(attrs)]
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    rects = [attrs for tag, attrs in page.tags if tag == "rect"]
    assert [(each["class"], float(each["width"])) for each in rects[:2]] == [("exact", 85.714), ("broken", 14.286)]
    for said in (">under a day<", ">2.4.0 – 4.4.0<", "other bytes", "Permission denied", "70 · 10 bad"):
        assert said in text, said


def test_the_page_has_bars_of_one_length_and_the_gravest_first():
    """However small a topic is; what to do comes before the pictures, and findings are folded under their cause."""
    counts = (
        Count("verdict", "broken", "broken", 3, 1),
        Count("topic", "a large one", "exact", 99_999, 1),
        Count("topic", "a large one", "unreadable", 1, 1),
        Count("topic", "many missing", "missing", 50, 1),
        Count("topic", "one broken", "broken", 1, 1),
        Count("topic", "one broken", "exact", 3, 1),
    )
    log = "/b/t-0/00000000000000000000.log"
    worst = tuple(
        Finding(path, "t", 0, 0, path.rpartition("/")[2], clause, "broken", message=f"<{clause}>")
        for path, clause in ((log.replace(".log", ".index"), "OI-1"), (log, "RB-4"))
    )
    summary = Summary(counts, {"broken": 2}, {}, 1, 1, 1, 1, 0, (), worst)
    text = render_report(summary, {"run_id": "r", "paths": ["/a"], "release": "3.9.2", "kidx": "0"}, [])
    assert text.index("one broken") < text.index("many missing") < text.index("a large one")
    page = Page()
    page.feed(text)
    rects = [(each["class"], each["x"], each["width"]) for tag, each in page.tags if tag == "rect"]
    assert rects == [
        ("exact", "0.0", "75.0"), ("broken", "75.0", "25.0"), ("missing", "0.0", "100.0"),
        ("exact", "0.0", "99.01"), ("unreadable", "99.01", "0.99"),
    ]  # fmt: skip
    assert text.index("kidx verify DIRECTORY --kafka 3.9.2") < text.index("By topic")
    assert text.count('<li><b class="broken">') == 1
    assert "&lt;RB-4&gt;" in text
    assert "(and 1 that follows from it)" in text
    assert 'title="conformance clauses RB-4">RB-4<' in text


def test_a_partition_is_counted_in_every_way():
    """Files by all ways alike; age by the day; what has no topic or release has a name."""
    now = datetime.now(UTC)
    stamps = (None, now, now - timedelta(days=2), now - timedelta(days=20), now - timedelta(days=200), now.min)
    names = [
        ("0.log", "exact", "", 5), ("0.index", "broken", "", 7), ("0.timeindex", "exact", "3.0.0", 12),
        ("1.log", "exact", "", 5), ("leader-epoch-checkpoint", "exact", "", 9), ("1.index", "missing", "", None),
    ]  # fmt: skip
    files = [
        {"file": name, "verdict": verdict, "releases": releases, "size": size}
        | {"topic": None if verdict == "missing" else "t", "broker": "1"}
        for name, verdict, releases, size in names
    ]
    for file, stamp in zip(files, stamps, strict=True):
        file["modified"] = stamp and stamp.replace(tzinfo=UTC)
    settled = {"files": files, "findings": [{"verdict": "broken"}] * 2, "differences": [{}], "segments": 2}
    rows = count(settled | {"batches": 30, "bytes_read": 10})
    by = {way: {(r["value"], r["verdict"]): r["files"] for r in rows if r["by"] == way} for way in (*WAYS, "kind")}
    assert {way: sum(each.values()) for way, each in by.items()} == dict.fromkeys(by, 6)
    assert by["age"] == {
        ("unknown", "exact"): 1, ("1 under a day", "broken"): 1, ("2 under a week", "exact"): 1,
        ("3 under a month", "exact"): 1, ("4 under a year", "exact"): 1, ("5 older", "missing"): 1,
    }  # fmt: skip
    assert by["kind"][(".index", "missing")] == by["kind"][("leader-epoch-checkpoint", "exact")] == 1
    assert by["topic"][("(no topic)", "missing")] == by["release"][("3.0.0", "exact")] == 1
    figures = {row["by"]: row["files"] for row in rows if row["by"] not in by}
    assert figures == {
        "finding": 2, "partitions": 1, "differences": 1, "segments": 2, "batches": 30, "bytes_read": 10,
    }  # fmt: skip
    assert sum(row["bytes"] for row in rows if row["by"] == "verdict") == 38


def test_the_model_of_sizes_has_tasks_neither_too_small_nor_too_many():
    assert tasks_of(1000) == 1
    assert tasks_of(40_000 << 20) * SMALLEST >= 40_000 << 20
    assert tasks_of(10**15) == MAX_TASKS


def test_an_error_of_a_store_names_its_file(data, monkeypatch):
    store = fsspec.filesystem("memory")
    store.put(str(data), "/fleet/data", recursive=True)
    store.pipe_file("/fleet/data/log-start-offset-checkpoint", b"0\n1\nnonsense\n")
    fetch = type(store).get_file

    def refuse(self, path, target, **options):
        if path.endswith(f"untouched-0/{0:020d}.log"):
            raise PermissionError(13, "Permission denied")
        fetch(self, path, target, **options)

    monkeypatch.setattr(type(store), "get_file", refuse)
    try:
        rows = listed("memory://fleet/data")
        (problem,) = [row for row in rows if row["problem"] is not None]
        assert (problem["place"], problem["clause"]) == ("memory:///fleet/data/log-start-offset-checkpoint", "LG-12")
        (found,) = [row for row in rows if row["topic"] == "untouched"]
        batches = pa.Table.from_pylist([found | {"segments": found["segments"][:1]}], LISTING).to_batches()
        (verdict,) = pa.Table.from_batches(verify_rows(Request(), lambda _: None, iter(batches))).to_pylist()
        assert [file["why"] for file in json.loads(verdict["verdict"])["files"]] == [
            "cannot be fetched: Permission denied"
        ]
    finally:
        store.rm("/fleet", recursive=True)


@pytest.fixture
def flaky(data, monkeypatch):
    """Put two copies into a store; return a function that lets it fail with an error at files with some ending."""
    store = fsspec.filesystem("memory")
    store.put(str(data), "/fleet/1", recursive=True)
    store.put(str(data), "/fleet/2", recursive=True)

    def fail(end, error):
        def failing(method):
            def call(self, path, *rest, **options):
                if path.endswith(end):
                    raise error
                return method(self, path, *rest, **options)

            return call

        for name in ("get_file", "open"):
            monkeypatch.setattr(type(store), name, failing(getattr(type(store), name)))

    yield fail
    monkeypatch.undo()
    store.rm("/fleet", recursive=True)


class StoreError(Exception):
    """Error of a class that only a store has, such as one of a cloud's client."""


def test_a_checkpoint_of_epochs_that_a_store_refuses_is_one_finding(flaky):
    url = "memory://fleet/1/untouched-0"
    plain, verdicts = verified(url)
    flaky("leader-epoch-checkpoint", StoreError("token expired"))
    findings, refused = verified(url)
    (finding,) = [each for each in findings if each not in plain]
    path = "memory:///fleet/1/untouched-0/leader-epoch-checkpoint"
    assert (finding.path, finding.verdict, finding.clause) == (path, "unreadable", "LG-4")
    assert finding.message == "cannot be fetched: token expired"
    assert refused == verdicts | {path: "unreadable"}


def test_a_log_that_a_store_refuses_cannot_be_compared(flaky):
    asked = Request()
    rows = [row for row in listed("memory://fleet/1", "memory://fleet/2") if row["topic"] == "untouched"]
    assert not list(compare_listed(asked, rows))
    flaky(f"2/untouched-0/{0:020d}.log", StoreError)
    (found,) = compare_listed(asked, rows)
    assert (found.path, found.offset) == ("memory:///fleet/2/untouched-0", -1)
    assert found.message == "memory:///fleet/2/untouched-0: cannot be compared: StoreError"


def test_the_reason_is_the_cause_and_not_the_call():
    java = "An error occurred while calling o1.parquet.\n: org.apache.spark.SparkException: Job aborted\n\tat a.b\n"
    assert reason_of_spark(Exception(java)) == "org.apache.spark.SparkException: Job aborted"
    assert reason_of_spark(Exception(java + "Caused by: java.io.IOException: disk full\n\tat c.d\n")) == (
        "java.io.IOException: disk full"
    )
    python = (
        "[PYTHON_DATA_SOURCE_ERROR] Failed: Traceback (most recent call last):\n  File\nOSError: gone\n SQLSTATE: 38000"
    )
    assert reason_of_spark(Exception(python)) == "OSError: gone"
    assert reason_of_spark(Exception("[PATH] no such path.\nmore")) == "[PATH] no such path."
    assert reason_of_spark(KeyError()) == "KeyError"
    lacking = "[X] worker:\n File \"a.py\"\nModuleNotFoundError: No module named 'kidx'\n"
    assert reason_of_spark(Exception(java + lacking)).startswith("the workers' Python has no kidx; pass --py-files")


@pytest.mark.parametrize("is_store", [False, True])
def test_a_large_root_is_listed_in_parts_with_the_same_rows(is_store, tmp_path, monkeypatch):
    """Next to the partitions are a broken checkpoint, an empty partition, a stray segment and another directory."""
    path = root = shutil.copytree(GOLDEN.parent / "4.4.0", tmp_path / "data", ignore=shutil.ignore_patterns("*.json"))
    shutil.copytree(GOLDEN / "create-time-0", root / "elsewhere" / "create-time-1")
    (root / "empty-0").mkdir()
    (root / "recovery-point-offset-checkpoint").write_text("1\n")
    (root / f"{0:020d}.log").touch()
    store = fsspec.filesystem("memory")
    if is_store:
        store.put(str(root), "/parts", recursive=True)
        path = "memory://parts"

    def rows():
        found = [row | {"number": 0, "segments": len(row["segments"] or ())} for row in listed(path)]
        partitions = [row["place"] for row in found if row["problem"] is None]
        assert len(partitions) == len(set(partitions))
        return {(row["place"], row["problem"]): row for row in found}  # each part has the problems of the root

    try:
        whole = rows()
        assert {row["left_out"] for row in whole.values()} == {None, True, *([False] if is_store else [])}
        monkeypatch.setattr(listing, "_PARTITIONS_AT_ONCE", 1)
        assert len(roots_of([path], {})) >= 6
        assert rows() == whole
    finally:
        if is_store:
            store.rm("/parts", recursive=True)
