"""Power failures of Kafka's own log: known findings are found, in exactly the expected releases."""

import json
from dataclasses import replace
from random import Random

import pytest
from typer.testing import CliRunner

from conformance.cli import app
from conformance.errors import ToolError
from conformance.implementations.jvm.journal import Synced
from conformance.operations import Operation
from conformance.operations.batches import encode
from conformance.studies.power_loss import trace
from conformance.studies.power_loss.cache import CacheExplorer, CacheFinding, Stored
from conformance.studies.power_loss.checking import Checker
from conformance.studies.power_loss.compaction import CompactedOperationGenerator
from conformance.studies.power_loss.disk import Length, Name, disks
from conformance.studies.power_loss.explorer import LogExplorer
from conformance.studies.power_loss.failures import CrashPoint, Failure, Restart, crash_points, losses
from conformance.studies.power_loss.guarantees import Guarantee
from conformance.studies.power_loss.planted import PLANTED
from conformance.studies.power_loss.segment import SegmentExplorer
from conformance.studies.power_loss.signatures import Finding, Signature, signature_of
from conformance.studies.power_loss.study import POWER_LOSS
from conformance.studies.study import load
from kidx.segment import follower_append_info

SETTINGS = {"segment.bytes": 1000, "segment.index.bytes": 120, "index.interval.bytes": 0}


def operations_of_log(preallocate=False, *after):
    settings = SETTINGS | ({"preallocate": "true"} if preallocate else {})
    appends = [Operation("append_as_leader", ([{"records": [[0, 100 + n]]}], 0)) for n in range(3)]
    return [Operation("open_log", (settings, 0, 0, True, 1000)), *appends, *after]


def findings_of(explorer, operations):
    """Return the findings at the last crash point, for any loss, by guarantee."""
    history = explorer.recorder.perform(operations)
    checker = Checker(history, explorer.opener)
    *_, last = crash_points(history)
    found = {}
    for loss in losses(last.disk, 64, Random(0)):  # noqa: S311
        failure = Failure(last, loss, last.restarts[0])
        for guarantee, text in checker.check(failure, lockstep=True).items():
            found.setdefault(guarantee, Finding(signature_of(history, failure, guarantee), history, failure, text))
    return found


@pytest.fixture(scope="module", params=["4.3.1", "4.4.0"])
def explorer(request, tmp_path_factory):
    return LogExplorer(request.param, tmp_path_factory.mktemp("power"))


@pytest.mark.thorough
def test_a_clean_shutdown_may_leave_zeros_in_an_index_before_4_4(explorer):
    found = findings_of(explorer, operations_of_log(False, Operation("close_log", (True,))))
    assert set(found) == ({Guarantee.BY_TIME} if explorer.release == "4.3.1" else set())


def test_a_clean_shutdown_may_leave_zeros_in_a_preallocated_log(explorer):
    found = findings_of(explorer, operations_of_log(True, Operation("close_log", (True,))))
    assert (Guarantee.OPENS in found) == (explorer.release == "4.3.1")


@pytest.mark.thorough
def test_a_finding_is_replayed_from_its_file(explorer, tmp_path):
    found = findings_of(explorer, operations_of_log(True, Operation("close_log", (True,))))
    if not found:
        return
    path = POWER_LOSS.save(trace.document(found[Guarantee.OPENS]), tmp_path)
    finding = trace.performed(load(POWER_LOSS, path), explorer.recorder)
    assert explorer.shows(finding.history, finding.failure, finding.signature.guarantee)
    result = CliRunner().invoke(app, ["power-loss", "--replay", str(path), "--json"], standalone_mode=False)
    assert result.return_value == 1
    assert json.loads(result.output)["shown"]


def test_an_invalid_power_failure_file_is_reported_in_a_line(tmp_path):
    path = tmp_path / "other.json"
    path.write_text('{"format": "kidx-trace"}')
    with pytest.raises(ToolError, match="not a file of conformance power-loss"):
        load(POWER_LOSS, path)


STORED = Stored("b-_UbGhWQSyTrDfNnQxAAw", 100, ((101, 61), (109, 161)), ((1000, 102), (1010, 105)), ((100, 101),))
FETCHED = [Operation("open_cache", (1 << 20, 5000, 0)), Operation("fetch_entry", (STORED.id, 100, False))]


@pytest.fixture(scope="module")
def cache_explorer(tmp_path_factory):
    return CacheExplorer("4.4.0", tmp_path_factory.mktemp("cache") / "scratch")


