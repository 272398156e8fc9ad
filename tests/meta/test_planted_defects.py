"""The tester is tested: kidx with one wrong line is found within few examples, in the aspect that is wrong.

Each defect is a class of kidx with one method spoilt, by public means only. The trace of the difference must fail with
the defect and be FIXED without it, and it must be short.
"""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import jsonschema
import pytest

from conformance.implementations.reference import ReferenceIndex
from conformance.replay import replay
from conformance.trace import Trace
from kidx import AbortedTxn, OffsetIndex, TimeIndex, TransactionIndex
from kidx.errors import CorruptIndexError, InvalidOffsetError

RELEASE = "4.4.0"
TRIMS = "3.9.2"
"""A release whose close trims."""


class Defect(NamedTuple):
    machine: str
    index: type
    aspect: str
    release: str = RELEASE
    steps: int = 5


def spoil(index, at, change):
    """Changes bytes of the file behind the index's back."""
    with Path(index.path).open("r+b") as file:
        file.seek(at)
        data = file.read(4)
        file.seek(at)
        file.write(change(data))


# -- offset index -----------------------------------------------------------------------------------------------------


class OneTooLowAtTheWarmEdge(OffsetIndex):
    def lookup(self, target, *arguments, **options):
        found = super().lookup(target, *arguments, **options)
        edge = self.entries - 1 - 1024
        return self.entry(edge - 1) if edge > 0 and found == self.entry(edge) else found


class KeepsTheEqualOffset(OffsetIndex):
    def truncate_to(self, offset):
        super().truncate_to(offset + 1 if offset in (entry.offset for entry in self) else offset)


class IgnoresTheEqualOffset(OffsetIndex):
    def append(self, offset, position):
        if not (self.entries and not self.is_full and offset == self.last_offset):
            super().append(offset, position)


class ForgetsTheLengthCheck(OffsetIndex):
    def sanity_check(self):
        if not self.length % 8:
            super().sanity_check()


class ForgetsTheOffsetCheck(OffsetIndex):
    def sanity_check(self):
        if not (self.entries and self.last_offset < self.base_offset):
            super().sanity_check()


class ForgetsToTrim(OffsetIndex):
    def close(self):
        self.close_handler()


class LittleEndian(OffsetIndex):
    def append(self, offset, position):
        super().append(offset, position)
        spoil(self, (self.entries - 1) * 8, lambda data: data[::-1])


