"""Names of operations that Java receives when it is connected: it executes each of them."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from conformance.implementations.jvm import index
from conformance.implementations.jvm.cache import JvmCache
from conformance.implementations.jvm.log import JvmLog
from conformance.implementations.jvm.segment import JvmSegment
from conformance.implementations.jvm.tiered import JvmTiered
from conformance.operations import ERROR_KINDS, KINDS

JAVA = files("conformance") / "implementations/jvm/java/conformance"
CASE = re.compile(r'case ("[^>]*") ->|operation\.equals\(("\w+")\)')
LEVELS = [
    pytest.param(index.OPERATIONS, r"Index(Driver|Adapter)", id="index"),
    pytest.param(JvmSegment.operations, r"Segment(Driver|Adapter)", id="segment"),
    pytest.param(JvmLog.operations, "LogDriver", id="log"),
    pytest.param(JvmCache.operations, "CacheDriver", id="cache"),
    pytest.param(JvmTiered.operations, "TieredDriver", id="tiered"),
]


@pytest.mark.parametrize(("operations", "parts"), LEVELS)
def test_java_performs_every_operation_and_no_other(operations, parts):
    sources = [each.read_text("utf-8") for each in JAVA.iterdir() if re.search(parts, each.name)]
    cases = [case or equals for source in sources for case, equals in CASE.findall(source)]
    assert set(re.findall(r'"(\w+)"', " ".join(cases))) == set(operations)


def test_the_kinds_and_the_errors_have_numbers_by_their_place():
    """Java switches on the place of a kind, and looks up an error by the number that Python hands it at the start."""
    source = (JAVA / "IndexDriver.java").read_text("utf-8")
    cases = dict(re.findall(r"case (\d) -> new (\w+)IndexAdapter", source))
    assert [cases.get(str(number), "Transaction").lower() for number in range(len(KINDS))] == list(KINDS)
    assert len(set(ERROR_KINDS)) == len(ERROR_KINDS)