@pytest.fixture(scope="module")
def fetched(cache_explorer):
    """Return a history that has fetched the files of a segment, and the crash point after it."""
    history = cache_explorer.record([STORED], FETCHED)
    return history, CrashPoint(list(disks(history.events))[-1], 1, done=True, restarts=())


@pytest.mark.thorough
def test_a_cut_file_of_the_cache_fails_its_start_or_hides_an_aborted_transaction(cache_explorer, fetched):
    """PF-14, PF-15: each loses the length of one file; nothing breaks without a loss."""
    history, crash_point = fetched
    files = {name: Length(number) for name, number in crash_point.disk.names.items()}

    def broken(loss):
        return set(cache_explorer.check(history, Failure(crash_point, loss, Restart(False, 0, 0))))

    assert broken({}) == set()
    for name, item in files.items():
        expected = Guarantee.CACHE_ABORTED if name.endswith(".txnindex") else Guarantee.CACHE_OPENS
        assert broken({item: crash_point.disk.files[item.file].lengths[-1] - 1}) == {expected}
    assert broken({item: 0 for name, item in files.items() if not name.endswith(".txnindex")}) == set()


def test_a_cache_after_a_power_failure_is_replayed_from_its_trace(cache_explorer, fetched, tmp_path):
    history, crash_point = fetched
    number = next(number for name, number in crash_point.disk.names.items() if name.endswith(".index"))
    signature = Signature(Guarantee.CACHE_OPENS, False, frozenset({"length of .index"}), "fetch_entry")
    finding = CacheFinding(
        signature, history, Failure(crash_point, {Length(number): 3}, Restart(False, 0, 0)), "corrupt"
    )
    assert POWER_LOSS.clause_of_signature("cache", signature, "4.4.0") == "PF-14"
    assert any(line.startswith("lost") and "3 instead of 16" in line for line in finding.lines())
    path = cache_explorer.trace_of(finding).save(tmp_path)
    result = CliRunner().invoke(app, ["replay", str(path), "--quiet"], standalone_mode=False)
    assert (result.return_value, result.output.startswith("FIXED")) == (0, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--kafka", "3.5.2"], "cache does not apply to Kafka 3.5.2"),
        (["--kafka", "4.4.0", "--planted", "*"], "--planted requires --machine log"),
        (["--machine", "topic"], "unknown machine 'topic'; choose from log, cleaned, segment, cache"),
    ],
)
def test_an_impossible_request_is_an_error_in_one_line(options, said):
    result = CliRunner().invoke(app, ["power-loss", "--machine", "cache", *options])
    assert said in str(result.exception)


@pytest.mark.thorough
def test_a_lost_synced_record_would_be_found(tmp_path):
    """The check can fail: a disk that forgets its syncs breaks guarantees."""
    explorer = LogExplorer("4.4.0", tmp_path, change=_without_syncs)
    for number in range(2):
        explorer.explore(0, number)
    assert any(one.signature.guarantee is Guarantee.DURABLE for one in explorer.findings)


def _without_syncs(history):
    return replace(history, events=tuple(event for event in history.events if "Synced" not in type(event).__name__))


@pytest.fixture(scope="module", params=["4.3.1", "4.4.0"])
def segment_explorer(request, tmp_path_factory):
    return SegmentExplorer(request.param, tmp_path_factory.mktemp("segment") / "scratch")


@pytest.mark.thorough
def test_drawn_power_failures_of_a_segment_show_both_tickets_before_4_4(segment_explorer):
    """KAFKA-20979 (PF-2, PF-4a) and KAFKA-21000 (PF-3), and nothing else."""
    segment_explorer.begin()
    for number in range(20):
        segment_explorer.explore(0, number)
    release, findings = segment_explorer.release, segment_explorer.findings
    clauses = {POWER_LOSS.clause_of_signature("segment", found.signature, release) for found in findings}
    assert clauses == ({"PF-2", "PF-3", "PF-4a"} if release == "4.3.1" else set())


