"""The kernels of the fuzzer write the same bytes as the readable reference, in every dialect."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

from conformance.experiments.fuzz.compiled.cases import KERNELS, CompiledReference, signatures
from conformance.experiments.fuzz.expected import ReadableReference
from conformance.experiments.fuzz.mutations import contents, every_flip
from conformance.experiments.fuzz.seed_files import SEEDS
from kidx.dialect import DIALECTS, dialect_of

RELEASES = tuple({dialect.rules("index"): release for release, dialect in DIALECTS.items()}.values())


def written(format_name: str, release: str, some: list[bytes]) -> list[bytes]:
    """Return the cases of some contents, by the kernel."""
    compiled = CompiledReference(format_name, release)
    longs = np.zeros(compiled.room(some), np.int64)
    ends = compiled.write(some, longs)
    return [part.tobytes() for part in np.split(longs, ends)[: len(some)]]


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", list(KERNELS))
def test_every_flipped_bit_has_the_expectation_of_the_reference(format_name, tmp_path):
    seeds = SEEDS[format_name](tmp_path)
    flips = [*seeds, *(flipped for seed in seeds[:2] for _, _, flipped in every_flip(seed))]
    for release in RELEASES:
        readable = ReadableReference(format_name, dialect_of(release), tmp_path)
        some = flips if release == RELEASES[-1] else flips[::7]
        assert written(format_name, release, some) == [readable.case(content) for content in some]


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", list(KERNELS))
def test_every_mutation_has_the_expectation_of_the_reference(format_name, tmp_path):
    seeds = SEEDS[format_name](tmp_path)
    readable = {release: ReadableReference(format_name, dialect_of(release), tmp_path) for release in RELEASES}

    @settings(max_examples=settings.default.max_examples * 4)
    @given(contents(format_name, seeds))
    def look(content):
        for release, reference in readable.items():
            assert written(format_name, release, [content]) == [reference.case(content)], release

    look()


UNCOMPILED = """
import sys
from pathlib import Path
import numpy as np
from conformance.experiments.fuzz.compiled.cases import KERNELS, CompiledReference
from conformance.experiments.fuzz.expected import ReadableReference
from conformance.experiments.fuzz.seed_files import SEEDS
from kidx.dialect import dialect_of
from kidx.scan.jit import COMPILED

assert not COMPILED
for format_name in KERNELS:
    for release in sys.argv[2:]:
        directory = Path(sys.argv[1], format_name, release)
        directory.mkdir(parents=True)
        some = [seed[: len(seed) - cut] for seed in SEEDS[format_name](directory) for cut in (0, 1, 9)]
        some += [bytes([seed[0] ^ 0x80]) + seed[1:] for seed in some if seed]
        kernel = CompiledReference(format_name, release)
        readable = ReadableReference(format_name, dialect_of(release), directory)
        longs = np.zeros(kernel.room(some), np.int64)
        ends = kernel.write(some, longs)
        assert [part.tobytes() for part in np.split(longs, ends)[: len(some)]] == [readable.case(each) for each in some]
        print(format_name, release)
"""


def test_the_kernels_expect_the_same_uncompiled(tmp_path):
    """The same functions as plain Python, of cut files and of the first bit flipped."""
    command = [sys.executable, "-c", UNCOMPILED, tmp_path, RELEASES[0], RELEASES[-1]]
    done = subprocess.run(command, env=os.environ | {"KIDX_PLAIN": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 2 * len(KERNELS)


@pytest.mark.thorough
def test_a_signature_contains_the_outcomes_of_operations_and_no_number():
    compiled = CompiledReference("offset", RELEASES[-1])
    entry = b"\x00\x00\x00\x03\x00\x00\x00\x64"
    some = [entry, b"\x00\x00\x00\x04" + entry[4:], entry + b"\x00", b""]
    longs = np.zeros(compiled.room(some), np.int64)
    same, other, damaged, empty = signatures(longs, compiled.write(some, longs)).tolist()
    assert same == other
    assert len({same, damaged, empty}) == 3
