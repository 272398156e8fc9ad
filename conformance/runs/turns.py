"""Schedule for programs: programs for releases with the same rules take turns in executing examples.

A program that is connected by a pipe runs once per release, and pipes take nearly all of a run's time. The expected
behaviour of a program depends only on the rules of its release. A generated example is therefore executed by one of the
programs with the same rules, and the next example by the next program. All programs execute regression traces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.implementations.forms import is_program

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from conformance.implementations.protocol import Implementation


class TurnOrder:
    """Order in which programs take turns to execute examples.

    Args:
        subjects: The ``-i`` argument and the participant of each.
        rules: A function that returns equal keys for releases that behave alike.
    """

    def __init__(self, subjects: Iterable[tuple[str, Implementation]], rules: Callable[[str], Hashable]) -> None:
        alike: dict[Hashable, list[str]] = {}
        for specification, subject in subjects:
            if is_program(specification):
                alike.setdefault((specification, rules(subject.release)), []).append(subject.name)
        self._alike = [names for names in alike.values() if len(names) > 1]
        self._partners = {name: len(names) for names in self._alike for name in names}

    def waiting(self, number: int) -> set[str]:
        """Return the names of the programs that do not execute the example with this number."""
        return {name for names in self._alike for place, name in enumerate(names) if place != number % len(names)}

    def partners(self, name: str) -> int:
        """Return the number of programs that take turns with a participant, including itself."""
        return self._partners.get(name, 1)
