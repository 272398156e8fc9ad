"""Experiment that finds operations of Kafka's classes that are not atomic.

An operation is interrupted at every point, which is an access to a field, a buffer or a file, and other operations run
there. The reference is the class itself, uninterrupted: the results of all operations, and the final state, must equal
the results of executing the operations one after the other in some order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from conformance.errors import ToolError
from conformance.implementations.jvm.driver import driver_class
from conformance.implementations.jvm.interruptible import interruptible_classes, without_monitors
from conformance.implementations.jvm.virtual_machine import java_bytes, start_jvm
from conformance.studies.interleave.scenarios import (
    APPENDS,
    CACHES,
    KINDS,
    LOGS,
    PLANTED,
    Case,
    draw_scenario,
)
from kidx.dialect import dialect_of
from kidx.records import build_batch

if TYPE_CHECKING:
    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress

_MAX_POINTS: Final = 1000
"""Maximum number of points at which an operation is interrupted."""


class Schedule(NamedTuple):
    """Points at which the execution switches between the interrupted operation and the others.

    Attributes:
        stop: number of the point at which the operation is interrupted, from 0; negative if the others run after it.
        back: number of the point of the others at which it continues; negative if they run to their end before.
    """

    stop: int
    back: int = -1


class Result(msgspec.Struct, frozen=True, order=True):
    """Results of the interrupted operation and of the others, and the final state of the object they were called on."""

    first: str
    others: str
    state: str


class Violation(NamedTuple):
    """Interruption whose result no sequential order gives.

    Attributes:
        where: point at which the first operation was interrupted.
        schedule: points at which the execution switched.
    """

    where: str
    seen: Result
    schedule: Schedule


class Pair(NamedTuple):
    """Result for a pair: an operation, and others that run in its middle.

    Attributes:
        points: number of points at which the operation was interrupted.
        waits: number of points at which one of the threads had to wait for the other.
        orders: results of the sequential orders.
        violations: interruptions with other results.
    """

    case: Case
    points: int
    waits: int
    orders: frozenset[Result]
    violations: tuple[Violation, ...]


class Interrupter:
    """Executor of a release's operations, which can interrupt them at every point.

    Args:
        release: release of the classes.
        scratch: an empty directory.
        progress: called while jars are fetched.
        build: build whose classes are used instead, or None.
        change: function that plants a race in a class, or None; see ``interruptible_classes``.

    Raises:
        ToolError: Java or a jar is missing, or the planted race is not detected.
    """

    def __init__(
        self,
        release: str,
        scratch: Path,
        progress: Progress | None = None,
        build: Build | None = None,
        change: Callable[[Any], bool] | None = None,
    ) -> None:
        self._scratch, self._progress, self._build = scratch, progress, build
        classes, self._files = scratch / "classes", scratch / "files"
        classes.mkdir(parents=True)
        self._files.mkdir()
        self.release = release
        self._loader = interruptible_classes(release, classes, progress, build, change)
        self._drivers: dict[str, Any] = {}
        self._locks_matter = False
        if not any(self.interrupt(case).violations for case in PLANTED.cases("planted")):
            raise ToolError(
                f"cannot trust any result for Kafka {release}: a race that is planted for comparison was not detected"
            )

    def cases(self, kinds: Sequence[str] = KINDS, seed: int = 0, examples: int = 1) -> Iterator[Case]:
        """Yield every pair of operations, in scenarios that are drawn from a seed.

        Args:
            kinds: kinds of objects, such as an index or a log.
            examples: number of scenarios of each kind.
        """
        for kind, number in itertools.product(kinds, range(examples)):
            if kind not in CACHES or dialect_of(self.release).has_remote_index_cache:
                if kind in LOGS and not self._locks_matter:
                    self._prove_that_locks_matter()
                yield from draw_scenario(kind, seed, number).cases(kind)

    def _prove_that_locks_matter(self) -> None:
        """Detect that appends to a log without locks are not atomic.

        Raises:
            ToolError: it is not detected.
        """
        unlocked = Interrupter(
            self.release, self._scratch / "unlocked", self._progress, self._build, change=without_monitors
        )
        if not unlocked.interrupt(APPENDS, stop_at_first=True).violations:
            raise ToolError(
                f"cannot trust any result for logs of Kafka {self.release}: races were not detected after removing all"
                " its locks"
            )
        self._locks_matter = True

    def interrupt(self, case: Case, stop_at_first: bool = False) -> Pair:
        """Interrupt an operation at every point, or until a result matches no order."""
        orders = self.orders(case)
        violations, waits, point = list[Violation](), 0, 0
        while point < _MAX_POINTS and not (stop_at_first and violations):
            schedule = Schedule(point)
            threads = case.kind in LOGS  # a log has locks that are not instrumented: one thread would enter them twice
            where, waited, seen = self._run(
                case.kind, case.setup, case.first, case.others.split(";"), schedule, threads=threads
            )
            if not where:
                break
            waits += waited
            if not waited and seen not in orders:
                violations.append(Violation(where, seen, schedule))
            point += 1
        return Pair(case, point, waits, orders, tuple(violations))

    def orders(self, case: Case) -> frozenset[Result]:
        """Return the results of executing the operations one after the other, in all orders."""
        strings = _strings()
        driver = self._driver(case.kind, (*case.setup, case.first, *case.others.split(";")))
        found = driver.orders(strings(list(case.setup)), case.first, strings(case.others.split(";")))
        return frozenset(Result(*(str(word) for word in order)) for order in found)

    def perform(self, case: Case, schedule: Schedule) -> tuple[str, bool, Result]:
        """Execute the operations in two threads.

        Returns:
            The point of the interruption, True if a thread had to wait for the other, and the result.
        """
        return self._run(case.kind, case.setup, case.first, case.others.split(";"), schedule, threads=True)

    def points(self, kind: str) -> list[str]:
        """Return the points of the last run in their order, each as the number of its thread, a blank, and its name."""
        return [str(point) for point in self._drivers[kind].seen()]

    def _run(
        self,
        kind: str,
        setup: Sequence[str],
        first: str,
        others: Sequence[str],
        schedule: Schedule,
        threads: bool = False,
    ) -> tuple[str, bool, Result]:
        """Execute the operations as :meth:`perform` does; without ``threads``, one thread executes all of them."""
        strings, driver = _strings(), self._driver(kind, (*setup, first, *others))
        words = driver.run(strings(list(setup)), first, strings(list(others)), schedule.stop, threads, schedule.back)
        _, where, _, waited, *seen = (str(word) for word in words)
        return where, waited == "true", Result(*seen)

    def _driver(self, kind: str, operations: Sequence[str]) -> Any:
        """Return the Java object that executes the operations of a kind; it gets the batches that they append."""
        if kind not in self._drivers:
            self._drivers[kind] = driver_class("Targets").interruptions(self._loader, str(self._files), kind)
        for name, batch in batches_of(kind, operations).items():
            self._drivers[kind].batch(name, java_bytes(batch))
        return self._drivers[kind]


def _strings() -> Any:
    """Return the type of an array of Java's strings."""
    jpype = start_jvm()
    return jpype.JArray(jpype.JClass("java.lang.String"))


def batches_of(kind: str, operations: Sequence[str]) -> dict[str, bytes]:
    """Return the batch of each append by its arguments: one record, whose size depends on its timestamp in a log."""
    found = {}
    for operation in operations:
        name, _, arguments = operation.partition(" ")
        if name == "append" and kind in ("segment", "opened", *LOGS):
            offset, timestamp = map(int, arguments.split())
            value = b"v" * (1 + timestamp % 5) if kind in LOGS else b"v"
            found[arguments] = build_batch([(timestamp, None, value)], base_offset=offset, partition_leader_epoch=0)
    return found
