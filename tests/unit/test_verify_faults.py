"""Files of real brokers: unchanged, none has a fault; faults planted by hand are found, and nothing else."""

import os
import re
import shutil
import struct
from pathlib import Path

import pytest

from kidx.findings import Fault
from kidx.layout import RECORD_BATCH
from kidx.lookup import ReadOnlyLog
from kidx.lookup.explain import explain_timestamp
from kidx.records import iter_batches
from kidx.records.builder import write_checksum
from kidx.verify import verify_paths

GOLDEN = Path(__file__).parents[1] / "golden"
RELEASES = ("2.4.1", "4.4.0")
OFFSET, TIME, TXN = struct.Struct(">ii"), struct.Struct(">qi"), struct.Struct(">hqqqq")


@pytest.fixture(params=RELEASES)
def disk(request, tmp_path):
    """Make a log directory of a broker."""
    for partition in sorted((GOLDEN / request.param).glob("*-0")):
        shutil.copytree(partition, tmp_path / "disk" / partition.name)
    return tmp_path / "disk"


def overwrite(path, position, data):
    """Overwrite bytes; a negative position counts from the end of the file."""
    with path.open("r+b") as file:
        file.seek(position, os.SEEK_END if position < 0 else os.SEEK_SET)
        file.write(data)


def edit(path, layout, slot, **fields):
    """Change fields of an entry: 0, 1, ... by number, ``f0=value`` or ``f0=function of the old value``."""
    data = path.read_bytes()
    at = slot * layout.size if slot >= 0 else len(data) + slot * layout.size
    entry = list(layout.unpack_from(data, at))
    for name, value in fields.items():
        number = int(name[1:])
        entry[number] = value(entry[number]) if callable(value) else value
    overwrite(path, at, layout.pack(*entry))


def batches(log):
    return list(iter_batches(log.read_bytes()))


def grow(path, count):
    path.write_bytes(path.read_bytes() + bytes(count))


def without_batch(log, number):
    batch, data = batches(log)[number], log.read_bytes()
    log.write_bytes(data[: batch.position] + data[batch.position + batch.size_in_bytes :])


def twice(log, number):
    batch, data = batches(log)[number], log.read_bytes()
    end = batch.position + batch.size_in_bytes
    log.write_bytes(data[:end] + data[batch.position : end] + data[end:])


def later_position(index, log):
    """Point entry 2 at the batch after its own."""
    position = OFFSET.unpack_from(index.read_bytes(), 16)[1]
    edit(index, OFFSET, 2, f1=next(batch.position for batch in batches(log) if batch.position > position))


def replaced_by_directory(path):
    path.unlink()
    path.mkdir()


def replaced_by_loop(path):
    path.unlink()
    path.symlink_to(path.name)


def moved_later(index, log):
    """Let the first entry that raises the time name the last offset of the log."""
    last = batches(log)[-1].last_offset - int(log.stem)
    data = bytearray(index.read_bytes())
    for slot in range(len(data) // TIME.size):
        TIME.pack_into(data, slot * TIME.size, TIME.unpack_from(data, slot * TIME.size)[0], last)
    index.write_bytes(data)


def swap(one, other):
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)


def checkpoint(disk, name, text):
    (disk / name).write_text(text, "utf-8")


def recounted(path, batch, count):
    """Change the number of records in the header, with a matching checksum."""
    data = bytearray(path.read_bytes()[batch.position : batch.position + batch.size_in_bytes])
    RECORD_BATCH.set(data, "record_count", count)
    write_checksum(data)
    overwrite(path, batch.position, bytes(data))


