"""Shrinking of operations that are not atomic: fewer operations, with a violation that two threads show, too.

A violation is an interruption of an operation by others after which the results match no sequential order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.experiments.interleave.experiment import Interrupter, Result, Violation
    from conformance.experiments.interleave.scenarios import Case


class Shown(NamedTuple):
    """Violation that two threads have shown.

    Attributes:
        case: the operations.
        violation: the violation.
        orders: results of the sequential orders.
        points: accesses to fields, buffers and files in their order, each as the number of its thread, a blank, and
            its name.
    """

    case: Case
    violation: Violation
    orders: frozenset[Result]
    points: tuple[str, ...]


def shrunk(case: Case, interrupter: Interrupter) -> Shown | None:
    """Return a violation by the fewest operations, executed by two threads; None if two threads show no violation."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(case):
            if interrupter.interrupt(candidate, stop_at_first=True).violations:
                case, smaller = candidate, True
                break
    pair = interrupter.interrupt(case)
    for violation in pair.violations:
        where, _, seen = interrupter.perform(case, violation.schedule)
        if where == violation.where and seen not in pair.orders:
            points = tuple(interrupter.points(case.kind))
            return Shown(case, violation._replace(seen=seen), pair.orders, points)
    return None


def _smaller(case: Case) -> Iterator[Case]:
    """Yield the cases with one operation less before the interrupted operation, or one less in its middle."""
    for number in range(len(case.setup)):
        yield case._replace(setup=case.setup[:number] + case.setup[number + 1 :])
    others = case.others.split(";")
    if len(others) > 1:
        for number in range(len(others)):
            yield case._replace(others=";".join(others[:number] + others[number + 1 :]))
