"""The kernels of the fuzzer write the same bytes as the readable reference, in every dialect."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from in_ci import all_but

from conformance.experiments.fuzz.compiled.cases import KERNELS, CompiledReference, signatures
from conformance.experiments.fuzz.expected import ReadableReference
from conformance.experiments.fuzz.mutations import contents, every_flip
from conformance.experiments.fuzz.seeds import SEEDS
from kidx.dialect import DIALECTS

every_format = pytest.mark.parametrize("format_name", all_but(["offset"], KERNELS))
"""Each has kernels of its own, and compiling them is what takes long."""
RELEASES = tuple({dialect.index_rules: release for release, dialect in DIALECTS.items()}.values())


def written(format_name: str, release: str, some: list[bytes]) -> list[bytes]:
    """The cases of some contents, by the kernel."""
    compiled = CompiledReference(format_name, release)
    longs = np.zeros(compiled.room(some), np.int64)
    ends = compiled.write(some, longs)
    return [part.tobytes() for part in np.split(longs, ends)[: len(some)]]


@every_format
def test_every_flipped_bit_is_expected_alike(format_name, tmp_path):
    seeds = SEEDS[format_name](tmp_path)
    flips = [*seeds, *(flipped for seed in seeds[:2] for _, _, flipped in every_flip(seed))]
    for release in RELEASES:
        readable = ReadableReference(format_name, release, tmp_path)
        some = flips if release == RELEASES[-1] else flips[::7]
        assert written(format_name, release, some) == [readable.case(content) for content in some]


@every_format
def test_every_mutation_is_expected_alike(format_name, tmp_path):
    seeds = SEEDS[format_name](tmp_path)
    readable = {release: ReadableReference(format_name, release, tmp_path) for release in RELEASES}

    @settings(max_examples=settings.default.max_examples * 4)
    @given(contents(format_name, seeds))
    def look(content):
        for release, reference in readable.items():
            assert written(format_name, release, [content]) == [reference.case(content)], release

    look()


def test_a_signature_tells_how_operations_end_and_no_number():
    compiled = CompiledReference("offset", RELEASES[-1])
    entry = b"\x00\x00\x00\x03\x00\x00\x00\x64"
    some = [entry, b"\x00\x00\x00\x04" + entry[4:], entry + b"\x00", b""]
    longs = np.zeros(compiled.room(some), np.int64)
    same, other, damaged, empty = signatures(longs, compiled.write(some, longs)).tolist()
    assert same == other
    assert len({same, damaged, empty}) == 3