# name: (function of the first segment's log, its index, its time index, the partition, files, clause, verdict); files:
# names of those that get worse; the clause is found in the first.
ONE = "create-time-0"
SEGMENT = "00000000000000000000"
INDEXES = (".index", ".timeindex")
IN_SEGMENT = {
    "a byte of a record": (lambda log, *_: overwrite(log, 70, b"\xff\xff"), (".log",), "RB-1", "broken"),
    "a checksum": (lambda log, *_: overwrite(log, 17, b"\1\2\3\4"), (".log",), "RB-1", "broken"),
    "an unknown format": (
        lambda log, *_: overwrite(log, batches(log)[2].position + 16, b"\3"),
        (".log",),
        "RB-1",
        "broken",
    ),
    "more records than offsets": (
        lambda log, *_: recounted(log, batches(log)[2], 9),
        (".log",),
        "RB-2",
        "broken",
    ),
    "an offset that goes back": (
        lambda log, *_: overwrite(log, batches(log)[2].position, bytes(8)),
        (".log", *INDEXES),
        "SEG-12",
        "broken",
    ),
    "a log cut short": (lambda log, *_: os.truncate(log, log.stat().st_size - 5), (".log", *INDEXES), "RB-4", "broken"),
    "an impossible length": (
        lambda log, *_: overwrite(log, batches(log)[3].position + 8, bytes(4)),
        (".log", *INDEXES),
        "RB-4",
        "broken",
    ),
    "zeros after a log": (lambda log, *_: grow(log, 100), (".log",), "RB-4", "broken"),
    "a lost batch": (lambda log, *_: without_batch(log, 1), (".index", ".timeindex", ".log"), "SEG-5", "broken"),
    "a batch written twice": (lambda log, *_: twice(log, 1), (".log", *INDEXES), "SEG-12", "broken"),
    "a log of no bytes": (lambda log, *_: os.truncate(log, 0), (".index", ".timeindex", ".log"), "SEG-5", "broken"),
    "a position off by one": (lambda _, i, *__: edit(i, OFFSET, 1, f1=lambda p: p + 1), (".index",), "SEG-5", "broken"),
    "a position too late": (lambda log, i, *_: later_position(i, log), (".index",), "SEG-50a", "broken"),
    "an offset too small": (lambda _, i, *__: edit(i, OFFSET, 1, f0=0), (".index",), "OI-3", "broken"),
    "an offset below the base": (lambda _, i, *__: edit(i, OFFSET, 0, f0=-1), (".index",), "AI-9", "broken"),
    "an offset past the log": (lambda _, i, *__: edit(i, OFFSET, -1, f0=10_000), (".index",), "SEG-40", "broken"),
    "half an entry": (lambda _, i, *__: os.truncate(i, i.stat().st_size - 3), (".index",), "OI-11", "broken"),
    "padding after the offsets": (lambda _, i, *__: grow(i, 80), (".index",), "SEG-37", "broken"),
    "no offset index": (lambda _, i, *__: i.unlink(), (".index",), "SEG-35", "missing"),
    "an unreadable offset index": (lambda _, i, *__: replaced_by_directory(i), (".index",), "SEG-35", "unreadable"),
    "an unreadable log": (lambda log, *_: replaced_by_loop(log), (".log",), "SEG-35", "unreadable"),
    "half a time entry": (lambda *f: os.truncate(f[2], f[2].stat().st_size - 1), (".timeindex",), "TI-11a", "broken"),
    "no last time entry": (lambda *f: os.truncate(f[2], f[2].stat().st_size - 12), (".timeindex",), "SEG-22", "broken"),
    "no time entry": (lambda *f: os.truncate(f[2], 0), (".timeindex",), "SEG-22", "broken"),
    "a time that goes back": (lambda *f: edit(f[2], TIME, -1, f0=0), (".timeindex",), "TI-3c", "broken"),
    "a time never written": (
        lambda *f: edit(f[2], TIME, -1, f0=lambda t: t + 1000),
        (".timeindex",),
        "SEG-22",
        "broken",
    ),
    "times too late in the log": (lambda log, _, t, *__: moved_later(t, log), (".timeindex",), "SEG-6", "broken"),
    "padding after the times": (lambda *f: grow(f[2], 120), (".timeindex",), "SEG-37", "broken"),
    "no time index": (lambda *f: f[2].unlink(), (".timeindex",), "SEG-36", "missing"),
}


def bad_files(result):
    return {file.path for file in result.files if file.verdict not in ("exact", "sound")}


@pytest.mark.parametrize("name", IN_SEGMENT)
def test_a_fault_in_a_segment_is_found(disk, name):
    plant, files, clause, verdict = IN_SEGMENT[name]
    segment = disk / ONE / SEGMENT
    plant(*(segment.with_suffix(suffix) for suffix in (".log", ".index", ".timeindex")))
    result = verify_paths([disk])
    assert result.exit_code == 1
    where = str(segment.with_suffix(files[0]))
    found = [finding for finding in result.findings if finding.path == where and finding.clause == clause]
    assert verdict in {finding.verdict for finding in found}, result.findings
    allowed = {str(segment.with_suffix(suffix)) for suffix in files}
    assert where in bad_files(result)
    assert bad_files(result) <= allowed
    for finding in found:
        assert (finding.topic, finding.partition, finding.base_offset, finding.file) == (
            "create-time",
            0,
            0,
            SEGMENT + files[0],
        )
        assert finding.message


