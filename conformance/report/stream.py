"""Event stream of a run in a file: one JSON object per line, header first, footer last.

The reader returns the events even if the run was cut off. An event may have several writers; an error of one does not
affect the others.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from conformance.errors import ToolError
from conformance.events import FORMAT, READABLE, Diverged, Measured, Replayed, Result, RunFinished, RunStarted
from conformance.events import event_from_json as event_of
from conformance.implementations.forms import is_server
from conformance.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from conformance.events import Event, Sink

NAME = "events.ndjson"


class NdjsonWriter:
    """Writer of ``events.ndjson`` in a directory, with one line per event, written immediately.

    Raises:
        ToolError: the directory cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME
        if directory.exists() and not directory.is_dir():
            raise ToolError(f"cannot write the report: {directory} is not a directory")
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("w", encoding="utf-8")
        except OSError as error:
            raise ToolError(f"cannot write the report {self.path}: {error.strerror or error}") from error

    def __call__(self, event: Event) -> None:
        """Write one event.

        Raises:
            ToolError: the event cannot be written, e.g. because the disk is full.
        """
        try:
            self._file.write(json.dumps(event.to_json(), separators=(",", ":")) + "\n")
            self._file.flush()
        except OSError as error:
            raise ToolError(f"cannot write the report {self.path}: {error.strerror or error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        # close() retries a line that did not fit on the disk; the error has already been raised.
        with contextlib.suppress(OSError):
            self._file.close()


class StreamError(ToolError):
    """Report that cannot be read."""


@dataclass
class Stream:
    """Events of one run.

    Attributes:
        header: arguments of the run.
        footer: end of the run; None if it was cut off.
        results: results of each finished machine × implementation × release.
        divergences: the divergences that count.
        replayed: regression traces that were replayed first.
        measured: metrics of the harness itself.
    """

    path: Path
    header: RunStarted
    footer: RunFinished | None = None
    results: list[Result] = field(default_factory=list)
    divergences: list[Diverged] = field(default_factory=list)
    replayed: list[Replayed] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)

    @property
    def cut_off(self) -> str:
        """Reason why the run is incomplete; empty if it is complete."""
        if self.footer is not None:
            return ""
        wanted = {(machine, name) for machine in self.header.machines for name in self.header.implementations}
        done = {(result.machine, result.implementation) for result in self.results}
        missing = ", ".join(sorted({machine for machine, name in wanted - done if not is_server(name)}))
        return f"{self.path} was cut off: it has no RunFinished" + (f", and no result of {missing}" if missing else "")

    def add(self, event: Event) -> None:
        """Add the next event."""
        match event:
            case RunFinished():
                self.footer = event
            case Result():
                self.results.append(event)
            case Diverged():
                self.divergences.append(event)
            case Replayed():
                self.replayed.append(event)
            case Measured():
                self.measured.append(event)
            case _:
                pass


def read_streams(places: Iterable[Path]) -> list[Stream]:
    """Return the runs of event files and report directories; a directory has one run, or a subdirectory per run.

    A file that is named twice is one run.

    Raises:
        StreamError: there is no report, or this version cannot read it.
    """
    files = {file.resolve(): file for place in places for file in _files_of(place)}
    return [read_stream(file) for file in files.values()]


def _files_of(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise StreamError(f"no report at {place}")
    found = [place / NAME] if (place / NAME).is_file() else sorted(place.glob(f"*/{NAME}"))
    if not found:
        raise StreamError(f"{place} has no {NAME}; `conformance run --report {place}` writes one")
    return found


def read_stream(path: Path) -> Stream:
    """Return one run.

    Raises:
        StreamError: the file cannot be read, does not begin with a header, or has another format.
    """
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError as error:
        raise StreamError(f"cannot read the report {path}: {error.strerror or error}") from error
    header = _header(path, lines[0] if lines else "")
    stream = Stream(path, header)
    for number, line in enumerate(lines[1:], start=2):
        try:
            event = event_of(_object(line))
        except ValueError as error:
            if number == len(lines):  # the run was killed while it wrote this line
                break
            raise StreamError(f"line {number} of the report {path} is not an event: {error}") from None
        if event is not None:
            stream.add(event)
    return stream


def _header(path: Path, line: str) -> RunStarted:
    try:
        document = _object(line)
    except ValueError:
        document = {}
    if document.get("event") != "RunStarted" or document.get("format") != FORMAT:
        raise StreamError(f"{path} is not a report: it does not begin with RunStarted of format {FORMAT!r}")
    if document.get("version") not in READABLE:
        found, known = document.get("version"), " and ".join(map(str, READABLE))
        raise StreamError(f"{path} is a report of version {found!r}; this program reads versions {known}")
    try:
        header = event_of(document)
    except ValueError as error:
        raise StreamError(f"the header of {path} is incomplete: {error}") from None
    assert isinstance(header, RunStarted)
    return header


def _object(line: str) -> dict[str, Any]:
    document = json.loads(line)
    if not isinstance(document, dict):
        raise ValueError(f"{line:.40} is not an object")  # noqa: TRY004 -- as json.loads
    return document


class CombinedSink:
    """Sink that passes every event to several writers.

    Attributes:
        failures: error messages of the writers, each once.
    """

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = sinks
        self.failures: list[str] = []

    def __call__(self, event: Event) -> None:
        """Pass an event to every writer."""
        for sink in self._sinks:
            try:
                sink(event)
            except BrokenPipeError:
                raise  # the reader of standard output has gone
            except ToolError as error:
                self._note(str(error))
            except Exception as error:  # noqa: BLE001 -- the other writers and events continue after any error
                self._note(f"{type(sink).__name__} could not write {_label(event)}: {quoted(repr(error))}")

    def _note(self, line: str) -> None:
        if line not in self.failures:
            self.failures.append(line)


def _label(event: Event) -> str:
    """Return a label of an event; for a divergence, enough to find it in the other reports."""
    if not isinstance(event, Diverged):
        return f"the event {type(event).__name__}"
    clauses = ", ".join(clause for clause, _, _ in event.requirements) or "no clause"
    return f"the divergence of {event.failure['participant']} ({clauses}) after {' '.join(event.steps[-1:])}"
