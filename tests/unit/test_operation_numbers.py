"""Operations have numbers on their way to Java: both sides have to mean the same by each."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from conformance.implementations.jvm import index, log, script, segment
from conformance.operations import ERROR_KINDS, KINDS, SIGNATURES
from conformance.operations.log import LOG_SIGNATURES
from conformance.operations.segment import SEGMENT_SIGNATURES

CONSTANT = re.compile(r"static final int ([A-Z_]+) = (\d+);")
FILES = {"open": index._OPEN, "rename": index._RENAME}
SCRIPT = {"overwrite": script._OVERWRITE, "list": script._LIST}
SAME = {
    "bulk_maybe_append": "BULK_APPEND",
    "become_inactive": "INACTIVE",
    "truncate_segment": "TRUNCATE_TO",
    "truncate_log": "TRUNCATE_TO",
    "check_segment": "SANITY_CHECK",
    "first_batch_timestamp": "FIRST_TIMESTAMP",
    "apply_retention": "RETAIN",
}
"""Operations that Java calls by another word."""
TABLES = [
    pytest.param("IndexAdapter", index.CODES, SIGNATURES, id="index"),
    pytest.param("IndexDriver", FILES, SIGNATURES, id="files"),
    pytest.param("Follower", SCRIPT, SCRIPT, id="script"),
    pytest.param("SegmentDriver", segment._CODES, SEGMENT_SIGNATURES, id="segment"),
    pytest.param("LogDriver", log._CODES, LOG_SIGNATURES, id="log"),
]


def constants(java_class):
    source = files("conformance") / "implementations/jvm/java/conformance" / f"{java_class}.java"
    return {name: int(number) for name, number in CONSTANT.findall(source.read_text("utf-8"))}


@pytest.mark.parametrize(("java_class", "numbers", "operations"), TABLES)
def test_java_knows_every_number_by_the_same_word(java_class, numbers, operations):
    known = {number: name for name, number in constants(java_class).items()}
    assert set(numbers.values()) <= set(known)
    for name, number in numbers.items():
        assert name in operations
        words = SAME.get(name, name.upper())
        assert known[number] in words, f"{name} is {number}, which Java calls {known[number]}"


@pytest.mark.parametrize(("java_class", "numbers", "operations"), TABLES)
def test_java_has_no_number_that_is_never_sent(java_class, numbers, operations):
    del operations
    settings = {"NOWHERE", "MAPPING_STEPS_BETWEEN_COLLECTIONS"}
    assert {number for name, number in constants(java_class).items() if name not in settings} == set(numbers.values())


def test_the_kinds_and_the_errors_have_numbers_by_their_place():
    """Java switches on the place of a kind, and looks up an error by the number that Python hands it at the start."""
    source = files("conformance") / "implementations/jvm/java/conformance/IndexDriver.java"
    cases = dict(re.findall(r"case (\d) -> new (\w+)IndexAdapter", source.read_text("utf-8")))
    assert [cases.get(str(number), "Transaction").lower() for number in range(len(KINDS))] == list(KINDS)
    assert len(set(ERROR_KINDS)) == len(ERROR_KINDS)
