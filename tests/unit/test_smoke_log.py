"""Smoke checks of a log over pipes: a correct adapter passes, each broken one fails the matching check."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from thorough_params import thorough_except

from conformance.experiments.smoke.checks import smoke

ADAPTERS = Path(__file__).parents[1] / "adapters"


def implementation(code: str) -> str:
    head = f"import sys; sys.path.insert(0, {str(ADAPTERS)!r})\nfrom line_log import *\n"
    return f"exec:{shlex.join([sys.executable, '-c', head + code])}"


def test_a_sane_log_passes_every_check():
    report = smoke(f"exec:{sys.executable} {ADAPTERS / 'line_log.py'} {{release}}")
    assert report.sane, "\n".join(report.lines())
    assert {check.verdict for check in report.checks} == {"passed"}
    assert sum(check.name.startswith("log: ") for check in report.checks) == 8


def test_a_log_that_lacks_requests_is_sane():
    code = "class Less(Adapter):\n  do_retention = do_read = do_expire_producers = None\nLess('4.4.0').run()"
    report = smoke(implementation(code))
    assert report.sane, "\n".join(report.lines())


NO_TIMES = """
class Timeless(Adapter):
  def do_start(self, protocol):
    about = super().do_start(protocol)
    return {**about, "capabilities": [name for name in about["capabilities"] if name != "time_lookups"]}
  def do_list_offsets(self, targets):
    return [[-1, self.log.end_offset, -1] for target in targets]
"""


def test_numbers_of_a_log_without_lookups_by_time_are_checked_by_its_end():
    report = smoke(implementation(f"{NO_TIMES}\nTimeless('4.4.0').run()"))
    assert report.sane, "\n".join(report.lines())
    assert {check.verdict for check in report.checks} == {"passed"}


@pytest.mark.thorough
def test_a_log_without_lookups_by_time_with_doubles_fails():
    code = "class D(Timeless):\n  def do_truncate_fully(self, offset): super().do_truncate_fully(int(float(offset)))\n"
    report = smoke(implementation(f"{NO_TIMES}\n{code}D('4.4.0').run()"))
    (failed,) = [check for check in report.checks if check.verdict == "failed"]
    assert failed.name == "log: keeps integers of 64 bits"
    assert "It has no lookups by time (time_lookups is not declared)" in failed.hint


NO_GOOD = """
  def reply_to(self, op, request):
    reply = super().reply_to(op, request)
    return {"error": "no_good"} if "error" in reply else reply
"""
BROKEN = {
    "doubles": (
        "def do_list_offsets(self, targets): return [[int(float(1 << 53)), 0, 0]]",
        "keeps integers of 64 bits",
        "uses doubles",
    ),
    "elsewhere": (
        "def do_open_log(self, path, **rest): super().do_open_log(path + '-0', **rest)",
        "writes its batches to the files in the given directory",
        "contains nothing",
    ),
    "a state of another type": (
        "def do_state(self): return {**super().do_state(), 'end_offset': 1.0}",
        "opens, appends, looks up and closes",
        "Expected `int`, got `float`",
    ),
    "rejects valid requests": (
        "def do_append(self, **_): raise OutOfRangeError('no')",
        "opens, appends, looks up and closes",
        "was rejected although it is valid",
    ),
    "an answer of another type": (
        "def do_retention(self): return True",
        "answers every request, or declares it unsupported",
        "Expected `int`, got `bool`",
    ),
    "an unknown error kind": (
        NO_GOOD,
        "continues after an error",
        "unknown error kind 'no_good'",
    ),
    "dies of what it does not know": (
        "def reply_to(self, op, request):\n    getattr(self, f'do_{op}')\n    return super().reply_to(op, request)",
        "declares an operation that it does not know as unsupported",
        "exit status 1",
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("broken", thorough_except(list(BROKEN)[::3], BROKEN))
def test_a_broken_adapter_fails_where_it_is_broken(broken):
    method, name, said = BROKEN[broken]
    report = smoke(implementation(f"class Bad(Adapter):\n  {method.strip()}\nBad('4.4.0').run()"))
    assert report.exit_code == 1
    failed = {check.name: check for check in report.checks if check.verdict == "failed"}
    assert f"log: {name}" in failed, "\n".join(report.lines())
    assert said in failed[f"log: {name}"].hint + failed[f"log: {name}"].came


def test_a_log_only_in_protocol_1_is_reported_as_such():
    code = (
        "class Old(Adapter):\n"
        "  def do_start(self, protocol):\n"
        "    return super().do_start(protocol) | ({} if protocol == 1 else {'kinds': ['offset']})\n"
        "Old('4.4.0').run()"
    )
    report = smoke(implementation(code))
    failed = [check.name for check in report.checks if check.verdict == "failed"]
    assert failed == ["log: answers start with protocol 2"]
