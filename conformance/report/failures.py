"""Warning about a program that failed during examples, because the failures may hide other divergences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.events import Result


def describe_failures(result: Result) -> str:
    """Return a sentence about the failures of an implementation on a machine; empty without failures."""
    found = result.details.get("failures")
    if not found:
        return ""
    shapes = ", ".join(f"{shape}, {times} times" for shape, times in found["shapes"].items())
    missing = found["not executed"]
    never = ", ".join(found.get("not survived", ()))
    hidden = f" Nothing was compared after {never}: it failed each time." if never else ""
    avoided = found.get("avoided", 0)
    hidden += f" {avoided} steps like those at which it failed were skipped in later examples." if avoided else ""
    rest = (
        f" {missing} of {found['examples']} examples were not executed: it dropped out of the run." if missing else ""
    )
    return (
        f"{result.implementation} {result.release} failed in {found['cut short']} of {found['examples']} examples of"
        f" the {result.machine} machine, which ended there ({shapes}).{rest}{hidden} Fix this first: it may hide other"
        " divergences."
    )
