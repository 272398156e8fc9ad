"""Files and responses of real brokers, compared with kidx without a broker; ``README.md`` lists them."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import struct
from itertools import pairwise, product
from pathlib import Path

import pytest

from conformance.errors import ToolError
from conformance.experiments.golden import CHECKS, judge, load_corpus
from conformance.experiments.golden.corpus import pack, unpack
from conformance.experiments.golden.plan import setting, topics
from conformance.experiments.golden.replay import appends
from conformance.experiments.golden.soundness import aborted, offset_index_findings, time_index_findings
from conformance.experiments.golden.verdicts import read_segments
from conformance.kafka.broker.config import modes_of
from conformance.kafka.releases import RELEASES
from kidx import DIALECTS, dialect_of
from kidx.records import Codec, file_batches

GOLDEN = Path(__file__).parent
CORPORA = {
    path.parent.name: load_corpus(path.parent)
    for path in sorted(GOLDEN.glob("*/corpus.json"), key=lambda path: RELEASES.index(path.parent.name))
}

every = pytest.mark.parametrize("corpus", CORPORA.values(), ids=CORPORA)


def partition_of(corpus, topic):
    return next(partition for partition in corpus.partitions if partition.name == f"{topic}-0")


def batches_of(corpus, partition):
    return [batch for log in partition.logs(corpus.directory) for batch in file_batches(log)]


def said(findings):
    return "\n".join(map(str, findings))


@every
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_kidx_writes_and_returns_the_same_as_the_broker(corpus, check):
    findings = check(corpus)
    assert not findings, f"Kafka {corpus.release}, made by {corpus.command}:\n{said(findings)}"


def test_a_corpus_is_packed_into_the_same_bytes_at_any_time(tmp_path):
    """And packing again what the tests have unpacked changes no tracked file."""
    copied = shutil.copytree(GOLDEN / "4.4.0", tmp_path / "4.4.0", copy_function=shutil.copyfile)
    first = pack(copied).read_bytes()
    for path in copied.rglob("*"):
        os.utime(path, (1, 1))
    assert pack(copied).read_bytes() == first
    unpack(GOLDEN / "4.4.0.tar.xz", tmp_path / "again")
    assert pack(tmp_path / "again" / "4.4.0").read_bytes() == first


# -- what there is ---------------------------------------------------------------------------------------------------


TOLD_APART = (
    "scala_texts",
    "unmapped_trim_is_noop",
    "append_per_batch",
    "leader_timestamp",
    "max_lookup",
    "close_loads_indexes",
    "close_finishes_segment",
    "translates_to_base_offset",
    "searches_by_base_offset",
)
"""Behaviours visible in files and responses of a broker; a corpus represents all releases with the same ones."""


def behaviours(release):
    return tuple(getattr(dialect_of(release), name) for name in TOLD_APART)


def test_each_set_of_behaviours_has_one_corpus():
    recorded = [behaviours(release) for release in CORPORA]
    assert len(recorded) == len(set(recorded))
    assert set(recorded) == {behaviours(release) for release in DIALECTS}


def test_the_table_of_the_readme_has_the_releases_of_each_corpus():
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in (GOLDEN / "README.md").read_text("utf-8").splitlines()
        if line.startswith("| ") and line[2].isdigit()
    ]
    alike = {
        release: [other for other in RELEASES if other != release and behaviours(other) == behaviours(release)]
        for release in CORPORA
    }
    assert rows == [(release, ", ".join(others)) for release, others in alike.items()]


def test_the_corpora_are_small():
    sizes = {
        release: sum(p.stat().st_size for p in c.directory.rglob("*") if p.is_file()) for release, c in CORPORA.items()
    }
    assert max(sizes.values()) < 150_000
    assert sum(sizes.values()) < 1_500_000


@every
def test_a_corpus_matches_the_present_plan(corpus):
    plan = topics(corpus.release, corpus.seed)
    assert [(p.name, p.why, p.config) for p in corpus.partitions] == [(f"{t.name}-0", t.why, t.config) for t in plan]
    assert plan == topics(corpus.release, corpus.seed)
    assert (corpus.mode, corpus.config) == setting(corpus.release)
    assert corpus.mode in modes_of(corpus.release)
    command = corpus.command.replace("conformance record ", "conformance record-golden ")  # its name until 0.2
    assert command == f"conformance record-golden --kafka {corpus.release} --out tests/golden/{corpus.release} --seed 0"


@every
def test_a_corpus_has_the_difficult_cases_of_lookups(corpus):
    mixed = batches_of(corpus, partition_of(corpus, "create-time"))
    assert {batch.codec for batch in mixed} == set(Codec)
    times = [[record.timestamp for record in batch] for batch in mixed]
    assert any(max(stamps) not in (stamps[0], stamps[-1]) for stamps in times), "a largest timestamp in the middle"
    assert any(len(set(stamps)) < len(stamps) for stamps in times), "equal timestamps"
    assert any(after[0] < before[0] for before, after in pairwise(times)), "backward timestamps"
    assert [-1, -1] in times
    for topic in ("create-time", "transactions", "restarted"):
        assert len(partition_of(corpus, topic).logs(corpus.directory)) >= 2
    assert all(partition.running for partition in corpus.partitions)


@every
def test_a_corpus_has_transactions_of_every_end(corpus):
    partition = partition_of(corpus, "transactions")
    entries = list(aborted(batches_of(corpus, partition)))
    assert any(entry.last_stable_offset == entry.last_offset + 1 for entry in entries)
    assert any(entry.last_stable_offset < entry.first_offset for entry in entries), "another one was open"
    latest = {level: answers[0] for level, answers in partition.answers.items()}
    assert [answer.target for answer in latest.values()] == [-1, -1]
    assert latest["read_committed"].offset < latest["read_uncommitted"].offset, "one is still open"


# -- exact, and where not, sound ---------------------------------------------------------------------------------------


@every
def test_inexact_files_follow_the_rules_of_the_release(corpus):
    """Recovery cannot know of restarts; where one call adds one entry, of appends; up to 3.6, what the leader named."""
    dialect = dialect_of(corpus.release)
    grouped = any(len(batches) > 1 for partition in corpus.partitions for _, batches in appends(corpus, partition))
    assert grouped == (dialect_of(corpus.release).old_formats != "rejected")
    expected = {"SEG-7"}
    expected |= {"SEG-3"} if grouped and not dialect.append_per_batch else set()
    expected |= {"SEG-9"} if dialect.leader_timestamp == "record" else set()
    verdicts = list(judge(corpus))
    assert {each.why_not_exact.partition(":")[0] for each in verdicts if each.verdict == "sound"} == expected
    assert sum(each.verdict == "exact" for each in verdicts) > len(verdicts) / 2
    assert not any(each.verdict == "broken" for each in verdicts)


def test_from_3_9_1_on_the_same_appends_get_more_entries():
    """KAFKA-806."""
    corpora = [CORPORA[release] for release in ("3.9.0", "3.9.1", "3.9.2")]
    partitions = [partition_of(corpus, "message-v1") for corpus in corpora]
    assert partitions[0].appends == partitions[1].appends == partitions[2].appends
    sizes = [
        sum(log.with_suffix(".index").stat().st_size for log in partition.logs(corpus.directory))
        for corpus, partition in zip(corpora, partitions, strict=True)
    ]
    assert sizes[0] < sizes[1] == sizes[2]


@every
def test_the_largest_timestamp_is_found_at_another_record_in_m1_only(corpus):
    """KAFKA-16310: from 3.0 to 3.7 the answer to -3 may name a record that has another timestamp."""
    wrong = []
    for partition in corpus.partitions:
        stamps = {record.offset: record.timestamp for batch in batches_of(corpus, partition) for record in batch}
        (answer,) = (answer for answer in partition.answers["read_uncommitted"] if answer.target == -3)
        if answer.offset is not None and stamps.get(answer.offset) != answer.timestamp:
            wrong.append(partition.name)
    lookup = dialect_of(corpus.release).max_lookup
    if lookup == "unknown":  # an ordinary timestamp, answered with the first record there is
        assert not set(wrong) - {"untouched-0"}
    else:
        assert bool(wrong) == (lookup == "remembered")


# -- the checks are checked --------------------------------------------------------------------------------------------


@pytest.fixture
def copied(tmp_path):
    """Copy a corpus to corrupt it: the oldest release's, where all rules apply."""
    corpus = next(iter(CORPORA.values()))
    return dataclasses.replace(corpus, directory=Path(shutil.copytree(corpus.directory, tmp_path / "corpus")))


