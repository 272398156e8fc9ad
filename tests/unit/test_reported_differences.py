"""Whatever fails while a difference is shrunk, written or reported: the difference itself is never lost."""

from __future__ import annotations

import pytest

from conformance.errors import ToolError
from conformance.events import Diverged, Event, RunFinished
from conformance.report.divergence import format_divergence
from conformance.report.stream import CombinedSink
from conformance.runs import divergence_event, divergence_reporter
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import run

OFF_BY_ONE = "python:tests.adapters.python_index:open_off_by_one"


def plan(directory, **options):
    """Run an index whose lookup is off by one."""
    options = {"max_examples": 12, "kept": False, "shrink_time": 5.0} | options
    return Plan(("4.4.0",), (OFF_BY_ONE,), ("offset",), PROFILES["dev"], directory, **options)


def events_of(a_plan):
    events: list[Event] = []
    assert not run(a_plan, events.append)
    assert events[-1].verdict == "diverges"
    return [event for event in events if isinstance(event, Diverged)]


def broken(*_arguments, **_options):
    return 1 // 0


@pytest.mark.thorough
def test_a_shrinker_that_fails_costs_the_shrinking(tmp_path, monkeypatch):
    monkeypatch.setattr(divergence_reporter, "shrink_divergence", broken)
    (event,) = events_of(plan(tmp_path))
    assert event.clause == "OI-7"
    assert event.shrinking.startswith("not shrunk, because the shrinker failed: ZeroDivisionError")
    assert event.trace
    assert "the shrinker failed" in format_divergence(event)


@pytest.mark.thorough
def test_a_failing_grouping_costs_only_the_grouping(tmp_path, monkeypatch):
    monkeypatch.setattr(divergence_reporter, "group_by_root_cause", broken)
    (event,) = events_of(plan(tmp_path))
    assert event.shrinking == "minimal"


@pytest.mark.thorough
def test_a_directory_that_cannot_be_written_costs_the_trace(tmp_path):
    (tmp_path / "file").write_text("")
    (event,) = events_of(plan(tmp_path / "file" / "traces"))
    assert (event.trace, event.replay) == ("", "")
    assert event.note.startswith("cannot write the trace")
    assert event.note.endswith("Not a directory")
    text = format_divergence(event)
    assert f"  note         {event.note}" in text
    assert "replay" not in text


@pytest.mark.thorough
def test_a_trace_that_cannot_be_encoded_costs_the_trace(tmp_path, monkeypatch):
    monkeypatch.setattr(divergence_event.Trace, "save", broken)
    (event,) = events_of(plan(tmp_path))
    assert event.note.startswith("cannot write its trace: ZeroDivisionError")


class TestTogether:
    EVENT = Diverged("offset", {"participant": "mine 4.4.0"}, (("OI-7", "MUST", "…"),), ("open()", "lookup(1)"), "", "")

    def test_a_failing_writer_costs_only_its_output(self):
        seen = []

        def fails_at_differences(event):
            if isinstance(event, Diverged):
                broken()
            seen.append(event)

        together = CombinedSink([fails_at_differences, seen.append])
        footer = RunFinished("diverges", 1, 0.1)
        for event in (self.EVENT, self.EVENT, footer):
            together(event)
        assert seen == [self.EVENT, self.EVENT, footer, footer]
        (line,) = together.failures
        assert "function could not write the divergence of mine 4.4.0 (OI-7) after lookup(1)" in line

    def test_a_full_disk_is_noted_once(self):
        def full(_event):
            raise ToolError("cannot write the report out/events.ndjson: No space left on device")

        together = CombinedSink([full])
        together(self.EVENT)
        together(self.EVENT)
        assert together.failures == ["cannot write the report out/events.ndjson: No space left on device"]

    def test_a_closed_output_ends_the_run(self):
        def closed(_event):
            raise BrokenPipeError

        with pytest.raises(BrokenPipeError):
            CombinedSink([closed])(self.EVENT)