def txn(disk):
    return next(path for path in sorted(disk.glob("transactions-0/*.txnindex")) if path.stat().st_size > 2 * TXN.size)


def drop_middle_segment(disk):
    for path in (disk / ONE).glob("00000000000000000073.*"):
        path.unlink()


ELSEWHERE = {
    "a lost aborted transaction": (
        lambda disk: txn(disk).write_bytes(txn(disk).read_bytes()[TXN.size :]),
        "transactions-0/*.txnindex",
        "TX-15",
        "broken",
    ),
    "no transaction index": (lambda disk: txn(disk).unlink(), "transactions-0/*", "TX-15", "missing"),
    "a transaction that began elsewhere": (
        lambda disk: edit(txn(disk), TXN, 1, f2=lambda first: first + 1),
        "transactions-0/*.txnindex",
        "TX-15",
        "broken",
    ),
    "a wrong stable offset": (
        lambda disk: edit(txn(disk), TXN, 1, f4=lambda stable: stable + 1),
        "transactions-0/*.txnindex",
        "TX-15",
        "broken",
    ),
    "a transaction of another producer": (
        lambda disk: edit(txn(disk), TXN, 0, f1=lambda producer: producer + 100),
        "transactions-0/*.txnindex",
        "TX-15",
        "broken",
    ),
    "an unknown version": (lambda disk: edit(txn(disk), TXN, 0, f0=1), "transactions-0/*.txnindex", "TX-7b", "broken"),
    "half a transaction": (
        lambda disk: os.truncate(txn(disk), txn(disk).stat().st_size - 1),
        "transactions-0/*.txnindex",
        "TX-23",
        "broken",
    ),
    "a lost segment": (drop_middle_segment, f"{ONE}/*073.log", "LG-5", "missing"),
    "a lost log": (
        lambda disk: (disk / ONE / "00000000000000000073.log").unlink(),
        f"{ONE}/*073.log",
        "LG-5",
        "missing",
    ),
    "an empty log": (
        lambda disk: os.truncate(disk / ONE / "00000000000000000073.log", 0),
        f"{ONE}/*073.*",
        "LG-5",
        "broken",
    ),
    "no epochs": (
        lambda disk: os.truncate(disk / ONE / "leader-epoch-checkpoint", 0),
        f"{ONE}/leader-epoch-checkpoint",
        "LG-4",
        "broken",
    ),
    "no epoch checkpoint": (
        lambda disk: (disk / ONE / "leader-epoch-checkpoint").unlink(),
        f"{ONE}/*",
        "LG-4",
        "missing",
    ),
    "epochs of another partition": (
        lambda disk: checkpoint(disk / ONE, "leader-epoch-checkpoint", "0\n2\n0 0\n4 100\n"),
        f"{ONE}/leader-epoch-checkpoint",
        "LG-4",
        "broken",
    ),
    "an epoch of the last batches alone": (
        lambda disk: checkpoint(disk / ONE, "leader-epoch-checkpoint", "0\n2\n0 0\n4 140\n"),
        f"{ONE}/leader-epoch-checkpoint",
        "LG-4",
        "broken",
    ),
    "an epoch that is missing": (
        lambda disk: checkpoint(disk / ONE, "leader-epoch-checkpoint", "0\n1\n1 0\n"),
        f"{ONE}/leader-epoch-checkpoint",
        "LG-4",
        "broken",
    ),
    "a batch with the epoch of a later one": (
        lambda disk: overwrite(
            disk / ONE / f"{SEGMENT}.log", batches(disk / ONE / f"{SEGMENT}.log")[1].position + 12, b"\0\1\0\0"
        ),
        f"{ONE}/{SEGMENT}.log",
        "LG-4",
        "broken",
    ),
    "epochs that are none": (
        lambda disk: checkpoint(disk / ONE, "leader-epoch-checkpoint", "nonsense\n"),
        f"{ONE}/leader-epoch-checkpoint",
        "LG-4",
        "unreadable",
    ),
    "a start past the end": (
        lambda disk: checkpoint(disk, "log-start-offset-checkpoint", "0\n1\ncreate-time 0 100000\n"),
        "log-start-offset-checkpoint",
        "LG-17",
        "broken",
    ),
    "an invalid checkpoint": (
        lambda disk: checkpoint(disk, "log-start-offset-checkpoint", "nonsense\n"),
        "log-start-offset-checkpoint",
        "LG-12",
        "unreadable",
    ),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_fault_between_segments_is_found(disk, name):
    plant, pattern, clause, verdict = ELSEWHERE[name]
    before = {str(path) for path in disk.glob(pattern)}
    plant(disk)
    result = verify_paths([disk])
    assert result.exit_code == 1
    allowed = before | {str(path) for path in disk.glob(pattern)}
    found = {finding.path for finding in result.findings if (finding.clause, finding.verdict) == (clause, verdict)}
    assert found, result.findings
    assert found <= allowed
    assert bad_files(result) <= allowed


REMARKS = {
    "leftovers": (
        lambda disk: [
            (disk / ONE / f"{SEGMENT}.{mark}").touch() for mark in ("log.deleted", "index.swap", "log.cleaned")
        ],
        "SEG-23",
        3,
    ),
    "orphans": (lambda disk: shutil.copy(disk / ONE / f"{SEGMENT}.index", disk / ONE / f"{9:020d}.index"), "SEG-35", 1),
    "hidden records": (
        lambda disk: checkpoint(disk, "log-start-offset-checkpoint", "0\n1\ncreate-time 0 80\n"),
        "LG-12",
        1,
    ),
    "a write under way": (lambda disk: grow(max((disk / ONE).glob("*.log")), 15), "RB-4", 1),
    "a log with padding": (lambda disk: grow(max((disk / ONE).glob("*.log")), 4000), "RB-4", 1),
    "an active segment's room": (
        lambda disk: [grow(max((disk / ONE).glob(f"*{suffix}")), 120) for suffix in INDEXES],
        "",
        0,
    ),
}


@pytest.mark.parametrize("name", REMARKS)
def test_a_harmless_difference_is_a_remark(disk, name):
    plant, clause, count = REMARKS[name]
    plant(disk)
    result = verify_paths([disk])
    assert result.exit_code == 0, result.findings
    assert [finding.clause for finding in result.findings] == [clause] * count
    assert not bad_files(result)


def test_zeros_at_the_end_of_an_index_after_a_clean_shutdown_are_a_fault(disk):
    """SEG-27: a broker that starts takes the zeros for entries."""
    (disk / ".kafka_cleanshutdown").touch()
    assert verify_paths([disk]).exit_code == 0
    index = max((disk / ONE).glob("*.timeindex"))
    grow(index, 120)
    assert bad_files(verify_paths([disk])) == {str(index)}
    (disk / ONE).rename(disk / "__cluster_metadata-0")  # which every start recovers
    (disk / "__cluster_metadata-0" / "partition.metadata").unlink(missing_ok=True)
    assert not bad_files(verify_paths([disk]))


def test_indexes_of_another_segment_are_found(disk):
    """The entries differ from the log, whatever their values are."""
    for suffix in INDEXES:
        swap(*sorted((disk / ONE).glob(f"*{suffix}"))[:2])
    result = verify_paths([disk])
    assert len(bad_files(result)) == 4


def test_an_empty_offset_index_is_slow_and_not_wrong(disk):
    """An index without entries gives right answers, by scanning; it is no longer exact."""
    index = disk / ONE / f"{SEGMENT}.index"
    os.truncate(index, 0)
    result = verify_paths([disk], index_interval_bytes=250)
    assert result.exit_code == 0
    assert {file.path: file for file in result.files}[str(index)].verdict == "sound"


def test_a_log_under_the_name_of_another_segment_is_reported_as_such(disk):
    log = disk / ONE / f"{500:020d}.log"
    shutil.copy(disk / ONE / f"{SEGMENT}.log", log)
    found = [each for each in verify_paths([disk]).faults() if each.path == str(log)]
    assert {each.clause for each in found} == {"SEG-12"}
    assert any(
        "offset 0, below the segment's base offset 500: the file is of another" in each.message for each in found
    )


def test_an_epoch_that_begins_at_the_end_of_the_log_is_right(disk):
    """The leader of this epoch has appended nothing."""
    path = disk / ONE
    end = max(batches(max(path.glob("*.log"))), key=lambda batch: batch.last_offset).last_offset + 1
    checkpoint(path, "leader-epoch-checkpoint", f"0\n2\n0 0\n4 {end}\n")
    assert not verify_paths([path]).faults()


@pytest.mark.parametrize("emptied", [(".index",), (".index", ".timeindex")])
def test_offset_indexes_without_entries_are_not_exact_if_time_indexes_have_some(disk, emptied):
    """If all offset indexes of a partition are empty, only the time indexes show that entries are missing."""
    for suffix in emptied:
        for path in (disk / ONE).glob(f"*{suffix}"):
            os.truncate(path, 0)
    verdicts = {Path(file.path).name: file for file in verify_paths([disk / ONE]).files}
    offsets = [file for name, file in verdicts.items() if name.endswith(".index")]
    assert {file.verdict for file in offsets} == {"sound"}
    assert all("its entries were lost, or the broker was restarted" in file.why for file in offsets)


def zeroed(path):
    path.write_bytes(bytes(path.stat().st_size))


TIMES = {
    "zeros": (zeroed, "the file ends with zeros, the entry 0 at 0", 0, ", for its .timeindex ends with zeros,"),
    "zeros at the end": (
        lambda path: overwrite(path, -12, bytes(12)),
        "the file ends with zeros, the entry 0 at 0",
        0,
        ", for its .timeindex ends with zeros,",
    ),
    "padding": (
        lambda path: grow(path, 120),
        "the file ends with zeros, the entry 0 at 0",
        0,
        ", for its .timeindex ends with zeros,",
    ),
    "the last entry is lost": (
        lambda path: os.truncate(path, path.stat().st_size - 12),
        "the last entry is ",
        None,
        "",
    ),
    "no entry": (lambda path: os.truncate(path, 0), "there is no entry", -1, "without a timestamp"),
}


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("name", TIMES)
def test_verification_and_lookup_agree_on_the_largest_timestamp(disk, name, clean):
    """A search skips by the finding exactly what a lookup with the same files skips."""
    plant, words, largest, described = TIMES[name]
    if clean:
        (disk / ".kafka_cleanshutdown").touch()
    times = (disk / ONE / SEGMENT).with_suffix(".timeindex")
    plant(times)
    (found,) = [each for each in verify_paths([disk]).findings if each.clause == "SEG-22"]
    assert found.message.startswith(words)
    assert largest is None or found.timestamp == largest
    with ReadOnlyLog(disk / ONE) as log:
        first = log.segments[0]
        assert first.max_timestamp_so_far == (found.timestamp, found.offset or 0)
        visit = explain_timestamp(log, 1).segments[0]
        assert described in visit.why
        if found.timestamp < 0:
            assert "modification time" in found.message
            return
        left_out = re.search(r"a search for (\d+) to (\d+) leaves this segment out", found.message)
        for target, is_searched in zip(
            (found.timestamp, *map(int, left_out.groups())), (True, False, False), strict=True
        ):
            assert explain_timestamp(log, target).segments[0].chosen == is_searched, target


def negative_version(disk):
    edit(txn(disk), TXN, 0, f0=-1)
    return txn(disk)


def early_offset(disk):
    """Let the only entry, which has the largest timestamp, name the first offset, whose batch is older."""
    (index,) = (disk / ONE).glob(f"{SEGMENT}.timeindex")
    log = index.with_suffix(".log")
    largest = max(batch.max_timestamp for batch in batches(log))
    index.write_bytes(TIME.pack(largest, 0))
    return index


@pytest.mark.parametrize(
    ("plant", "kind", "right", "wrong", "some"),
    [
        (negative_version, Fault.TRANSACTION_VERSION, "4.3.1", "4.4.0", ">=4.4.0"),
        (early_offset, Fault.LARGEST_TIMESTAMP_OFFSET, "4.3.1", "3.7.2", "3.0.0..3.7.2"),
    ],
)
def test_broken_means_wrong_in_the_requested_release_or_in_all(disk, plant, kind, right, wrong, some):
    path = str(plant(disk))

    def found(release):
        result = verify_paths([disk], release=release)
        (file,) = (each for each in result.files if each.path == path)
        return file.verdict, [(each.verdict, each.message) for each in result.findings if each.kind == kind]

    assert found(right)[0] in {"exact", "sound"}
    assert found(right)[1] == []
    assert found(wrong)[0] == "broken"
    verdict, ((of_finding, message),) = found(None)
    assert (verdict, of_finding) == ("sound", "sound")
    assert message.endswith(f"(Kafka {some} only)")


@pytest.mark.parametrize("release", sorted(path.parent.name for path in GOLDEN.glob("*/corpus.json")))
@pytest.mark.parametrize("options", [{}, {"index_interval_bytes": 250}, {"release": "own"}], ids=str)
def test_files_of_a_broker_have_no_fault(release, options):
    options = {name: release if value == "own" else value for name, value in options.items()}
    result = verify_paths([path for path in sorted((GOLDEN / release).glob("*-0")) if path.is_dir()], **options)
    assert {file.verdict for file in result.files} == {"exact", "sound"}
    assert result.exit_code == 0
    assert not [finding for finding in result.findings if finding.verdict != "sound"]
    assert all(file.why for file in result.files if file.verdict == "sound")