def overwrite(path, position, data):
    """Overwrite bytes; a negative position counts from the end of the file."""
    with path.open("r+b") as file:
        file.seek(position, os.SEEK_END if position < 0 else os.SEEK_SET)
        file.write(data)


def cut(path, count):
    os.truncate(path, path.stat().st_size - count)


INDEXES = {"files", "entries", "rebuilds", "replay"}
DAMAGES = {
    "a byte of a batch": (".log", lambda log: overwrite(log, 70, b"\xff\xff"), {"files", "batches", "replay"}),
    "a log cut short": (".log", lambda log: cut(log, 5), {"files", "batches", "replay"}),
    "an empty index": (".index", lambda index: os.truncate(index, 0), {"files", "rebuilds", "replay"}),
    "half an entry": (".index", lambda index: cut(index, 3), INDEXES | {"indexes"}),
    "a position off by one": (".index", lambda index: overwrite(index, 7, b"\xfe"), INDEXES),
    "an offset too small": (".index", lambda index: overwrite(index, 8, bytes(4)), INDEXES | {"indexes"}),
    "no last timestamp": (".timeindex", lambda index: cut(index, 12), INDEXES | {"answers"}),
    "a stale timestamp": (
        ".timeindex",
        lambda index: overwrite(index, -12, bytes(8)),
        INDEXES | {"answers", "indexes"},
    ),
}


