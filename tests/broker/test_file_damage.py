"""Corruption of files: what a broker does with corrupt indexes, kidx's prediction, the cost for a consumer."""

from __future__ import annotations

import json
import struct
import sys

import pytest

from conformance import cli
from conformance.implementations.broker.reference import ReferencePartition
from conformance.kafka.broker import LocalBroker
from conformance.kafka.client import Fetched, OffsetResult, first_record
from conformance.studies.index_corruption.cases import CASES, Case, corrupt, entries_of
from conformance.studies.index_corruption.experiment import (
    CaseResult,
    OffsetTimestamp,
    cost_of,
    oracle_offset,
    run_corruption_cases,
    targets_of,
)
from conformance.studies.index_corruption.study import CORRUPT, format_result, markdown
from kidx.log import UnifiedLog
from kidx.records import build_batch

KRAFT = "4.3.1"
DELETED_INDEX = Case("clean", "sealed", ".index", "deleted")
DELETED_TIMES = Case("clean", "sealed", ".timeindex", "deleted")
STALE = Case("clean", "active", ".timeindex", "stale timestamps")


class _LogOfAnotherRule(UnifiedLog):
    """LO-6 with > in place of >=."""

    def fetch_offset_by_timestamp(self, target):
        return super().fetch_offset_by_timestamp(target if target < 0 else target + 1)


class _WrongOnce(ReferencePartition):
    """Of the fourth topic, a wrong prediction."""

    def __init__(self, release, directory, settings, leader_epoch, checkpoints):
        if directory.name == "file-damage-3-0":
            self.unified_log = _LogOfAnotherRule
        super().__init__(release, directory, settings, leader_epoch, checkpoints)


@pytest.mark.broker
@pytest.mark.thorough
def test_a_broker_treats_corrupt_files_as_predicted_and_a_wrong_rule_is_detected(tmp_path):
    said = []
    with LocalBroker(KRAFT, base=tmp_path) as broker:
        cases = (DELETED_INDEX, DELETED_TIMES, STALE, DELETED_INDEX)
        *outcomes, wrong = run_corruption_cases(broker, cases, report=said.append, reference=_WrongOnce)
    assert [outcome.differences for outcome in outcomes] == [(), (), ()]
    deleted_index, deleted_times, stale = outcomes
    assert deleted_index.repair == "rebuilt"
    assert deleted_index.wrong == deleted_index.bad_fetches == 0
    assert deleted_times.repair == "emptied"
    assert deleted_times.missed == 24  # all of the segment
    assert stale.repair == "kept"
    assert stale.missed > 0
    assert {outcome.appends for outcome in outcomes} == {"ok"}
    assert said[-1] == f"{KRAFT}: clean: 2 of 4 cases return wrong offsets"
    assert not wrong.as_predicted
    assert "target" in wrong.differences[0]
    table = markdown([CORRUPT.row(KRAFT, each, None) for each in (*outcomes, wrong)])
    assert "emptied, missed 24" in table
    assert json.loads(json.dumps(CORRUPT.row(KRAFT, outcomes[1], None)))["missed"] == 24


# -- without a broker ------------------------------------------------------------------------------------------------

RECORDS = [OffsetTimestamp(10, 100), OffsetTimestamp(11, 300), OffsetTimestamp(12, 200), OffsetTimestamp(13, 400)]


def test_the_right_position_is_the_first_record_in_the_log_that_is_late_enough():
    assert [oracle_offset(RECORDS, target) for target in (0, 100, 101, 300, 301, 400, 401)] == [
        10,
        10,
        11,
        11,
        13,
        13,
        None,
    ]
    assert {99, 100, 101, 401} <= set(targets_of(RECORDS))


@pytest.mark.parametrize(
    ("answer", "missed", "reread", "wrong"),
    [
        (OffsetResult(150, 11, 300, 0), 0, 0, 0),
        (OffsetResult(150, 13, 400, 0), 2, 0, 1),
        (OffsetResult(150, 10, 100, 0), 0, 1, 1),
        (OffsetResult(150), 3, 0, 1),
        (OffsetResult(150, error="UNKNOWN_SERVER_ERROR"), 3, 0, 1),
        (OffsetResult(500), 0, 0, 0),
        (OffsetResult(500, 12, 200, 0), 0, 2, 1),
    ],
)
def test_a_wrong_result_costs_the_bytes_between(answer, missed, reread, wrong):
    assert cost_of(RECORDS, [answer]) == (1, wrong, missed, reread)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_damage_changes_its_file_and_no_other(case, tmp_path):
    entry, size = (struct.Struct(">ii"), 8) if case.suffix == ".index" else (struct.Struct(">qi"), 12)
    files = {}
    for base in (0, 100):
        content = b"".join(entry.pack(1000 + n, n) for n in range(1, 7)) + bytes(4 * size)
        for suffix in (".log", ".index", ".timeindex"):
            files[tmp_path / f"{base:020d}{suffix}"] = content
    for path, content in files.items():
        path.write_bytes(content)
    hit = case.file(tmp_path)
    corrupt(hit, case.corruption)
    assert hit.stem == f"{100 if case.place == 'active' else 0:020d}"
    for path, content in files.items():
        assert (not path.exists() or path.read_bytes() != content) == (path == hit), path


def test_padding_after_the_entries_is_not_counted():
    assert entries_of(bytes(24), 8) == 0
    assert entries_of(bytes(7) + b"\1" + bytes(16), 8) == 1
    assert entries_of(b"\1" * 15, 8) == 1


def test_a_consumer_reads_the_first_matching_record_and_no_corrupt_batch():
    data = build_batch([(1, None, b"a"), (2, None, b"b")], base_offset=5)
    assert first_record(data, 6) == Fetched(6)
    assert first_record(data, 5) == Fetched(5)
    assert first_record(data, 7) == Fetched(None, "nothing")
    assert first_record(b"", 7) == Fetched(None, "nothing")
    assert first_record(data[:-1] + b"x", 5) == Fetched(None, "unreadable")


def test_a_partition_that_does_not_load_is_reported():
    offline, failing = (
        CaseResult(KRAFT, *STALE, broker_starts=False),
        CaseResult(KRAFT, *STALE, True, appends="UNKNOWN"),
    )
    rows = [CORRUPT.row(KRAFT, each, None) for each in (offline, failing)]
    assert [format_result(row) for row in rows] == ["does not start", "kept, appends: UNKNOWN"]


def test_bad_arguments_are_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    for arguments in (("--kafka", "1.0.0"), ("--broker", "podman"), ("--report", str(tmp_path / "file" / "below"))):
        monkeypatch.setattr(sys, "argv", ["conformance", "corrupt", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1
