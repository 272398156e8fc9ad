"""Logs whose index entries differ from Kafka's and are true: tolerated; a wrong one is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.implementations.kidx.log import ReferenceLog
from conformance.lockstep.scopes.log import LogLockstep
from conformance.operations import Operation

RELEASE = "4.3.1"
SETTINGS = {"segment.bytes": 1000, "segment.index.bytes": 120, "index.interval.bytes": 0}
SCENARIO = (
    Operation("open_log", (SETTINGS, 0, 0, True, 10_000)),
    *(Operation("append_as_leader", ([{"records": [[0, 1000 + n]]}], 0)) for n in range(3)),
    Operation("list_offsets", ((1001, 1002),)),
)


class Sparser(ReferenceLog):
    """It has one entry in four kilobytes, whatever the topic wants."""

    directory = Path()

    def begin(self, directory):
        self.directory = directory
        super().begin(directory)

    def perform(self, operation):
        if operation.name == "open_log":
            settings, *rest = operation.args
            operation = Operation("open_log", (settings | {"index.interval.bytes": 4096}, *rest))
        return super().perform(operation)


class Astray(ReferenceLog):
    """Index whose second entry points after its record."""

    directory = Path()

    def begin(self, directory):
        self.directory = directory
        super().begin(directory)

    def perform(self, operation):
        seen = super().perform(operation)
        if operation == SCENARIO[3]:
            (path,) = self.directory.rglob("*.index")
            with path.open("r+b") as file:
                file.seek(12)
                file.write((137).to_bytes(4, "big"))
        return seen


@pytest.mark.parametrize(("kind", "is_accident"), [(Sparser, True), (Astray, False)])
def test_other_entries_are_an_accident_and_wrong_ones_are_not(tmp_path, kind, is_accident):
    found = []
    lockstep = LogLockstep([kind(RELEASE)], tmp_path, on_divergence=lambda divergence: not found.append(divergence))
    lockstep.begin()
    for operation in SCENARIO:
        lockstep.perform(operation)
    lockstep.end()
    assert found[0].aspects == ("bytes",)
    assert found[0].operation.name == "append_as_leader"
    assert set(found[0].clauses) == {"SEG-4", "SEG-5"}, "where an entry is due; LG-1 covers the records"
    assert found[0].counts("must") is not is_accident
