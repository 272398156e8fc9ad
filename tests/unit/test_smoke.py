"""The smoke test of a new implementation, of an index and of a log."""

from __future__ import annotations

import pytest
from line_programs import (
    ADAPTERS,
    CORRUPT,
    EOF,
    EVERY,
    FILE,
    KILLED,
    LONGS,
    REFUSAL,
    SCENARIO,
    START,
    STOP,
    UNKNOWN,
    command,
    spec,
    variant,
    written,
)

from conformance.errors import ToolError
from conformance.experiments.smoke.checks import SmokeReport, smoke

# -- ``smoke``, which distinguishes a broken adapter from a wrong implementation -----------------------------------


PYTHON_INDEX = "python_index"


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(ADAPTERS))


def failed(report: SmokeReport) -> list[str]:
    return [check.name for check in report.checks if check.verdict == "failed"]


def check(report: SmokeReport, name: str):
    return next(check for check in report.checks if check.name == name)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["line_index", "odd/loud", "odd/reticent", "odd/discreet"])
def test_a_sane_adapter_passes(name):
    report = smoke(spec(command(name)))
    assert failed(report) == []
    assert report.sane
    assert report.exit_code == 0
    assert report.about == "line-index 1.0 (python)"
    assert {START, SCENARIO, FILE, LONGS, REFUSAL, CORRUPT, EVERY, KILLED, UNKNOWN, STOP, EOF} <= {
        c.name for c in report.checks
    }


def test_a_silent_program_was_not_started():
    report = smoke(spec(command("bad/mute")), start_deadline=5.0)
    assert report.exit_code == 2
    assert not report.sane
    assert [c.name for c in report.checks] == [START]
    assert report.checks[0].came.endswith("not telling")


