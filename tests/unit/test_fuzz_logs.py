"""Expectations for logs from cached batches, which equal the readable reference, in every dialect."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from thorough_params import thorough_except

from conformance.experiments.fuzz.expected import ReadableReference
from conformance.experiments.fuzz.logs import known_batches
from conformance.experiments.fuzz.logs.cases import KnownLogs
from conformance.experiments.fuzz.mutations import contents, every_flip, mutated
from conformance.experiments.fuzz.seed_files import BASE_OFFSET, SEEDS, TIME
from kidx.dialect import DIALECTS, dialect_of
from kidx.records import build_batch

RELEASES = tuple({dialect.rules("index", "segment"): release for release, dialect in DIALECTS.items()}.values())


def log_of(*batches: bytes) -> bytes:
    return b"".join(batches)


def plain(offset: int, timestamp: int = TIME) -> bytes:
    return build_batch([(timestamp, b"key", b"value" * 9)], base_offset=offset)


@pytest.mark.parametrize("release", thorough_except((RELEASES[0], RELEASES[-1]), RELEASES))
def test_every_mutation_has_the_expectation_of_the_reference(release, tmp_path):
    seeds = SEEDS["log"](tmp_path)
    dialect = dialect_of(release)
    readable, known = ReadableReference("log", dialect, tmp_path), KnownLogs(dialect, tmp_path)
    left = []

    @settings(max_examples=settings.default.max_examples * 2)
    @given(contents("log", seeds))
    def look(content):
        mine = known.case(content)
        if mine is None:
            left.append(content)
        else:
            assert mine == readable.case(content)

    look()


@pytest.mark.thorough
def test_flipped_bits_have_the_expectation_of_the_reference(tmp_path):
    for release in ("2.4.1", "3.9.2", "4.4.0"):
        dialect = dialect_of(release)
        readable, known = ReadableReference("log", dialect, tmp_path), KnownLogs(dialect, tmp_path)
        for seed in SEEDS["log"](tmp_path)[:2]:
            for _, _, flipped in every_flip(seed)[::7]:
                assert known.case(flipped) in (None, readable.case(flipped))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        bytes(1200),
        log_of(*(plain(BASE_OFFSET + number, TIME - number) for number in range(9))),
        log_of(*(plain(BASE_OFFSET + number, TIME + 10 * number) for number in range(9))) + bytes(40),
        log_of(plain(BASE_OFFSET, -1), plain(BASE_OFFSET + 1, -1), plain(BASE_OFFSET + 2, 0)),
    ],
    ids=["nothing", "zeros", "earlier and earlier", "later and later, and zeros", "hardly any timestamps"],
)
@pytest.mark.parametrize("release", ["2.4.1", "3.6.2", "4.4.0"])
def test_such_logs_have_the_expectation_of_the_reference(content, release, tmp_path):
    case = KnownLogs(dialect_of(release), tmp_path).case(content)
    assert case is not None
    assert case == ReadableReference("log", dialect_of(release), tmp_path).case(content)


@pytest.mark.parametrize(
    "content",
    [
        plain(BASE_OFFSET)[:8] + b"\x00\x00\x00\x10" + plain(BASE_OFFSET)[12:],
        log_of(*(plain(offset) for offset in (BASE_OFFSET, BASE_OFFSET + 9, BASE_OFFSET + 3, BASE_OFFSET + 2))),
        plain(BASE_OFFSET + (1 << 31)),
        log_of(*(plain(BASE_OFFSET + number, TIME + number) for number in range(400))),
    ],
    ids=["no whole header", "offsets go back", "an offset out of range", "more entries than an index has"],
)
def test_logs_that_a_recovery_rejects_are_left_to_the_reference(content, tmp_path):
    assert KnownLogs(dialect_of("4.4.0"), tmp_path).case(content) is None


def test_most_logs_are_known_and_few_batches_are_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(known_batches, "_MOST", 8)
    seeds = SEEDS["log"](tmp_path)
    known, chance = KnownLogs(dialect_of("4.4.0"), tmp_path), random.Random(1)  # noqa: S311 -- nothing secret
    cases = [known.case(mutated(chance, "log", seeds)) for _ in range(300)]
    assert sum(case is None for case in cases) < 60
    readable = ReadableReference("log", dialect_of("4.4.0"), tmp_path)
    assert [known.case(seed) for seed in seeds] == [readable.case(seed) for seed in seeds]
