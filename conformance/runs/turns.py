"""Which programs perform an example: those for releases with the same rules take turns.

A program behind a pipe runs once for each release, and nearly all of a run's time is spent on its pipes. What it may
do otherwise depends on the rules of the release. So a drawn example is performed by one of those that are alike, the
next one by the next; the traces that are kept are performed by all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.implementations.forms import is_program

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from conformance.runs.participation import Participation


class Turns:
    """The programs of a machine that take turns.

    Args:
        subjects: specification and participant of each.
        rules: what makes two releases alike.
    """

    def __init__(self, subjects: Iterable[tuple[str, Participation]], rules: Callable[[str], Hashable]) -> None:
        alike: dict[Hashable, list[str]] = {}
        for specification, subject in subjects:
            if is_program(specification):
                alike.setdefault((specification, rules(subject.release)), []).append(subject.name)
        self._alike = [names for names in alike.values() if len(names) > 1]
        self._partners = {name: len(names) for names in self._alike for name in names}

    def waiting(self, number: int) -> set[str]:
        """Return the names of those that do not perform the example of a number."""
        return {name for names in self._alike for place, name in enumerate(names) if place != number % len(names)}

    def partners(self, name: str) -> int:
        """Return how many take turns with a participant, itself included."""
        return self._partners.get(name, 1)
