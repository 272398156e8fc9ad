"""Fuzzing without Java: the tried contents, the corpus, the findings."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings

from conformance.lockstep import Lockstep
from conformance.machines import MACHINES
from conformance.operations import Operation
from conformance.runs.replay import replay_operations
from conformance.studies.fuzz.corpus import Corpus
from conformance.studies.fuzz.coverage_guided import Options
from conformance.studies.fuzz.mutations import LARGEST, contents, every_flip, mutated, repair_checksums
from conformance.studies.fuzz.probes import PROBES
from conformance.studies.fuzz.runner import fuzz
from conformance.studies.fuzz.seed_files import SEEDS
from conformance.studies.study import Request
from kidx.errors import KidxError
from kidx.records import iter_batches

FORMATS = tuple(SEEDS)


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_seed_is_sound_and_its_script_can_be_recorded(format_name, tmp_path):
    for content in SEEDS[format_name](tmp_path):
        operations = PROBES[format_name](content)
        assert [Operation.from_json(json.loads(json.dumps(op.to_json()))).name for op in operations]
        if format_name == "log":
            assert all(batch.is_valid for batch in iter_batches(content))
        else:
            machine = {"txn": "transaction"}.get(format_name, format_name)
            lockstep = Lockstep([], tmp_path / "parties", releases=["4.4.0"])
            replay_operations(lockstep, operations)
            assert MACHINES[machine]


@pytest.mark.parametrize("format_name", FORMATS)
def test_mutations_reach_entries_tails_and_sizes(format_name, tmp_path):
    seed = SEEDS[format_name](tmp_path)[0]
    seen: set[str] = set()

    chance = random.Random(1)  # noqa: S311 -- nothing secret
    for _ in range(2000):
        content = mutated(chance, format_name, [seed])
        assert len(content) <= LARGEST
        if len(content) > len(seed):
            seen.add("longer")
        elif len(content) == len(seed):
            seen.add("same size" if content != seed else "same")
        elif seed.startswith(content):
            seen.add("cut")
    assert seen >= {"longer", "same size", "cut"}


def test_a_repaired_checksum_lets_a_damaged_batch_pass(tmp_path):
    data = bytearray(SEEDS["log"](tmp_path)[0])
    data[65] ^= 1
    assert not all(batch.is_valid for batch in iter_batches(bytes(data)))
    repair_checksums(data)
    assert all(batch.is_valid for batch in iter_batches(bytes(data)))


def test_every_bit_is_flipped_once():
    flips = every_flip(b"\x00\xff")
    assert len({content for _, _, content in flips}) == 16
    changes = [int.from_bytes(content, "big") ^ 0x00FF for *_, content in flips]
    assert [change.bit_count() for change in changes] == [1] * 16


def test_the_corpus_is_reloaded_and_has_no_duplicates(tmp_path):
    corpus = Corpus(tmp_path / "corpus", [b"seed"])
    assert corpus.add(b"new")
    assert not corpus.add(b"new")
    assert not corpus.add(b"seed")
    again = Corpus(tmp_path / "corpus", [b"seed"])
    assert again.contents == [b"seed", b"new"]


MODULE = """
from kidx import OffsetIndex, TransactionIndex

def right(kind, path, base_offset, max_index_size, writable, release):
    return TransactionIndex(base_offset, path, dialect=release)

class TailBlind(OffsetIndex):
    def sanity_check(self):
        if self.length % 8 == 0:
            super().sanity_check()

def tail_blind(kind, path, base_offset, max_index_size, writable, release):
    return TailBlind(path, base_offset, max_index_size, writable, dialect=release)
"""


@pytest.fixture
def implementations(tmp_path, monkeypatch):
    (tmp_path / "fuzzed_index.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)


def request_of(tmp_path, implementation: str, format_name: str = "offset") -> Request:
    parties = {"releases": ("4.4.0",), "implementations": (implementation,)}
    return Request((format_name,), 1, 40, 300.0, tmp_path / "found", Options(tmp_path / "corpus"), **parties)


@pytest.mark.thorough
@pytest.mark.usefixtures("implementations")
def test_an_implementation_that_reads_corrupt_files_differently_is_found(tmp_path):
    """Its sanity check ignores the length."""
    (result,) = fuzz(request_of(tmp_path, "python:fuzzed_index:tail_blind"))
    assert result.findings
    for path in result.findings.values():
        steps = json.loads((tmp_path / "found" / path.rpartition("/")[2]).read_text())["steps"]
        assert len(steps) <= 5
        assert steps[0]["op"] == "open"


@pytest.mark.usefixtures("implementations")
@pytest.mark.thorough
def test_the_flips_of_a_sound_file_are_all_classified(tmp_path):
    (result,) = fuzz(request_of(tmp_path, "python:fuzzed_index:right", "txn"))
    assert not result.findings
    assert sum(result.flips.values()) == 68 * 8
    assert result.flips["rejected: unsupported_version by sanity_check"] == 32
    assert result.new > 0
    assert result.kept == result.new + 4


def test_two_runs_add_the_same_content_to_one_corpus(tmp_path, monkeypatch):
    """Both have it written before either renames it."""
    mine, theirs = Corpus(tmp_path, []), Corpus(tmp_path, [])
    rename, pending = Path.replace, [theirs]

    def replace(path, target):
        if pending:
            assert pending.pop().add(b"found by both")
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    assert mine.add(b"found by both")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"found by both"]


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_buffer_decides_what_a_coverage_guided_fuzzer_tries(format_name, tmp_path):
    known = SEEDS[format_name](tmp_path)
    tried = []

    @settings(database=None, phases=[Phase.generate])
    @given(contents(format_name, known))
    def case(content):
        tried.append(content)

    for buffer in (bytes(range(256)) * 4, bytes(range(256)) * 4, bytes(range(255, -1, -1)) * 4):
        case.hypothesis.fuzz_one_input(buffer)
    assert tried[0] == tried[1]
    assert len(set(tried)) == 2


def test_records_of_another_batch_fit_into_a_batch(tmp_path):
    """The structure is repaired: a batch with the records of another batch is valid."""
    plain, _, _, _, codecs, _ = SEEDS["log"](tmp_path)
    chance, found = random.Random(5), 0  # noqa: S311 -- nothing secret
    for _ in range(4000):
        content = mutated(chance, "log", [plain, codecs])
        with contextlib.suppress(KidxError):
            batches = list(iter_batches(content))
            found += len({batch.codec for batch in batches if batch.is_valid}) > 1 and len(batches) < 6
    assert found > 5


def test_a_corpus_drops_contents_that_show_nothing_new(tmp_path):
    first = Corpus(tmp_path, [b"seed"])
    assert all(map(first.add, (b"longer", b"new")))
    first.drop(b"new")  # it was just added, so it is retained
    again = Corpus(tmp_path, [b"seed"])
    assert again.contents == [b"seed", b"new", b"longer"]
    for content in (b"longer", b"seed", b"never there"):
        again.drop(content)
    assert again.contents == [b"seed", b"new"]
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"new"]
    assert again.add(b"longer")