@pytest.mark.parametrize(("suffix", "damage", "expected"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_found(copied, suffix, damage, expected):
    damage(partition_of(copied, "create-time").logs(copied.directory)[0].with_suffix(suffix))
    assert expected <= {name for name, check in CHECKS.items() if check(copied)}


def test_lost_epochs_are_found(copied):
    os.truncate(copied.directory / "create-time-0" / "leader-epoch-checkpoint", 0)
    assert {name for name, check in CHECKS.items() if check(copied)} >= {"files", "replay", "answers"}


def test_a_wrong_answer_is_found(copied):
    document = json.loads((copied.directory / "corpus.json").read_text("utf-8"))
    rows = document["partitions"][1]["answers"]["read_uncommitted"]
    rows[20][1] += 1
    (copied.directory / "corpus.json").write_text(json.dumps(document), "utf-8")
    (finding,) = CHECKS["answers"](load_corpus(copied.directory))
    assert str(rows[20][0]) in finding.message


def lookups(offset_entries, time_entries, batches, base):
    """Return the results of all lookups in a segment through its entries; only a plain list of records is shared."""

    def floor(entries, key, default):
        return next((entry for entry in reversed(entries) if entry[0] <= key), default)

    def scanned(position):
        return [batch for batch in batches if batch[0] >= position]

    end = batches[-1][2]
    by_offset = [
        next((batch[0] for batch in scanned(floor(offset_entries, target, (base, 0))[1]) if batch[2] >= target), None)
        for target in range(base, end + 2)
    ]
    stamps = sorted({stamp + step for *_, records in batches for stamp, _ in records for step in (0, 1)})
    by_time = []
    for target in stamps:
        offset = floor(time_entries, target, (-1, base))[1]
        found = scanned(floor(offset_entries, offset, (base, 0))[1])
        by_time.append(next((place for *_, records in found for stamp, place in records if stamp >= target), None))
    largest = time_entries[-1][0] if time_entries else -1
    return by_offset, by_time, largest


def mutants(entries, others):
    """Yield the entries with one field of one of them replaced."""
    for number, column in product(range(len(entries)), range(2)):
        for value in others[column]:
            changed = [list(entry) for entry in entries]
            changed[number][column] = value
            yield [tuple(entry) for entry in changed]
    for number in range(len(entries)):
        yield entries[:number] + entries[number + 1 :]


@pytest.mark.thorough
@pytest.mark.parametrize("topic", ["create-time", "message-v1"])
def test_every_lookup_is_right_in_files_called_sound(topic):
    """One field of one entry is changed, to anything that occurs in the log and around it."""
    corpus = CORPORA["2.4.1"]
    seen = {"sound": 0, "wrong": 0}
    segment = read_segments(corpus, partition_of(corpus, topic))[-1]
    base, plain = segment.base_offset, []
    for batch in segment.batches:
        records = [(record.timestamp, record.offset) for record in batch]
        plain.append((batch.position, batch.base_offset, batch.last_offset, records))
    offsets = [(base + o, p) for o, p in struct.iter_unpack(">ii", segment.bytes_of(".index"))]
    times = [(t, base + o) for t, o in struct.iter_unpack(">qi", segment.bytes_of(".timeindex"))]
    right = lookups([], [(max(t for *_, records in plain for t, _ in records), base)], plain, base)
    assert lookups(offsets, times, plain, base) == right

    all_offsets = range(base, plain[-1][2] + 2)
    positions = [position for position, *_ in plain] + [1]
    stamps = sorted({t + step for *_, records in plain for t, _ in records for step in (0, 1)})
    cases = [("offset", mutant) for mutant in mutants(offsets, (all_offsets, positions))]
    cases += [("time", mutant) for mutant in mutants(times, (stamps, all_offsets))]
    for kind, mutant in cases:
        if kind == "offset":
            data = b"".join(struct.pack(">ii", o - base, p) for o, p in mutant)
            findings = list(offset_index_findings(data, base, segment.batches, "mutant"))
            wrong = lookups(mutant, times, plain, base) != right or 1 in [p for _, p in mutant]
        else:
            data = b"".join(struct.pack(">qi", t, o - base) for t, o in mutant)
            findings = list(time_index_findings(data, base, segment.batches, "mutant"))
            wrong = lookups(offsets, mutant, plain, base) != right
        assert findings or not wrong, f"{kind} index {mutant} misleads, and nothing is found"
        seen["sound"] += not findings
        seen["wrong"] += wrong
    assert seen["sound"] > 5
    assert seen["wrong"] > 50


# -- what is no corpus -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [None, "", "[]", "{}", '{"format": 2}', '{"format": 1, "columns": {}}', '{"format": 1']
)
def test_an_invalid_corpus_is_rejected(tmp_path, text):
    if text is not None:
        (tmp_path / "corpus.json").write_text(text, "utf-8")
    with pytest.raises(ToolError, match=r"corpus\.json"):
        load_corpus(tmp_path)
