"""A study that ends early keeps the results that it has, and does not execute their cases again."""

from __future__ import annotations

import json
from typing import NamedTuple

import msgspec
import pytest

from conformance.commands.study import command_of
from conformance.studies.start_damage.cases import CASES
from conformance.studies.start_damage.experiment import Experiment, StartResult
from conformance.studies.start_damage.study import DAMAGE
from conformance.studies.study import Study

CASE_NUMBERS = range(4)


class Bench(NamedTuple):
    """Executor of a study without brokers."""

    release: str


class Seen(msgspec.Struct, frozen=True):
    """Result of a case."""

    case: int
    machine: str = "offset"


class Numbers(Study):
    """Study whose cases are numbers, and whose program ends at one of them."""

    name, help, machines, takes, report, title = "numbers", "", ("offset",), ("kafka", "report"), "numbers", "Numbers"

    def __init__(self):
        self.tried, self.ends_at = [], None

    def open(self, release, *_):
        return Bench(release)

    def cases(self, *_):
        yield from CASE_NUMBERS

    def look(self, bench, case):
        if (bench.release, case) == self.ends_at:
            raise KeyboardInterrupt
        self.tried.append((bench.release, case))
        yield Seen(case)

    def sameness(self, _):
        return None


def test_an_interrupted_study_continues_where_it_ended(tmp_path):
    study = Numbers()
    command, study.ends_at = command_of(study), ("4.4.0", 2)
    asked = {"kafka": ["4.3.1", "4.4.0"], "report": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        command(**asked)
    (cut,) = (tmp_path / "unfinished").glob("numbers-4.4.0-*.ndjson")
    with cut.open("a") as file:
        file.write('{"name":"2","rows":[{"ca')  # the program was killed while it wrote
    study.tried.clear()
    study.ends_at = None
    assert command(**asked) == 0
    assert study.tried == [("4.4.0", 2), ("4.4.0", 3)]
    rows = [(row["release"], row["case"]) for row in json.loads((tmp_path / "numbers.json").read_text())]
    assert rows == [(release, case) for release in asked["kafka"] for case in CASE_NUMBERS]
    assert not (tmp_path / "unfinished").exists()
    study.tried.clear()
    assert command(**asked) == 0
    assert len(study.tried) == 2 * len(CASE_NUMBERS)  # a finished study begins again


def test_another_search_begins_again(tmp_path):
    study = Numbers()
    command, study.ends_at = command_of(study), ("4.4.0", 2)
    with pytest.raises(KeyboardInterrupt):
        command(kafka=["4.4.0"], report=tmp_path)
    study.tried.clear()
    study.ends_at = None
    assert command(kafka=["4.4.0"], report=tmp_path, max_examples=7) == 0
    assert len(study.tried) == len(CASE_NUMBERS)


def test_starts_that_were_tried_are_not_tried_again(tmp_path, monkeypatch):
    shared, alone = [case for case in CASES if not case.alone][:3], next(case for case in CASES if case.alone)
    dangerous, chosen = shared[1], [*shared, alone]
    monkeypatch.setattr("conformance.studies.start_damage.study._chosen", lambda _: chosen)
    tried = []

    def start(self, some):
        tried.append(some.cases)
        if len(tried) == 2:
            raise KeyboardInterrupt
        if not some.alone:
            self._dangerous += [case for case in some.cases if case == dangerous]
        return [StartResult(*case[:2], "yes", "", "") for case in some.cases if some.alone or case != dangerous]

    monkeypatch.setattr(Experiment, "start", start)
    command = command_of(DAMAGE)
    with pytest.raises(KeyboardInterrupt):
        command(kafka=["4.4.0"], report=tmp_path, quiet=True)
    assert command(kafka=["4.4.0"], report=tmp_path, quiet=True) == 0
    assert tried == [tuple(shared), (alone,), (dangerous,), (alone,), (dangerous,)]
    rows = json.loads((tmp_path / "damage.json").read_text())
    assert [(row["damage"], row["shutdown"]) for row in rows] == [case[:2] for case in chosen]
