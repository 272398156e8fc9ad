"""A start of thousands of undamaged logs is predicted from their files, without a simulation of each."""

import io
import os
from random import Random

import pytest
from rich.console import Console
from startups import EPOCH_MS, HOUR_MS, log, start, stopped_broker, write_offsets

from kidx.records import SimpleRecord, build_batch
from kidx.startup import evidence, prediction
from kidx.verify import progress, verify_paths

filled, data = stopped_broker(2)


def killed(data):
    (data / ".kafka_cleanshutdown").unlink()


def reserved(data):
    killed(data)
    path = data / "orders-0" / log(36)
    os.truncate(path, path.stat().st_size + 5000)


def torn(data):
    killed(data)
    with (data / "orders-0" / log(36)).open("ab") as file:
        file.write(build_batch([SimpleRecord(1, b"k", b"v" * 50)], base_offset=48)[:70])


def started_inside(data):
    write_offsets(data / "log-start-offset-checkpoint", {0: 17})


def torn_and_started_inside(data):
    torn(data)
    started_inside(data)


def deleting(data):
    killed(data)
    (data / "orders-0" / f"{log(0)}.deleted").write_bytes(b"some")


HARMLESS = [reserved, torn, started_inside, torn_and_started_inside, deleting]


def with_changes(prediction):
    return prediction.to_json() | {
        "partitions": [each for each in prediction.to_json()["partitions"] if each["segments"]]
    }


@pytest.mark.thorough
@pytest.mark.parametrize("plant", HARMLESS)
def test_a_prediction_without_a_simulation_is_that_of_the_simulation(data, plant, monkeypatch):
    plant(data)
    simulated = []
    load = prediction.try_load

    def counted(path, *arguments, **options):
        simulated.append(path.name)
        return load(path, *arguments, **options)

    monkeypatch.setattr(prediction, "try_load", counted)
    quick = start(data)
    assert not simulated
    assert quick.answer == "yes"
    suspected = evidence.suspected
    monkeypatch.setattr(prediction, "suspected", lambda result: suspected(result) | {data / "orders-0"})
    slow = start(data)
    assert simulated == ["orders-0"]
    assert with_changes(quick) == with_changes(slow)
    assert quick.lines() == slow.lines()


def test_a_damaged_log_with_such_a_file_is_simulated(data):
    torn(data)
    (data / "orders-0" / f"{36:020d}.index").unlink()
    assert start(data).rebuilt == {data / "orders-0" / f"{36:020d}.index"}


EMPTY, MISSING, OLD, KILLED, RECOVERED = "empty", "missing", "old", "killed", "recovered"
DAY_MS = 24 * HOUR_MS


def without_entries(data, files, *marks):
    """Leave no entry in some index files of a partition; the marks are about the stop, and the files' times."""
    for base, suffix, how in files:
        path = data / "orders-0" / f"{base:020d}{suffix}"
        path.write_bytes(b"")
        if how == MISSING:
            path.unlink()
    if KILLED in marks or RECOVERED in marks:
        killed(data)
    if RECOVERED in marks:
        write_offsets(data / "recovery-point-offset-checkpoint", {0: 30, 1: 48})
    for path in data.glob("orders-*/*.log"):
        modified = EPOCH_MS - 30 * DAY_MS if OLD in marks else EPOCH_MS + 10 * DAY_MS
        os.utime(path, ns=(modified * 10**6, modified * 10**6))


def both_ways(data, days, monkeypatch, release):
    """Return a prediction, the directories that it simulated, and the prediction with a simulation."""
    simulated = []
    load = prediction.try_load

    def counted(path, *arguments, **options):
        simulated.append(path.name)
        return load(path, *arguments, **options)

    monkeypatch.setattr(prediction, "try_load", counted)
    options = {"release": release, "clock": lambda: EPOCH_MS + days * DAY_MS}
    quick, first = start(data, **options), list(simulated)
    monkeypatch.setattr(prediction, "without_entries", lambda _: {})
    return quick, first, start(data, **options)


@pytest.mark.thorough
@pytest.mark.parametrize("days", [3, 30])
@pytest.mark.parametrize("release", ["2.8.2", "4.3.1"])
@pytest.mark.parametrize("marks", [(), (OLD,), (KILLED,), (RECOVERED,), (RECOVERED, OLD)])
def test_a_whole_log_without_index_entries_is_predicted_as_by_a_simulation(data, marks, days, release, monkeypatch):
    random = Random(str((marks, days, release)))  # noqa: S311 -- draws of a test
    places = [(base, suffix) for base in (0, 12, 24, 36) for suffix in (".index", ".timeindex")]
    chosen = random.sample(places, random.randint(1, len(places)))
    without_entries(data, [(*place, random.choice([EMPTY, MISSING])) for place in chosen], *marks)
    quick, _, slow = both_ways(data, days, monkeypatch, release)
    assert quick.to_json() == slow.to_json()
    assert quick.rebuilt == slow.rebuilt


@pytest.mark.parametrize(
    ("files", "marks"),
    [
        ([(36, ".index", EMPTY), (36, ".timeindex", EMPTY)], ()),
        ([(0, ".index", MISSING), (0, ".timeindex", MISSING)], ()),
        ([(0, ".timeindex", MISSING), (24, ".index", EMPTY)], (RECOVERED,)),
    ],
)
def test_a_whole_log_without_index_entries_is_not_simulated(data, files, marks, monkeypatch):
    without_entries(data, files, *marks)
    quick, simulated, slow = both_ways(data, 3, monkeypatch, "4.3.1")
    assert not simulated
    assert quick.to_json() == slow.to_json()
    assert quick.rebuilt == slow.rebuilt


def test_a_log_that_seems_older_than_it_is_is_simulated(data, monkeypatch):
    without_entries(data, [(0, ".timeindex", EMPTY)], OLD)
    quick, simulated, _ = both_ways(data, 3, monkeypatch, "4.3.1")
    assert simulated
    assert quick.records_at_risk == 12


def test_a_start_does_not_repair_a_time_index_that_it_makes_empty(data):
    without_entries(data, [(0, ".timeindex", MISSING)])
    assert start(data).line.startswith("may I start the broker? yes, but the start does not repair 1 file")
    (data / "orders-0" / f"{0:020d}.index").unlink()
    assert len(start(data).rebuilt) == 2


def test_the_prediction_counts_its_partitions(data, monkeypatch):
    monkeypatch.setattr(progress, "_EVERY", 0)
    printed = io.StringIO()
    with progress.counting("predicted", 2, console=Console(file=printed)) as count:
        prediction.predict([data], verify_paths([data]), progress=count)
    assert printed.getvalue() == "predicted: 1 of 2\npredicted: 2 of 2\n"
