"""JUnit XML: one suite per machine × implementation × release, one case per clause.

A clause that diverges is a failure. A clause that no step exercised is skipped, with a message. A clause that could not
run, a run that was cut off, that compared nothing or less than requested is an error, so that no pipeline mistakes it
for a passed one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from conformance.clauses import load_clauses
from conformance.report.divergence import format_divergence
from kidx.printable import printable, printable_lines

if TYPE_CHECKING:
    from conformance.events import Diverged, Measured, Result
    from conformance.report.combined import CombinedReport
    from conformance.report.stream import Stream

_SKIPPED: Final = {
    "expected-divergence": "a known divergence, expected",
    "tolerated": "tolerated at this level: a difference that does not count",
    "unsupported": "does not apply: the implementation does not have the operations",
    "not-run": "not run: nothing exercised this clause",
}
_COULD_NOT_RUN: Final = "could not run: the implementation had failed before, or rejected what it declares"


def junit(report: CombinedReport) -> str:
    """Return the report as a JUnit XML document."""
    root = ET.Element("testsuites", name=printable(" ".join(("conformance", *report.editions))))
    for stream in report.streams:
        for result in stream.results:
            root.append(_suite(stream, result))
        if unattributed := [divergence for divergence in stream.divergences if not _has_result(stream, divergence)]:
            root.append(_unattributed(stream, unattributed))
        if stream.cut_off:
            root.append(_cut_off(stream))
        for line in stream.footer.details.get("stale", ()) if stream.footer else ():
            root.append(_failed_suite(stream, "expectations", line, "a stale expectation"))
    if report.missing:
        root.append(_missing(report))
    for table, rows in report.measured.items():
        if table in report.figures or any(row in report.failing for row in rows):
            root.append(_measured(report.streams[0], table, rows))
    for counter in ("tests", "failures", "errors", "skipped"):
        root.set(counter, str(sum(int(suite.get(counter, "0")) for suite in root)))
    root.set("time", f"{report.seconds:.3f}")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(stream: Stream, result: Result) -> ET.Element:
    name = f"{result.implementation} {result.release} {result.machine}"
    suite = ET.Element("testsuite", name=printable(name))
    catalogue = load_clauses()
    class_name = ".".join(part.replace(".", "_") for part in (result.implementation, result.release, result.machine))
    for id_, verdict in result.verdicts.items():
        title = catalogue[id_].title if id_ in catalogue else ""
        case = _case(suite, class_name, f"{id_} {title}".strip())
        if verdict == "diverges":
            _fail(case, [d for d in stream.divergences if _is_about(d, result) and id_ in d.clauses])
        elif verdict == "could-not-run":
            ET.SubElement(case, "error", message=_COULD_NOT_RUN, type=verdict)
        elif verdict in _SKIPPED:
            ET.SubElement(case, "skipped", message=_SKIPPED[verdict])
    for divergence in stream.divergences:
        if _is_about(divergence, result) and not set(divergence.clauses) & result.verdicts.keys():
            _fail(_case(suite, class_name, f"a divergence in {', '.join(divergence.failure['aspects'])}"), [divergence])
    return _counted(suite, stream, result.seconds)


def _is_about(divergence: Diverged, result: Result) -> bool:
    return divergence.is_about(result.machine, result.implementation, result.release)


def _has_result(stream: Stream, divergence: Diverged) -> bool:
    return any(_is_about(divergence, result) for result in stream.results)


def _unattributed(stream: Stream, divergences: list[Diverged]) -> ET.Element:
    """Return a suite of divergences of the reference itself, or of an implementation whose result was cut off."""
    suite = ET.Element("testsuite", name="differences")
    for divergence in divergences:
        participant = divergence.failure["participant"]
        _fail(_case(suite, "differences", _text(f"{divergence.machine}: {participant}")), [divergence])
    return _counted(suite, stream, 0.0)


def _cut_off(stream: Stream) -> ET.Element:
    suite = ET.Element("testsuite", name="conformance run")
    case = _case(suite, "conformance", _text(f"{stream.path} is complete"))
    ET.SubElement(case, "error", message=printable(stream.cut_off), type="cut-off")
    return _counted(suite, stream, 0.0)


def _missing(report: CombinedReport) -> ET.Element:
    """Return a suite with what was not compared: errors, or skipped cases if an incomplete run is accepted."""
    suite = ET.Element("testsuite", name="what was compared")
    accepted = report.allow_incomplete and report.comparison.is_only_short
    for reason in report.missing:
        case = _case(suite, "conformance", "everything that was requested is compared")
        if accepted:
            ET.SubElement(case, "skipped", message=printable(reason))
        else:
            ET.SubElement(case, "error", message=printable(reason), type=report.verdict)
    return _counted(suite, report.streams[0], 0.0)


def _failed_suite(stream: Stream, name: str, case: str, reason: str) -> ET.Element:
    suite = ET.Element("testsuite", name=name)
    ET.SubElement(_case(suite, name, _text(case)), "failure", message=reason, type=name)
    return _counted(suite, stream, 0.0)


def _measured(stream: Stream, table: str, rows: list[Measured]) -> ET.Element:
    suite = ET.Element("testsuite", name=printable(table))
    for row in rows:
        case = _case(suite, _text(table), _text(row.name))
        if row.passed is False:
            text = ", ".join(f"{name}: {value}" for name, value in row.figures.items())
            ET.SubElement(case, "failure", message=printable(text), type=printable(table))
    return _counted(suite, stream, 0.0)


def _case(suite: ET.Element, class_name: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=printable(class_name), name=printable(name))


def _fail(case: ET.Element, divergences: list[Diverged]) -> None:
    """Add one failure with the text of all divergences, because JUnit allows only one failure per case."""
    participant = divergences[0].failure["participant"] if divergences else "the implementation"
    failure = ET.SubElement(case, "failure", message=printable(f"{participant} diverges"), type="diverges")
    failure.text = _text("\n\n".join(map(format_divergence, divergences)))


def _counted(suite: ET.Element, stream: Stream, seconds: float) -> ET.Element:
    """Return a suite after setting its counters and times."""
    suite.set("tests", str(len(suite)))
    for counter, child in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(counter, str(len(suite.findall(f"testcase/{child}"))))
    suite.set("time", f"{seconds:.3f}")
    suite.set("timestamp", printable(stream.header.started[:19]))
    return suite


def _text(value: str) -> str:
    """Return a text with unprintable characters escaped, because it may contain the output of a program."""
    return printable_lines(value)