class RoundsUp(OffsetIndex):
    def resize(self, new_size):
        return super().resize(-(-new_size // 8) * 8)


class NeverFull(OffsetIndex):
    is_full = property(lambda self: self.entries > self.max_entries)


class OtherWords(OffsetIndex):
    def append(self, offset, position):
        try:
            super().append(offset, position)
        except InvalidOffsetError as error:
            raise InvalidOffsetError(str(error), f"{error.kafka_message}!") from None


class OtherRefusal(OffsetIndex):
    def append(self, offset, position):
        try:
            super().append(offset, position)
        except InvalidOffsetError as error:
            raise CorruptIndexError(str(error), error.kafka_message) from None


class CopiesInsteadOfMoving(OffsetIndex):
    def rename_to(self, path):
        old = self.path
        super().rename_to(path)
        if self.path.exists() and not old.exists():
            shutil.copy(self.path, old)


class LeavesALockFile(OffsetIndex):
    def close(self):
        super().close()
        self.path.with_suffix(".lock").touch()


class ForgetsToDelete(OffsetIndex):
    def delete_if_exists(self):
        there = self.path.exists()
        self.close_handler()
        return there


class ClearsOnTruncation(OffsetIndex):
    def truncate(self):
        entries = self.entries
        super().truncate()
        if entries:
            spoil(self, 0, lambda data: bytes(len(data)))


class CountsTheBoundOut(OffsetIndex):
    def fetch_upper_bound_offset(self, fetch_offset, fetch_size):
        return super().fetch_upper_bound_offset(fetch_offset, fetch_size + 1)


# -- time index -------------------------------------------------------------------------------------------------------


class ForgetsTheSlotKeptFree(TimeIndex):
    is_full = property(lambda self: self.entries >= self.max_entries)


class AppendsEqualTimestamps(TimeIndex):
    def maybe_append(self, timestamp, offset, skip_full_check=False):
        if self.entries and timestamp == self.last_entry.timestamp:
            timestamp += 1
        super().maybe_append(timestamp, offset, skip_full_check)


class AnswersWithTheNext(TimeIndex):
    def lookup(self, timestamp, *arguments, **options):
        return super().lookup(min(timestamp + 1, (1 << 63) - 1), *arguments, **options)


class ForgetsTheTimestampCheck(TimeIndex):
    def sanity_check(self):
        try:
            super().sanity_check()
        except CorruptIndexError as error:
            if "timestamp is" not in str(error.kafka_message):
                raise


class NoTimestampIsZero(TimeIndex):
    @property
    def last_entry(self):
        last = super().last_entry
        return last if self.entries else last._replace(timestamp=0)


# -- transaction index ------------------------------------------------------------------------------------------------


class IsAlwaysComplete(TransactionIndex):
    def collect_aborted_txns(self, fetch_offset, upper_bound_offset):
        found = super().collect_aborted_txns(fetch_offset, upper_bound_offset)
        return found._replace(is_complete=True)


class LeavesOutTheFirstOffset(TransactionIndex):
    def collect_aborted_txns(self, fetch_offset, upper_bound_offset):
        return super().collect_aborted_txns(fetch_offset + 1, upper_bound_offset)


class SwapsTheOffsets(TransactionIndex):
    def append(self, txn):
        super().append(AbortedTxn(txn.producer_id, txn.last_stable_offset, txn.last_offset, txn.first_offset))


class ForgetsToSanityCheck(TransactionIndex):
    def sanity_check(self):
        pass


class RemembersTooMuch(TransactionIndex):
    @property
    def last_offset(self):
        last = super().last_offset
        return list(self)[-1].last_offset if last is None and len(self) else last


DEFECTS = [
    Defect("offset", OneTooLowAtTheWarmEdge, "outcome", steps=8),
    Defect("offset", KeepsTheEqualOffset, "state"),
    Defect("offset", IgnoresTheEqualOffset, "outcome"),
    Defect("offset", ForgetsTheLengthCheck, "outcome", steps=6),
    Defect("offset", ForgetsTheOffsetCheck, "outcome", steps=6),
    Defect("offset", ForgetsToTrim, "state", TRIMS),
    Defect("offset", LittleEndian, "bytes"),
    Defect("offset", RoundsUp, "state"),
    Defect("offset", NeverFull, "state"),
    Defect("offset", OtherWords, "text"),
    Defect("offset", OtherRefusal, "outcome"),
    Defect("offset", CopiesInsteadOfMoving, "bytes"),
    Defect("offset", LeavesALockFile, "bytes"),
    Defect("offset", ForgetsToDelete, "bytes"),
    Defect("offset", ClearsOnTruncation, "bytes"),
    Defect("offset", CountsTheBoundOut, "outcome"),
    Defect("time", ForgetsTheSlotKeptFree, "state"),
    Defect("time", AppendsEqualTimestamps, "state"),
    Defect("time", AnswersWithTheNext, "outcome"),
    Defect("time", ForgetsTheTimestampCheck, "outcome", steps=7),
    Defect("time", NoTimestampIsZero, "state"),
    Defect("transaction", IsAlwaysComplete, "outcome"),
    Defect("transaction", LeavesOutTheFirstOffset, "outcome"),
    Defect("transaction", SwapsTheOffsets, "bytes"),
    Defect("transaction", ForgetsToSanityCheck, "outcome", steps=7),
    Defect("transaction", RemembersTooMuch, "state"),
]


def having(index: type):
    """The reference with one of its classes replaced."""
    name = next(
        name
        for base, name in (
            (OffsetIndex, "offset_index"),
            (TimeIndex, "time_index"),
            (TransactionIndex, "transaction_index"),
        )
        if issubclass(index, base)
    )
    return type("Spoilt", (ReferenceIndex,), {name: index})


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.index.__name__)
def test_a_planted_defect_is_found_and_its_trace_tells_it_from_a_sound_one(campaign, implementations, defect):
    found = campaign(defect.machine, releases=(defect.release,), spoilt=having(defect.index))
    assert not found.conforms
    assert found.verdict == "diverges"
    (divergence,) = found.divergences
    failure = divergence.failure
    assert (failure["party"], failure["against"]) == (f"spoilt {defect.release}", "kidx")
    assert defect.aspect in failure["aspects"]
    assert len(divergence.steps) <= defect.steps, divergence.steps

    (result,) = found.results
    assert result.divergences == 1
    assert all(result.verdicts[clause] == "diverges" for clause in failure["clauses"] if clause in result.verdicts)

    document = json.loads(Path(divergence.trace).read_text("utf-8"))
    jsonschema.validate(document, json.loads((files("conformance") / "schemas/trace.json").read_text("utf-8")))
    trace = Trace.load(divergence.trace)
    implementations["sound"] = ReferenceIndex
    again = replay(trace, [defect.release], ["spoilt"])
    assert (again.verdict, list(again.divergence.aspects)) == ("FAILED", failure["aspects"])
    assert again.steps == len(trace.operations)
    assert replay(trace, [defect.release], ["sound"]).verdict == "FIXED"


@pytest.mark.parametrize("machine", ["offset", "time", "transaction"])
def test_a_sound_implementation_is_not_accused(campaign, machine):
    found = campaign(machine, sound=ReferenceIndex, releases=("2.4.1", "3.9.2", "4.4.0"))
    assert found.conforms
    assert (found.verdict, found.divergences) == ("conforms", [])
    for result in found.results:
        assert result.divergences == 0
        assert set(result.verdicts.values()) <= {"conforms", "not-run"}
        assert result.count("conforms") > result.count("not-run")
