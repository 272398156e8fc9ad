"""Distribution of one event stream to several writers; an error of one writer does not affect the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.errors import ToolError
from conformance.events import Diverged
from conformance.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.events import Event, Sink


class CombinedSink:
    """Sink that passes every event to several writers.

    Args:
        sinks: the writers.

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
