"""One stream of events, and what the NDJSON writer makes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import jsonschema
import pytest

from conformance.errors import ToolError
from conformance.events import (
    Diverged,
    Event,
    Measured,
    Progressed,
    Replayed,
    Result,
    RunFinished,
    RunStarted,
    event_from_json,
)
from conformance.operations.trace_document import schema_text
from conformance.report.schema import schema
from conformance.report.stream import NAME, NdjsonWriter

STARTED = RunStarted(
    ("3.9.2", "4.4.0"), ("jvm",), ("offset",), "ci", "observed", 7, {"kidx": "1"}, "2025-01-01T00:00:00"
)
VERDICTS = {"OI-1": "conforms", "OI-2": "not-run", "OI-3": "conforms", "OI-4a": "unsupported", "OI-5": "diverges"}
RESULT = Result("offset", "jvm", "3.9.2", 10, 200, 1.5, 1, {"OI-1": 3, "OI-2": 0}, VERDICTS)
PARTIES = {"participant": "jvm 3.9.2", "release": "3.9.2", "against": "kidx"}
FAILURE = PARTIES | {"step": 0, "aspects": ["state"], "expected": None, "actual": 1, "clauses": ["OI-1"]}
SIGHT = {
    "signature": "close: state",
    "clause": "",
    "clauses": [],
    "occurrences": 2,
    "trace": "t",
    "reason": "one cause",
}
DIVERGED = Diverged(
    "offset",
    FAILURE,
    (("OI-1", "MUST", "It holds."),),
    ("close()",),
    "traces/t.json",
    "conformance replay t",
    related=(SIGHT,),
)
EVENTS = [
    STARTED,
    Replayed("offset", ("1b0d2d4362f6",), ()),
    Progressed("offset", 10, 200, 0.5),
    DIVERGED,
    RESULT,
    Measured("mutants", "off by one", True, {"examples to kill": 12}),
    RunFinished("diverges", 200, 1.5),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_an_object_with_the_name_of_its_class(event):
    document = json.loads(json.dumps(event.to_json()))
    assert document["event"] == type(event).__name__
    assert set(document) - {"event"} == set(vars(event))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_read_as_it_was_written(event):
    assert event_from_json(json.loads(json.dumps(event.to_json()))) == event


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "is not an event"),
        ({"event": ["Result"]}, "is not an event"),
        (RESULT.to_json() | {"steps": "many"}, "$.steps"),
        (RESULT.to_json() | {"clauses": [1]}, "$.clauses"),
        (DIVERGED.to_json() | {"steps": [1]}, "$.steps[0]"),
        *((DIVERGED.to_json() | {"related": [sight]}, "$.related[0]") for sight in (1, {}, SIGHT | {"clauses": 3})),
        *((DIVERGED.to_json() | {"failure": failure}, "$.failure") for failure in ({}, FAILURE | {"aspects": []})),
        ({"event": "Progressed", "machine": "offset"}, "required field `examples`"),
    ],
)
def test_an_invalid_event_is_rejected_in_one_line(document, said):
    with pytest.raises(ValueError, match=r"^[^\n]*$") as refusal:
        event_from_json(document)
    assert said in str(refusal.value)


def test_an_event_of_a_later_version_is_skipped():
    assert event_from_json({"event": "Sung", "song": 1}) is None
    assert event_from_json(STARTED.to_json() | {"more": 1}) == STARTED


OF_VERSION_1 = [
    {"event": "Progressed", "machine": "offset", "examples": 10, "steps": 200, "share": 0.5},
    {"event": "Measured", "table": "mutants", "name": "off by one", "holds": True, "figures": {"examples to kill": 12}},
    {
        "event": "Diverged", "machine": "offset",
        "failure": {"step": 0, "party": "jvm 3.9.2", "release": "3.9.2", "against": "kidx", "aspects": ["state"],
                    "expected": None, "actual": 1, "clauses": ["OI-1"]},
        "requirements": [["OI-1", "MUST", "It holds."]], "steps": ["close()"], "trace": "traces/t.json",
        "replay": "conformance replay t", "times": 3, "shape": "close: state", "detail": " of size",
        "also": [
            {"shape": "close: state", "clause": "", "clauses": [], "times": 2, "trace": "t", "because": "one cause"},
        ],
    },
]  # fmt: skip
"""Events as version 0.1.0 of this package wrote them."""


@pytest.mark.parametrize("document", OF_VERSION_1, ids=lambda document: document["event"])
def test_an_event_of_version_1_is_read(document):
    event = event_from_json(document)
    expected = {
        "Progressed": EVENTS[2],
        "Measured": EVENTS[5],
        "Diverged": replace(DIVERGED, occurrences=3, signature="close: state", signature_detail=" of size"),
    }
    assert event == expected[document["event"]]


SCHEMA = json.loads((files("conformance") / "schemas/events.json").read_text("utf-8"))


def test_the_schema_matches_the_events():
    """``python -m conformance.report.schema`` writes it."""
    assert (files("conformance") / "schemas/events.json").read_text("utf-8") == schema_text(schema())
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_valid_and_each_missing_field_makes_it_invalid(event):
    document = json.loads(json.dumps(event.to_json()))
    jsonschema.validate(document, SCHEMA)
    needed = SCHEMA["$defs"][document["event"]]["required"]
    assert len(needed) > 1
    for name in needed:
        broken = {key: value for key, value in document.items() if key != name}
        assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(broken), name


def test_every_event_is_covered_here():
    assert {type(event) for event in EVENTS} == set(Event.__subclasses__())


def test_a_header_names_its_format():
    document = STARTED.to_json()
    assert (document["format"], document["version"]) == ("kidx-events", 2)


def test_verdicts_are_counted():
    counts = {verdict: RESULT.count(verdict) for verdict in ("conforms", "diverges", "unsupported", "not-run")}
    assert counts == {"conforms": 2, "diverges": 1, "unsupported": 1, "not-run": 1}
    assert RESULT.count("expected-divergence") == 0


def test_a_line_is_written_as_soon_as_the_event_happens(tmp_path):
    with NdjsonWriter(tmp_path / "new" / "report") as writer:
        for number, event in enumerate(EVENTS, start=1):
            writer(event)
            lines = (tmp_path / "new" / "report" / NAME).read_text("utf-8").splitlines()
            assert len(lines) == number
            assert json.loads(lines[-1])["event"] == type(event).__name__
    assert [json.loads(line)["event"] for line in lines][-1] == "RunFinished"


def test_a_report_replaces_the_previous_one(tmp_path):
    for _ in range(2):
        with NdjsonWriter(tmp_path) as writer:
            writer(STARTED)
    assert len((tmp_path / NAME).read_text("utf-8").splitlines()) == 1


def test_a_report_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ToolError, match=r"^cannot write the report: .* is not a directory$"):
        NdjsonWriter(tmp_path / "file")


def test_a_full_disk_is_one_line(tmp_path):
    if not (full := tmp_path.joinpath("/dev/full")).exists():
        pytest.skip("no /dev/full here")
    (tmp_path / NAME).symlink_to(full)
    with (
        pytest.raises(ToolError, match=r"cannot write the report .*: No space left on device$"),
        NdjsonWriter(tmp_path) as writer,
    ):
        writer(STARTED)
