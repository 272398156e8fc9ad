"""Fuzzing against Kafka's own classes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from broken_kafka import broken
from kafka_builds import build_at
from kafka_changes import BROKEN, RELEASE

from conformance.studies.fuzz.batches import BatchedExecutor
from conformance.studies.fuzz.coverage_guided import Options
from conformance.studies.fuzz.runner import fuzz
from conformance.studies.fuzz.seed_files import SEEDS
from conformance.studies.study import Request
from kidx.segment import FileRecords

pytestmark = pytest.mark.jvm
INDEX = {"offset": ".OffsetIndex", "time": ".TimeIndex", "txn": ".TransactionIndex"}


def request_of(
    tmp_path: Path, format_name: str, releases: tuple[str, ...], implementation="jvm", corpus="corpus", **limits: int
) -> Request:
    request = Request((format_name,), 0, None, 300.0, tmp_path / "found", Options(tmp_path / corpus))
    return request._replace(releases=releases, implementations=(implementation,), **limits)


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", ["offset", "time", "txn"])
def test_corrupt_files_have_the_same_results(format_name, tmp_path):
    releases = ("2.4.1", "3.9.2", "4.4.0")
    (result,) = fuzz(request_of(tmp_path, format_name, releases, examples=100))
    assert result.findings == {}
    assert sum(result.flips.values()) > 200
    assert not result.flips["implementations differ"]
    assert result.settled == 0
    assert list(result.coverage) == [f"jvm {release}" for release in releases]
    for classes in result.coverage.values():
        name, lines, of_lines, branches, of_branches = next(
            row for row in classes if row[0].endswith(INDEX[format_name])
        )
        assert of_lines // 2 < lines <= of_lines, name
        assert 0 < branches <= of_branches, name


@pytest.mark.thorough
def test_corrupt_logs_have_the_same_results(tmp_path):
    seeds = SEEDS["log"](tmp_path)
    batches = BatchedExecutor("log", ("2.4.1", "4.4.0"), ("jvm",), _new(tmp_path / "work"))
    contents = [*seeds, *(seed[: len(seed) - cut] for seed in seeds for cut in (1, 20, 70))]
    assert [seen.differs for seen in batches.examine(contents)] == [None] * len(contents)
    assert any(seen.new for seen in batches.examine([b"\x00" * 100, b"\x01" * 100]))
    outcomes, differs = batches.flips(seeds[0], [seeds[0], b"\x80" + seeds[0][1:]])
    assert differs == [None, None]
    assert outcomes[0] != outcomes[1]
    assert {name.rpartition(" ")[2] for name in batches.coverage()} == {"2.4.1", "4.4.0"}
    batches.close()


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_cases(tmp_path):
    results = []
    for name in ("first", "second"):
        (result,) = fuzz(request_of(tmp_path, "time", ("4.4.0",), corpus=name, seed=7, examples=1200))
        results.append(result)
    assert results[0].cases == results[1].cases
    assert results[0].new == results[1].new > 10
    kept = [sorted(path.name for path in (tmp_path / name / "time").iterdir()) for name in ("first", "second")]
    assert kept[0] == kept[1]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        "search-goes-the-other-way",
        "aborted-at-the-bound-is-left-out",
        "recovery-keeps-a-bad-batch",
        "finds-only-later-timestamps",
    ],
)
def test_a_build_that_is_broken_in_one_instruction_is_found(name, tmp_path):
    sound = build_at(tmp_path / "sound", RELEASE)
    build = broken(sound, BROKEN[name].change, tmp_path / "build")
    format_name = {"transaction": "txn", "segment": "log"}.get(BROKEN[name].machine, BROKEN[name].machine)
    (result,) = fuzz(request_of(tmp_path, format_name, (RELEASE,), f"jvm:{build}", examples=60))
    assert result.findings
    assert result.settled == 0
    for path in result.findings.values():
        steps = json.loads(Path(path).read_text("utf-8"))["steps"]
        assert len(steps) <= 7


def test_releases_of_one_dialect_are_compared_for_every_content(tmp_path):
    """A broken build differs from its release in a content that shows nothing new."""
    build = broken(build_at(tmp_path / "sound", RELEASE), BROKEN["finds-only-later-timestamps"].change, tmp_path / "b")
    batches = BatchedExecutor("log", (RELEASE,), ("jvm", f"jvm:{build}"), _new(tmp_path / "work"))
    contents = [SEEDS["log"](tmp_path)[0]] * 3
    assert all(seen.differs for seen in batches.examine(contents))
    batches.close()


@pytest.mark.parametrize("defective", [False, True], ids=["sound", "defective"])
def test_the_reference_executes_what_is_new_and_a_sample(defective, tmp_path, monkeypatch):
    same, other = SEEDS["log"](tmp_path)[:2]
    batches = BatchedExecutor("log", ("4.4.0",), ("jvm",), _new(tmp_path / "work"))
    if defective:
        monkeypatch.setattr(FileRecords, "search_for_timestamp", lambda *_: None)
    seen = batches.examine([*[same] * 66, other, other])
    batches.close()
    assert [number for number, each in enumerate(seen) if each.compared] == [0, 64, 66]
    assert any(each.differs for each in seen) == defective


def test_a_signature_contains_the_kinds_of_outcomes_and_no_number(tmp_path):
    batches = BatchedExecutor("offset", ("4.4.0",), ("jvm",), _new(tmp_path / "work"))
    entry = b"\x00\x00\x00\x03\x00\x00\x00\x64"
    seen = batches.examine([entry, b"\x00\x00\x00\x04" + entry[4:], entry + b"\x00", b""])
    batches.close()
    same, other, damaged, empty = (each.signature for each in seen)
    assert same == other
    assert len({same, damaged, empty}) == 3


def _new(directory: Path) -> Path:
    directory.mkdir()
    return directory