@pytest.mark.thorough
def test_a_segment_that_forgets_its_syncs_loses_batches(segment_explorer):
    """The check can fail: a disk without the syncs of the log breaks the guarantee, with every release."""
    appended = encode([{"records": [[0, 100]]}])
    opened = Operation("open_segment", (0, 0, 120, 0, False, 0, False, "", 1000))
    append = Operation("append_records", (appended.hex(), *follower_append_info(appended)))
    history = segment_explorer.record([opened, append, Operation("flush_segment")])

    def shown(history):
        *_, last = segment_explorer.crash_points(history)
        failures = (Failure(last, loss, last.restarts[-1]) for loss in losses(last.disk, 64, Random(0)))  # noqa: S311
        return {guarantee for failure in failures for guarantee in segment_explorer.check(history, failure)}

    assert shown(history) == set()
    kept = tuple(event for event in history.events if not (isinstance(event, Synced) and event.file == 0))
    assert shown(replace(history, events=kept)) == {Guarantee.DURABLE}


@pytest.mark.thorough
def test_a_segment_after_a_power_failure_is_replayed_and_exported(segment_explorer, tmp_path):
    for number in range(3):
        segment_explorer.explore(0, number)
    for finding in segment_explorer.findings:
        path = segment_explorer.trace_of(finding).save(tmp_path)
        exported = tmp_path / "Replayed.java"
        options = ["replay", str(path), "--quiet", "--export", str(exported)]
        result = CliRunner().invoke(app, options, standalone_mode=False)
        assert (result.return_value, result.output.startswith("FIXED")) == (0, True)
        assert "damage_segment_file" in exported.read_text()


KEYED = SETTINGS | {"cleanup.policy": "compact", "delete.retention.ms": 0}


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory):
    """Return an explorer, and a history in which a cleaner replaces two segments by one."""
    explorer = LogExplorer("4.4.0", tmp_path_factory.mktemp("cleaned"), drawn=CompactedOperationGenerator)
    append = [Operation("append_as_leader", ([{"records": [[0, 100 + n, 4, 1 + n % 2]]}], 0)) for n in range(4)]
    steps = [*append[:2], Operation("roll_log"), *append[2:], Operation("roll_log")]
    end = [Operation("update_high_watermark", (4,)), Operation("clean_log", (-1, 4096, 50, 1000))]
    return explorer, explorer.recorder.perform([Operation("open_log", (KEYED, 0, 0, True, 1000)), *steps, *end])


@pytest.mark.thorough
def test_a_lost_rename_of_the_cleaner_loses_the_latest_value_of_a_key(cleaned):
    """PF-16: the new segment is not under its name yet, and the replaced one is not under its name any more."""
    explorer, history = cleaned
    checker = Checker(history, explorer.opener)
    found = set()
    for crash_point in [
        crash_point for crash_point in crash_points(history) if crash_point.step == len(history.operations) - 1
    ][::3]:
        names = {item: values[0] for item, values in crash_point.disk.options().items() if isinstance(item, Name)}
        for item in names:
            failure = Failure(crash_point, {item: None}, crash_point.restarts[0])
            found |= {signature_of(history, failure, guarantee) for guarantee in checker.check(failure)}
    assert {POWER_LOSS.clause_of_signature("cleaned", signature, "4.4.0") for signature in found} == {"PF-16"}
    assert Guarantee.KEYS in {signature.guarantee for signature in found}


def test_cleaning_after_a_power_failure_is_replayed_and_exported(cleaned, tmp_path):
    explorer, history = cleaned
    *_, last = crash_points(history)
    failure = Failure(last, {}, last.restarts[0])
    assert Checker(history, explorer.opener).check(failure, lockstep=True) == {}
    crash = trace.of_crash_state(Finding(signature_of(history, failure, None), history, failure, ""))
    assert (crash.machine, crash.operations[-1].name) == ("cleaned", "clean_log")
    exported = tmp_path / "Cleaned.java"
    options = ["replay", str(crash.save(tmp_path)), "--quiet", "--export", str(exported)]
    result = CliRunner().invoke(app, options, standalone_mode=False)
    assert (result.return_value, result.output.startswith("FIXED")) == (0, True)
    assert "clean_log" in exported.read_text()


QUICK = ("log-not-synced", "epochs-renamed-before-synced", "no-directory-synced", "start-too-late")


def missed(names, seed, scratch):
    """Return the names of the planted defects that a search does not find."""
    return [each.name for each in POWER_LOSS.search_planted(names, [seed], "4.4.0", scratch) if each.found is None]


@pytest.mark.thorough
def test_planted_defects_of_each_kind_are_found(tmp_path):
    assert missed(QUICK, 1, tmp_path) == []


@pytest.mark.thorough
@pytest.mark.in_turn(20)
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("part", range(4))
def test_every_planted_defect_is_found(part, seed, tmp_path):
    assert missed(list(PLANTED)[part::4], seed, tmp_path) == []
