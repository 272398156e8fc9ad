"""Traces: their names, their format, and errors when they are read."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.errors import ToolError
from conformance.lockstep import Divergence
from conformance.lockstep.divergence import failure_json, plain
from conformance.operations import SIGNATURES, Operation
from conformance.operations.op import MANY
from conformance.operations.trace import Trace, TraceError
from conformance.operations.trace_document import check_document, schema, schema_text
from conformance.operations.trace_file import load_traces, save_traces
from conformance.operations.trace_steps import StepError, check_steps, is_inside
from conformance.runs.replay import find_trace
from kidx.java_values import INT_MAX, LONG_MAX, LONG_MIN

OPEN = Operation("open", ("offset", "0.index", 0, 64, True))
DIFFERENCE = Divergence(
    1, Operation("lookup", (9,)), "jvm 3.9.2", "3.9.2", "kidx", ("outcome", "bytes"), (None, (7, 1)), b"\x01", ("OI-7",)
)
SCHEMA = json.loads((files("conformance") / "schemas/trace.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)  # once: to check the schema takes longer than to check a trace


def trace(*operations, **members):
    return Trace("offset", "3.9.2", (OPEN, *operations), **members)


@pytest.mark.parametrize(
    "one",
    [
        trace(),
        trace(
            Operation("lookup", (9,)), failure=failure_json(DIFFERENCE), title="it's “wrong”\n", provenance={"seed": 1}
        ),
        Trace("transaction", "4.4.0", (Operation("open", ("transaction", "0.txnindex", 0, 0, True)),)),
    ],
)
def test_a_trace_is_read_as_it_was_written(tmp_path, one):
    path = one.save(tmp_path / "new")
    assert path.name == f"{one.machine}-{one.id}.json"
    assert Trace.load(path) == one
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    VALIDATOR.validate(json.loads(path.read_text("utf-8")))


def test_the_schema_matches_the_structures():
    """``python -m conformance.operations.trace_document`` writes it."""
    assert (files("conformance") / "schemas/trace.json").read_text("utf-8") == schema_text(schema())


@pytest.mark.parametrize("file", list((files("conformance") / "traces").iterdir()), ids=lambda file: file.name)
def test_regression_traces_are_valid(file):
    for line in file.read_text("utf-8").splitlines():
        VALIDATOR.validate(json.loads(line))


@pytest.mark.parametrize(
    ("member", "value", "said"),
    [
        ("machine", "", "$.machine"),
        ("release", "4.4", "$.release"),
        ("steps", [], "$.steps"),
        ("steps", [{"op": 1}], "$.steps[0].op"),
        ("steps", [7], "$.steps[0]"),
        ("failure", {"step": -1}, "$.failure.step"),
        ("provenance", [], "$.provenance"),
        ("title", None, "$.title"),
    ],
)
def test_an_invalid_trace_is_rejected_by_the_schema_and_by_the_reader(tmp_path, member, value, said):
    document = trace().to_json() | {member: value}
    (tmp_path / "wrong.json").write_text(json.dumps(document), "utf-8")
    with pytest.raises(TraceError) as refusal:
        Trace.load(tmp_path / "wrong.json")
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert not VALIDATOR.is_valid(document)


def test_every_wrong_member_is_named():
    document = trace().to_json() | {"machine": "", "release": "4.4"}
    del document["format"]
    with pytest.raises(ValueError, match=r"^format is missing; machine is ''.*; release is '4.4'"):
        check_document(document)


def test_a_trace_of_version_1_is_read(tmp_path):
    one = trace(Operation("lookup", (9,)), failure=failure_json(DIFFERENCE), provenance={"seed": 1})
    document = one.to_json()
    old = document | {"version": 1, "made_by": document["provenance"], "failure": dict(document["failure"])}
    old["failure"]["party"] = old["failure"].pop("participant")
    del old["provenance"]
    (tmp_path / "old.json").write_text(json.dumps(old), "utf-8")
    assert Trace.load(tmp_path / "old.json") == one


def test_equal_findings_do_not_race(tmp_path, monkeypatch):
    """Between writing and renaming another process finds the same: both end well, and the file is whole."""
    one = trace(Operation("lookup", (9,)), provenance={"seed": 1})
    other = trace(Operation("lookup", (9,)), provenance={"seed": 2})
    rename = Path.replace

    def after_the_other(self, target):
        monkeypatch.setattr(Path, "replace", rename)
        other.save(tmp_path)
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", after_the_other)
    path = one.save(tmp_path)
    assert Trace.load(path) == one
    assert list(tmp_path.iterdir()) == [path]


def test_many_threads_find_the_same(tmp_path):
    one = trace(*[Operation("lookup", (number,)) for number in range(300)])
    for _ in range(10):
        with ThreadPoolExecutor(8) as pool:
            paths = {future.result() for future in [pool.submit(one.save, tmp_path) for _ in range(8)]}
        (path,) = paths
        assert Trace.load(path) == one
        assert list(tmp_path.iterdir()) == [path]
        path.unlink()


def test_an_existing_trace_is_retained(tmp_path):
    """Another trace of the same steps replaces it, because it may have been found differently."""
    one = trace(Operation("lookup", (9,)))
    path = one.save(tmp_path)
    before = path.stat()
    one.save(tmp_path)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert trace(Operation("lookup", (9,)), title="other").save(tmp_path) == path
    assert Trace.load(path).title == "other"


def test_a_trace_that_cannot_be_renamed_leaves_no_file(tmp_path):
    one = trace()
    (tmp_path / f"{one.machine}-{one.id}.json").mkdir()
    with pytest.raises(ToolError, match="cannot write"):
        one.save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


def test_every_step_is_a_line(tmp_path):
    text = trace(Operation("lookup", (9,)), Operation("close")).save(tmp_path).read_text("utf-8")
    assert '    {"op": "lookup", "target": 9},\n    {"op": "close"}\n' in text


def test_the_id_depends_on_machine_release_and_steps_only():
    one = trace(Operation("lookup", (9,)))
    assert one.id == trace(Operation("lookup", (9,)), title="other", failure={"step": 1}, provenance={"seed": 7}).id
    assert len({one.id, trace(Operation("lookup", (8,))).id, Trace("offset", "4.4.0", one.operations).id}) == 3
    assert len(one.id) == 12
    assert int(one.id, 16) >= 0


def test_a_trace_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(Exception, match=r"^cannot write the trace .*: "):
        trace().save(tmp_path / "file")


def test_a_failure_is_json():
    failure = failure_json(DIFFERENCE)
    assert failure["expected"] == [None, [7, 1]]
    assert failure["actual"] == "01"
    assert json.loads(json.dumps(failure)) == failure
    assert plain(bytearray(b"\xff\x00")) == "ff00"
    assert plain(((1, b"\x02"), None, "x")) == [[1, "02"], None, "x"]


# -- finding ----------------------------------------------------------------------------------------------------------


def test_a_trace_is_found_by_path_by_id_and_by_name(tmp_path):
    one = trace()
    path = one.save(tmp_path / "deep" / "traces")
    for name in (str(path), one.id, path.stem):
        assert find_trace(name, [tmp_path / "missing", tmp_path]) == one


def test_a_trace_is_found_among_others_in_a_file(tmp_path):
    first, second = trace(), Trace("offset", "4.4.0", trace().operations)
    file = tmp_path / "deep" / "offset.ndjson"
    file.parent.mkdir()
    save_traces(file, [second, first, second])
    assert sorted([first, second], key=lambda one: one.id) == list(load_traces(file))
    for name in (first.id, f"{first.machine}-{first.id}", f"{file}#{first.id}"):
        assert find_trace(name, [tmp_path]) == first
    with pytest.raises(TraceError, match="has 2 traces: name one"):
        find_trace(str(file), [])
    with pytest.raises(TraceError, match="has no trace 'e'"):
        find_trace(f"{file}#e", [])
    save_traces(file, [second])
    assert find_trace(str(file), []) == second
    with pytest.raises(TraceError, match=r"cannot read the traces .*No such file"):
        find_trace(f"{tmp_path}/none.ndjson#{first.id}", [])
    file.write_text('{"id": "e"}\n{', "utf-8")
    with pytest.raises(TraceError, match="is not JSON"):
        find_trace(f"{file}#f", [])
    with pytest.raises(TraceError, match=r"ndjson:1 is not a trace: its format"):
        find_trace(f"{file}#e", [])


@pytest.mark.parametrize("name", ["", "e", "*", "[", "offset", "/"])
def test_a_part_of_an_id_is_no_id(tmp_path, name):
    trace().save(tmp_path)
    with pytest.raises(TraceError):
        find_trace(name, [tmp_path])


# -- steps ------------------------------------------------------------------------------------------------------------

INDEX_KINDS = {"offset": ".index", "time": ".timeindex", "transaction": ".txnindex"}
EXTREME = {
    "content": "00ff",
    "path": "missing/0.index",
    "writable": False,
    "skip_full_check": True,
    "count": 0,
    "byte": 255,
    "bit": 7,
}
KIND_OF = {
    **dict.fromkeys(("maybe_append", "bulk_maybe_append"), "time"),
    **dict.fromkeys(("append_aborted", "collect_aborted", "all_aborted"), "transaction"),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_every_operation_of_the_machines_is_accepted(name):
    kind = KIND_OF.get(name, "offset")
    arguments = tuple(kind if a == "kind" else EXTREME.get(a, 1) for a in SIGNATURES[name])
    opening = Operation("open", (kind, "0.index", LONG_MIN, -1, True))
    check_steps(kind, [opening, Operation(name, arguments)])


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        (Operation("lookup", (LONG_MAX + 1,)), "target is 9223372036854775808, not an integer of 64 bits"),
        (Operation("lookup", (True,)), "target is True"),
        (Operation("lookup", (1.0,)), "target is 1.0"),
        (Operation("lookup", (None,)), "target is None"),
        (Operation("append", (1, INT_MAX + 1)), "position is 2147483648, not an integer of 32 bits"),
        (Operation("entry", (INT_MAX + 1,)), "n is"),
        (Operation("resize", (INT_MAX + 1,)), "size is"),
        (Operation("bulk_append", (0, 0, 1, 1, MANY + 1)), "count is"),
        (Operation("bulk_append", (0, 0, 1, 1, -1)), "count is"),
        (Operation("bulk_append", (0, 0, 1, INT_MAX, 3)), "the last position is"),
        (Operation("bulk_append", (LONG_MAX, 0, 1, 0, 2)), "the last offset is"),
        (Operation("maybe_append", (1, 1, True)), "the offset machine has no such operation"),
        (Operation("all_aborted"), "the offset machine has no such operation"),
        (Operation("crash_log"), "the offset machine has no such operation"),
        (Operation("flip_bit", (0, 8)), "bit is 8, not a bit from 0 to 7"),
        (Operation("pad_file", (1, 256)), "byte is 256"),
        (Operation("pad_file", (1 << 40, 0)), "count is"),
        (Operation("cut_file", (-1,)), "length is -1"),
        (Operation("swap_ranges", (0, 1, 0)), "size is 0"),
        (Operation("rename", ("../0.index",)), "not a path inside"),
        (OPEN._replace(args=("offset", "0.index", 0, 64, 1)), "writable is 1, not true or false"),
        (OPEN._replace(args=("other", "0.index", 0, 64, True)), "kind is 'other'"),
        (OPEN._replace(args=("time", "0.index", 0, 64, True)), "kind is 'time'; a trace of the offset machine"),
    ],
)
def test_a_step_that_no_machine_records_is_rejected(operation, said):
    with pytest.raises(StepError, match="step 2") as refusal:
        check_steps("offset", [OPEN, operation])
    assert said in str(refusal.value)


def test_the_first_step_opens_a_file():
    with pytest.raises(StepError, match="the first step of a trace must open"):
        check_steps("offset", [Operation("remove_file"), OPEN])
    check_steps("offset", [])


@pytest.mark.parametrize("path", ["0.index", "missing/0.index", "0.index.deleted", "..0", "a/b/c"])
def test_a_path_inside(path):
    assert is_inside(path)


@pytest.mark.parametrize("path", ["", ".", "/", "/0.index", "..", "../0.index", "a/../../b", "a\0b", 7, None])
def test_a_path_outside(path):
    assert not is_inside(path)


@pytest.mark.parametrize(
    "operation",
    [
        Operation("damage_log_file", ("../../0.log", "cut_file", [0])),
        Operation("rename_segment", ("", "/../../x")),
        Operation("open_log", ({"deep": ["/etc"]}, 0, 0, True, 0)),
    ],
)
def test_file_names_of_other_machines_do_not_leave_the_directory_either(operation):
    with pytest.raises(StepError, match="leads out of the directory"):
        check_steps("log", [operation])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=5,
)


@given(
    document=st.fixed_dictionaries(
        {"format": st.just("kidx-trace"), "version": st.just(2)},
        optional={
            "machine": st.sampled_from(["offset", "time"]) | JSON,
            "release": st.just("4.4.0") | JSON,
            "steps": st.lists(
                JSON
                | st.builds(
                    lambda name, values: {"op": name, **dict(zip(SIGNATURES[name], values, strict=False))},
                    st.sampled_from(sorted(SIGNATURES)),
                    st.lists(JSON, min_size=5, max_size=5),
                ),
                max_size=3,
            ),
            "failure": JSON,
            "title": JSON,
            "provenance": JSON,
        },
    )
)
def test_any_file_is_a_trace_or_rejected(tmp_path_factory, document):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(document), "utf-8")
    try:
        Trace.load(path)
    except TraceError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("damage", [("swap_ranges", [0, 1, 0]), ("flip_bit", [0, 9]), ("cut_file", []), ("", [])])
def test_corruptions_of_other_machines_have_the_arguments_of_an_index_file(damage):
    step = Operation("damage_log_file", ("00000000000000000000.index", *damage))
    with pytest.raises(StepError, match="step 1, 'damage_log_file': it corrupts a file by an unknown"):
        check_steps("log", [step])


@pytest.mark.parametrize(
    ("machine", "operation", "said"),
    [
        ("log", Operation("damage_log_file", ("00000000000000000000.index", [], [])), "how is [], not a text"),
        ("log", Operation("list_offsets", ([1, 2.5],)), "targets is [1, 2.5], not a list of integers of 64 bits"),
        ("segment", Operation("read_segment", (0, 1 << 31, 0, True)), "max_size is 2147483648, not an integer of 32"),
        ("cleaned", Operation("crash_cleaning", (0, 1, 1, 0, "end", 1)), "place is 'end', not one of chunk, deletion"),
    ],
)
def test_arguments_of_other_machines_are_of_their_types(machine, operation, said):
    with pytest.raises(StepError, match=re.escape(f"step 1, {operation.name!r}: {said}")):
        check_steps(machine, [operation])
