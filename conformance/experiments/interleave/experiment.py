"""Experiment that interrupts every operation at every point, and finds results that no sequential order gives.

The reference is the class itself, uninterrupted: the results of the interrupted operation and of the others
in its middle, and the final state, must equal the results of executing them one after the other in some order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.errors import ToolError
from conformance.experiments.interleave.scenarios import PLANTED, SCENARIOS, Scenario
from conformance.implementations.jvm.driver import driver_class
from conformance.implementations.jvm.interruptible import interruptible_classes
from conformance.implementations.jvm.virtual_machine import start_jvm

if TYPE_CHECKING:
    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress

_MOST: Final = 1000
"""Maximum number of points at which an operation is interrupted."""


class Result(NamedTuple):
    """Observation: results of the interrupted operation and of the others, and the final state of the index."""

    first: str
    others: str
    state: str


class Violation(NamedTuple):
    """Interruption whose result no sequential order gives."""

    where: str
    seen: Result


class Pair(NamedTuple):
    """Operation, and others that run in its middle.

    Attributes:
        kind: kind of index.
        first: the operation that is interrupted.
        others: the operations that run then.
        points: number of points at which it was interrupted.
        waits: number of points at which the others would have had to wait.
        orders: results of the sequential orders.
        violations: interruptions with other results.
    """

    kind: str
    first: str
    others: str
    points: int
    waits: int
    orders: frozenset[Result]
    violations: tuple[Violation, ...]

    @property
    def names(self) -> tuple[str, str]:
        """Names of the operations, without their arguments."""
        return self.first.split()[0], "; ".join(each.split()[0] for each in self.others.split(";"))


class Interrupter:
    """Interruptible classes of a release.

    Args:
        release: release of the classes.
        scratch: an empty directory.
        progress: called while jars are fetched.
        build: build whose classes are used instead, or None.

    Raises:
        ToolError: Java or a jar is missing, or the planted race is not detected.
    """

    def __init__(
        self, release: str, scratch: Path, progress: Progress | None = None, build: Build | None = None
    ) -> None:
        classes, self._files = scratch / "classes", scratch / "files"
        classes.mkdir(parents=True)
        self._files.mkdir()
        self._loader = interruptible_classes(release, classes, progress, build)
        self._drivers: dict[tuple[str, ...], Any] = {}
        if not any(pair.violations for pair in self._explored("planted", PLANTED)):
            raise ToolError(f"the race planted next to Kafka {release} is not detected, so no result can be trusted")

    def explore(self, kinds: Sequence[str] = tuple(SCENARIOS)) -> Iterator[Pair]:
        """Yield the result of every pair of operations on these kinds of indexes."""
        for kind in kinds:
            yield from self._explored(kind, SCENARIOS[kind])

    def _explored(self, kind: str, scenario: Scenario) -> Iterator[Pair]:
        for writer in scenario.writers:
            for reader in scenario.readers:
                yield self._pair(kind, scenario, reader, writer)
                if ";" not in writer:
                    yield self._pair(kind, scenario, writer, reader)

    def _pair(self, kind: str, scenario: Scenario, first: str, others: str) -> Pair:
        meanwhile = others.split(";")
        orders = frozenset(
            self._ordered(scenario, meanwhile[:before], first, meanwhile[before:])
            for before in range(len(meanwhile) + 1)
        )
        violations, waits, point = list[Violation](), 0, 0
        while point < _MOST:
            run = self._run(scenario, scenario.setup, first, meanwhile, point)
            if run is None:
                waits += 1
            elif not run[1]:
                break
            elif (seen := Result(*run[2:])) not in orders:
                violations.append(Violation(run[1], seen))
            point += 1
        return Pair(kind, first, others, point, waits, orders, tuple(violations))

    def _ordered(self, scenario: Scenario, before: Sequence[str], first: str, after: Sequence[str]) -> Result:
        """Return the observation if the operation runs as a whole between some of the others."""
        done, own, results, state = list(scenario.setup), "", list[str](), ""
        for operation in (*before, None, *after):
            run = self._run(scenario, done, operation or first, (), -1)
            assert run is not None
            state = run[4]
            done.append(operation or first)
            if operation is None:
                own = run[2]
            else:
                results.append(run[2])
        return Result(own, ", ".join(results), state)

    def _run(
        self, scenario: Scenario, setup: Sequence[str], first: str, others: Sequence[str], point: int
    ) -> list[str] | None:
        """Return the result of ``Interruptions.run`` for one run; None if the others would have had to wait."""
        jpype = start_jvm()
        strings = jpype.JArray(jpype.JClass("java.lang.String"))
        if scenario.class_names not in self._drivers:
            driver = driver_class("Interruptions")(self._loader, str(self._files), strings(list(scenario.class_names)))
            self._drivers[scenario.class_names] = driver
        result = self._drivers[scenario.class_names].run(strings(list(setup)), first, strings(list(others)), point)
        return None if result is None else [str(word) for word in result]
