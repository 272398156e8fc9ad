"""A start of thousands of undamaged logs is predicted from their files, without a simulation of each."""

import io
import os

import pytest
from rich.console import Console
from startups import fill_partitions, log, start, stop_cleanly, write_offsets

from kidx.records import SimpleRecord, build_batch
from kidx.startup import evidence, prediction
from kidx.verify import progress, verify_paths


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    return fill_partitions(tmp_path_factory.mktemp("filled"), 2)


@pytest.fixture
def data(filled, tmp_path):
    return stop_cleanly(filled, tmp_path / "data", {0: 48, 1: 48})


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


def test_the_prediction_counts_its_partitions(data, monkeypatch):
    monkeypatch.setattr(progress, "_EVERY", 0)
    printed = io.StringIO()
    with progress.counting("predicted", 2, console=Console(file=printed)) as count:
        prediction.predict([data], verify_paths([data]), progress=count)
    assert printed.getvalue() == "predicted: 1 of 2\npredicted: 2 of 2\n"
