"""The smoke test of a new implementation, of an index and of a log."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from thorough_params import thorough_except, thorough_param

from conformance.errors import ToolError
from conformance.experiments.smoke.checks import SmokeReport, smoke

# -- ``smoke``, which distinguishes a broken adapter from a wrong implementation -----------------------------------


ADAPTERS = Path(__file__).parents[1] / "adapters"
PYTHON_INDEX = "python_index"

SCENARIO = "offset: opens, appends, looks up and closes"
START = "answers start with protocol 1"
FILE = "offset: writes its bytes to the file at the given path"
LONGS = "offset: keeps integers of 64 bits"
REFUSAL = "offset: continues after an error"
CORRUPT = "offset: reports a corrupt file, and continues"
EVERY = "offset: answers every operation, or declares it unsupported"
KILLED = "offset: opens its file again after it was killed"
UNKNOWN = "declares an operation that it does not know as unsupported"
STOP = "ends on stop, and says nothing more"
EOF = "ends when its input ends"


def spec(name: str) -> str:
    program, *names = name.split("/")
    return f"exec:{shlex.join([sys.executable, str(ADAPTERS / f'{program}.py'), *names])}"


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
    report = smoke(spec(name))
    assert failed(report) == []
    assert report.sane
    assert report.exit_code == 0
    assert report.about == "line-index 1.0 (python)"
    assert {START, SCENARIO, FILE, LONGS, REFUSAL, CORRUPT, EVERY, KILLED, UNKNOWN, STOP, EOF} <= {
        c.name for c in report.checks
    }


BROKEN = [
    # adapter, the check that shows it, the request it is attributed to, what came, the hint
    ("bad/banner", START, '"start"', "Welcome to my index", "standard error"),
    ("bad/garbage", SCENARIO, '"lookup"', "more than one line", "standard error"),
    ("bad/chatty", SCENARIO, '"append"', "more than one line", "exactly one line"),
    ("bad/hangs", SCENARIO, '"lookup"', "waiting for a lock", "Flush standard output"),
    ("bad/late", SCENARIO, '"open"', "no reply within 1 s", "Flush standard output"),
    ("bad/dies", SCENARIO, '"append"', "panic: index out of range", "exit status"),
    ("bad/dies_on_close", SCENARIO, '"close"', "could not close", "exit status"),
    ("bad/segfaults", EVERY, '"truncate_to"', "SIGSEGV", "exit status"),
    ("bad/floats", SCENARIO, '"lookup"', "[7.0, 120.0]", "schemas/protocol.json"),
    ("bad/doubles", LONGS, '"state"', "9223372036854774784", "not as doubles"),
    ("bad/saturates", LONGS, '"state"', "9007199254740992", "your JSON library uses doubles: 9007199254740993 comes"),
    ("bad/exponents", LONGS, '"lookup"', "e+18", "your JSON library uses doubles, and writes them"),
    ("bad/null_delete", EVERY, '"delete"', "Expected `bool`, got `null`", "schemas/protocol.json"),
    ("bad/null_resize", EVERY, '"resize"', "Expected `bool`, got `null`", "schemas/protocol.json"),
    ("bad/talkative_flush", EVERY, '"flush"', "Expected `null`, got `bool`", "schemas/protocol.json"),
    ("bad/bare_state", EVERY, '"state"', "Object missing required field `full`", "schemas/protocol.json"),
    ("bad/corrupt_by_class", CORRUPT, '"sanity_check"', "unknown error kind 'CorruptIndexException'", "protocol.json"),
    ("bad/dies_of_corruption", CORRUPT, '"sanity_check"', "uncaught: corrupt index", "exit status"),
    ("bad/elsewhere", FILE, '"append"', '{"ok": null}', "use the path of open unchanged"),
    ("bad/unknown_kind", REFUSAL, '"append"', "IllegalArgumentException", "schemas/protocol.json"),
    ("bad/obliging", UNKNOWN, '"no_such_operation"', '{"ok": null}', '{"unsupported": true}'),
    ("bad/stays", STOP, '"stop"', "nothing in time", "end when stop is read"),
    ("bad/stays", EOF, "the end of its input", "nothing in time", "standard input ends"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "shown_by", "sent", "came", "hint"),
    [row if number % 3 == 0 else thorough_param(*row) for number, row in enumerate(BROKEN)],
    ids=lambda value: value[:20],
)
def test_a_broken_adapter_is_caught_with_the_request_that_broke_it(name, shown_by, sent, came, hint):
    report = smoke(spec(name), deadline=1.0)
    assert report.exit_code == 1
    assert failed(report)[0] == shown_by or name == "bad/stays"
    caught = check(report, shown_by)
    assert caught.verdict == "failed"
    assert sent in caught.sent
    assert came in caught.came
    assert hint in caught.hint


def test_a_silent_program_was_not_started():
    report = smoke(spec("bad/mute"), start_deadline=5.0)
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


VARIANTS = [
    # what is overridden, the check that shows it, the hint
    ("if op == 'open': reply = {'error': 'io', 'message': 'no'}", SCENARIO, "rejected although it is valid: io: no"),
    ("if op == 'state': reply = {'error': 'closed', 'message': ''}", SCENARIO, "or declares state as unsupported"),
    ("if op == 'no_such_operation': reply = {'error': 'io', 'message': ''}", UNKNOWN, "unsupported"),
    ("if op == 'stop': sys.exit(1)", STOP, "exit status 0"),
    ("if op == 'stop': print('bye')", STOP, "write logs to standard error"),
    ("if op == 'stop': reply = {'unsupported': True}", STOP, "to stop: end, with"),
    ("if op == 'append': reply = {'ok': None}; Path(self.index.path).write_bytes(bytes(80))", FILE, "all are zero"),
]


@pytest.mark.parametrize(
    ("override", "shown_by", "hint"),
    [row if number % 3 == 0 else thorough_param(*row) for number, row in enumerate(VARIANTS)],
    ids=[row[0][:24] for row in VARIANTS],
)
def test_a_check_has_a_hint(tmp_path, override, shown_by, hint):
    program = tmp_path / "variant.py"
    program.write_text(
        f"import sys\nfrom pathlib import Path\nsys.path.insert(0, {str(ADAPTERS)!r})\n"
        "from line_index import Adapter\n"
        "class Bad(Adapter):\n"
        "    kinds = ('offset',)\n"
        "    def reply_to(self, request):\n"
        "        reply, op = super().reply_to(request), request['op']\n"
        f"        {override}\n"
        "        return reply\n"
        "Bad().run()\n"
    )
    report = smoke(f"exec:{shlex.join([sys.executable, str(program)])}")
    assert shown_by in failed(report)
    assert hint in check(report, shown_by).hint


def test_an_implementation_without_errors_is_wrong_but_not_broken(tmp_path):
    program = tmp_path / "lenient.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(ADAPTERS)!r})\n"
        "from line_index import Adapter\n"
        "class Bad(Adapter):\n"
        "    kinds = ('offset',)\n"
        "    def reply_to(self, request):\n"
        "        reply = super().reply_to(request)\n"
        "        return reply if 'error' not in reply else {'ok': [0, 0] if request['op'] == 'entry' else None}\n"
        "Bad().run()\n"
    )
    report = smoke(f"exec:{shlex.join([sys.executable, str(program)])}")
    assert report.sane
    assert "accepted every invalid call" in check(report, REFUSAL).hint


@pytest.mark.parametrize(
    ("reply", "said"), [("{'ok': None}", "accepted it"), ("{'error': 'io'}", "reported io, not corrupt")]
)
def test_a_corrupt_file_that_is_not_reported_is_a_wrong_implementation(tmp_path, reply, said):
    program = tmp_path / "blind.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(ADAPTERS)!r})\n"
        "from line_index import Adapter\n"
        "class Bad(Adapter):\n"
        "    kinds = ('offset',)\n"
        "    def reply_to(self, request):\n"
        "        reply = super().reply_to(request)\n"
        f"        return {reply} if reply.get('error') == 'corrupt' else reply\n"
        "Bad().run()\n"
    )
    report = smoke(f"exec:{shlex.join([sys.executable, str(program)])}")
    assert report.sane
    assert check(report, CORRUPT).verdict == "not-run"
    assert said in check(report, CORRUPT).hint


def test_a_report_reads_well_and_is_a_document():
    report = smoke(spec("bad/obliging"))
    text = "\n".join(report.lines())
    assert f"ok      {SCENARIO}\n" in text
    assert f'FAILED  {UNKNOWN}\n          sent: {{"op": "no_such_operation"}}\n          came: {{"ok": null}}\n' in text
    document = report.to_json()
    assert document["verdict"] == "broken"
    assert {"name", "verdict", "sent", "came", "hint"} == set(document["checks"][0])


@pytest.mark.thorough
def test_the_release_stands_in_the_command():
    report = smoke(f"{spec('line_index')} --release {{release}}", release="3.9.2")
    assert report.sane
    assert smoke(f"{spec('line_index')} --release {{release}}", release="1.0.0").exit_code == 1


def with_capabilities(tmp_path, capabilities: list[str], answer: str = "") -> SmokeReport:
    """Smoke an offset index that preallocates its file, and declares these capabilities."""
    program = tmp_path / "declaring.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(ADAPTERS)!r})\n"
        "from line_index import Adapter\n"
        "class Declaring(Adapter):\n"
        "    kinds = ('offset',)\n"
        "    def reply_to(self, request):\n"
        "        reply, op = super().reply_to(request), request['op']\n"
        f"        if op == 'start': reply['ok']['index_capabilities'] = {capabilities!r}\n"
        f"        {answer or 'pass'}\n"
        "        return reply\n"
        "Declaring().run()\n"
    )
    return smoke(f"exec:{shlex.join([sys.executable, str(program)])}")


DECLARED = "offset: does what it declares"


def test_what_an_index_does_and_does_not_declare_is_reported(tmp_path):
    report = with_capabilities(tmp_path, [])
    assert failed(report) == [DECLARED]
    hint = check(report, DECLARED).hint
    assert "the new file has 1200 bytes, as many as max_index_size allows" in hint
    assert "Declare preallocation" in hint
    report = with_capabilities(tmp_path, ["preallocation"])
    assert failed(report) == []
    assert check(report, DECLARED).verdict == "passed"
    assert "It has delete, which is not compared without delete." in check(report, DECLARED).hint


def test_what_an_index_declares_and_does_not_do_is_reported(tmp_path):
    report = with_capabilities(
        tmp_path, ["preallocation", "delete"], "reply = {'unsupported': True} if op == 'delete' else reply"
    )
    assert failed(report) == [DECLARED]
    assert check(report, DECLARED).hint == "It declares delete, and answers delete with unsupported."
    report = smoke(f"{spec('growing_index')} --silent")
    assert "does not preallocate its file" in check(report, DECLARED).hint


# -- Smoke checks of a log over pipes: a correct adapter passes, each broken one fails the matching check ----------


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
BROKEN_LOGS = {
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
@pytest.mark.parametrize("broken", thorough_except(list(BROKEN_LOGS)[::3], BROKEN_LOGS))
def test_a_broken_adapter_fails_where_it_is_broken(broken):
    method, name, said = BROKEN_LOGS[broken]
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