@pytest.mark.parametrize("text", ["exec:/nowhere/my-index", "nonsense", "python:no_such_module:f", "broker"])
def test_an_unusable_implementation_is_one_clear_line(text):
    with pytest.raises(ToolError) as error:
        smoke(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("factory", ["open_index", "open_plain", "open_forgetful"])
def test_python_classes_are_checked_too(factory):
    report = smoke(f"python:{PYTHON_INDEX}:{factory}")
    assert failed(report) == []
    assert check(report, LONGS).verdict == "passed"


def test_a_wrong_answer_is_not_the_adapters_fault():
    report = smoke(f"python:{PYTHON_INDEX}:open_off_by_one")
    assert report.exit_code == 0


@pytest.mark.parametrize(
    ("factory", "came"),
    [("open_crashing", "KeyError: 15"), ("open_vague", "returned [7.0, 120.0]")],
)
def test_a_bug_in_python_is(factory, came):
    report = smoke(f"python:{PYTHON_INDEX}:{factory}")
    assert failed(report) == [EVERY]
    assert came in check(report, EVERY).came
    assert "conformance/implementations" not in check(report, EVERY).came


def test_a_factory_without_any_kind_is_broken():
    report = smoke(f"python:{PYTHON_INDEX}:open_nothing")
    assert failed(report) == ["has at least one kind of index, or a log"]


def test_an_implementation_without_errors_is_wrong_but_not_broken():
    report = smoke(spec(variant("if 'error' in reply: reply = {'ok': [0, 0] if op == 'entry' else None}")))
    assert report.sane
    assert "accepted every invalid call" in check(report, REFUSAL).hint


@pytest.mark.parametrize(
    ("reply", "said"), [("{'ok': None}", "accepted it"), ("{'error': 'io'}", "reported io, not corrupt")]
)
def test_a_corrupt_file_that_is_not_reported_is_a_wrong_implementation(reply, said):
    report = smoke(spec(variant(f"if reply.get('error') == 'corrupt': reply = {reply}")))
    assert report.sane
    assert check(report, CORRUPT).verdict == "not-run"
    assert said in check(report, CORRUPT).hint


def test_a_report_reads_well_and_is_a_document():
    report = smoke(spec(command("bad/obliging")))
    text = "\n".join(report.lines())
    assert f"ok      {SCENARIO}\n" in text
    assert f'FAILED  {UNKNOWN}\n          sent: {{"op": "no_such_operation"}}\n          came: {{"ok": null}}\n' in text
    document = report.to_json()
    assert document["verdict"] == "broken"
    assert {"name", "verdict", "sent", "came", "hint"} == set(document["checks"][0])


@pytest.mark.thorough
def test_the_release_stands_in_the_command():
    report = smoke(f"{spec(command('line_index'))} --release {{release}}", release="3.9.2")
    assert report.sane
    assert smoke(f"{spec(command('line_index'))} --release {{release}}", release="1.0.0").exit_code == 1


def with_capabilities(capabilities: list[str], answer: str = "reply") -> SmokeReport:
    """Smoke an offset index that preallocates its file, and declares these capabilities."""
    declared = f"reply['ok']['index_capabilities'] = {capabilities!r}"
    return smoke(spec(variant(f"if op == 'start': {declared}\n    reply = {answer}")))


DECLARED = "offset: does what it declares"


def test_what_an_index_does_and_does_not_declare_is_reported():
    report = with_capabilities([])
    assert failed(report) == [DECLARED]
    hint = check(report, DECLARED).hint
    assert "the new file has 1200 bytes, as many as max_index_size allows" in hint
    assert "Declare preallocation" in hint
    report = with_capabilities(["preallocation"])
    assert failed(report) == []
    assert check(report, DECLARED).verdict == "passed"
    assert "It has delete, which is not compared without delete." in check(report, DECLARED).hint


def test_what_an_index_declares_and_does_not_do_is_reported():
    report = with_capabilities(["preallocation", "delete"], "{'unsupported': True} if op == 'delete' else reply")
    assert failed(report) == [DECLARED]
    assert check(report, DECLARED).hint == "It declares delete, and answers delete with unsupported."
    report = smoke(f"{spec(command('growing_index'))} --silent")
    assert "does not preallocate its file" in check(report, DECLARED).hint


# -- Smoke checks of a log over pipes: a correct adapter passes, each broken one fails the matching check ----------


def test_a_sane_log_passes_every_check():
    report = smoke(spec([*command("line_log"), "{release}"]))
    assert report.sane, "\n".join(report.lines())
    assert {check.verdict for check in report.checks} == {"passed"}
    assert sum(check.name.startswith("log: ") for check in report.checks) == 8


def test_a_log_that_lacks_requests_is_sane():
    code = "class Less(Adapter):\n  do_retention = do_read = do_expire_producers = None\nLess('4.4.0').run()"
    report = smoke(spec(written(code)))
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
    report = smoke(spec(written(f"{NO_TIMES}\nTimeless('4.4.0').run()")))
    assert report.sane, "\n".join(report.lines())
    assert {check.verdict for check in report.checks} == {"passed"}


@pytest.mark.thorough
def test_a_log_without_lookups_by_time_with_doubles_fails():
    code = "class D(Timeless):\n  def do_truncate_fully(self, offset): super().do_truncate_fully(int(float(offset)))\n"
    report = smoke(spec(written(f"{NO_TIMES}\n{code}D('4.4.0').run()")))
    (failed,) = [check for check in report.checks if check.verdict == "failed"]
    assert failed.name == "log: keeps integers of 64 bits"
    assert "It has no lookups by time (time_lookups is not declared)" in failed.hint


def test_a_log_only_in_protocol_1_is_reported_as_such():
    code = (
        "class Old(Adapter):\n"
        "  def do_start(self, protocol):\n"
        "    return super().do_start(protocol) | ({} if protocol == 1 else {'kinds': ['offset']})\n"
        "Old('4.4.0').run()"
    )
    report = smoke(spec(written(code)))
    failed = [check.name for check in report.checks if check.verdict == "failed"]
    assert failed == ["log: answers start with protocol 2"]
