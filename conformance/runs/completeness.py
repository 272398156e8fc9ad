"""Summary of what a run has compared: from the results of its machines, for the run itself and for every report of it.

A machine counts as compared with an implementation if it was compared at least once in each operation that the machine
needs (:attr:`conformance.clauses.machines.MachineUse.needs`), and in each operation that the run reached and the
implementation has. A clause that no step exercised is *not run*, and does not make a run incomplete, because a small
run cannot reach rare clauses: the last line counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from conformance.clauses import load_clauses
from conformance.clauses.machines import MACHINES
from conformance.verdict import Comparison

if TYPE_CHECKING:
    from conformance.events import Result
    from conformance.lockstep.lockstep import Lockstep


def compared_in(results: Sequence[Result], differences: int) -> Comparison:
    """Return what the machines of some results have compared.

    Args:
        results: The results of one run, or of several runs that are shards of one.
        differences: The number of divergences that count.
    """
    idle = {name: _idleness(mine) for name, mine in _grouped(results, "implementation") if not any(map(_steps, mine))}
    working = [result for result in results if result.implementation not in idle]
    return Comparison(
        sum(map(_steps, results)),
        differences,
        tuple(dict.fromkeys((*_not_run(results), *_never_run(working)))),
        tuple(dict.fromkeys((*_failed(results), *_never_compared(working)))),
        tuple(f"{name}: {why}" for name, why in idle.items()),
    )


def compared_by(lockstep: Lockstep[Any, Any], machine: str, differences: int) -> Comparison:
    """Return what a lockstep that chooses its own operations has compared.

    Args:
        lockstep: The lockstep, which attributes its steps.
        machine: The name of the machine of its operations.
        differences: The number of divergences that count.
    """
    idle, gaps, count = [], [], 0
    for participant in lockstep.subjects_compared:
        name, executed = participant.implementation.name, participant.executed
        count += executed.total()
        if not executed:
            idle.append(f"{name}: {_idleness(())}")
        gaps += [
            f"{name} was not compared in {' or '.join(needed)}"
            for needed in _needed(machine)
            if executed and not any(executed[operation] for operation in needed)
        ]
    return Comparison(count, differences, failures=tuple(gaps), idle=tuple(idle))


def clauses_compared(results: Iterable[Result], level: str) -> tuple[int, int]:
    """Return the number of clauses that were compared, and of those that apply, each once for each implementation.

    Args:
        level: The level of the clauses that count.
    """
    catalogue = load_clauses()
    applicable, compared = set[tuple[str, str]](), set[tuple[str, str]]()
    for result in results:
        for clause, verdict in result.verdicts.items():
            if verdict != "unsupported" and clause in catalogue and catalogue[clause].counts(level):
                applicable.add((result.implementation, clause))
                if verdict not in ("not-run", "could-not-run"):
                    compared.add((result.implementation, clause))
    return len(compared), len(applicable)


def _steps(result: Result) -> int:
    """Return the number of compared steps; in old streams the number of steps."""
    return sum(result.operations.values()) if result.operations else result.steps


def _grouped(results: Iterable[Result], *names: str) -> Iterator[tuple[str, list[Result]]]:
    """Yield results that are equal in some fields, with these fields as a text."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(" ".join(str(getattr(result, name)) for name in names), []).append(result)
    yield from groups.items()


def _idleness(results: Sequence[Result]) -> str:
    """Return why an implementation was compared with nothing."""
    reasons = dict.fromkeys(str(result.details["why"]) for result in results if result.details.get("why"))
    return next(iter(reasons), "it answers with unsupported wherever something is opened")


def _not_run(results: Iterable[Result]) -> Iterator[str]:
    """Yield the operations that a run omitted, and the examples for which it was too short, machine by machine."""
    for result in results:
        if omitted := result.details.get("operations not run"):
            yield f"{', '.join(omitted)} of the {result.machine} machine not run (--operation)"
        if result.details.get("cut_by_time"):
            counts = [
                f"{missing} of {wanted} {kind}"
                for kind, (missing, wanted) in result.details.get("not_executed", {}).items()
                if missing
            ]
            yield f"{' and '.join(counts) or 'a part'} of the {result.machine} machine not run (--max-time)"


def _failed(results: Iterable[Result]) -> Iterator[str]:
    """Yield the machines that an implementation or its crashes have ended early."""
    for result in results:
        details, machine = result.details, f"the {result.machine} machine"
        who = f"{result.implementation} {result.release}"
        if missing := details.get("failures", {}).get("not executed", 0):
            wanted = details["failures"]["examples"]
            yield f"{missing} of {wanted} examples of {machine} not run with {who}, which failed too often"
        if details.get("why_refused"):
            yield f"{machine} could not run to its end with {who}"
        if why := details.get("ended"):
            yield f"{machine} ended early with {who}: {why}"


def _missed(result: Result) -> Iterator[list[str]]:
    """Yield the operations that a machine needs and in which an implementation was not compared."""
    for needed in _needed(result.machine) if result.operations else ():
        if not any(result.operations.get(operation) for operation in needed):
            yield needed


def _never_run(results: Iterable[Result]) -> Iterator[str]:
    """Yield the needed operations that no example reached."""
    for result in results:
        for needed in _missed(result):
            if not (result.operations.keys() & set(needed) or _lacks(result, needed)):
                who = f"{result.implementation} {result.release}"
                yield f"{' or '.join(needed)} of the {result.machine} machine was not run with {who}"


def _lacks(result: Result, needed: list[str]) -> bool:
    return " or ".join(needed) in result.details.get("lacks", ())


def _never_compared(results: Sequence[Result]) -> Iterator[str]:
    """Yield the operations in which an implementation was not compared although the examples reached them."""
    for result in results:
        who = f"{result.implementation} {result.release}"
        if result.verdicts and result.count("could-not-run") == len(result.verdicts):
            yield f"the {result.machine} machine could not run with {who}: {_idleness([result])}"
            continue
        for needed in _missed(result):
            words = " or ".join(needed)
            if _lacks(result, needed):
                yield f"{who} does not have {words}, without which the {result.machine} machine has no verdict"
            elif result.operations.keys() & set(needed):
                yield f"{words} of the {result.machine} machine could not run with {who}"
    for _, mine in _grouped(results, "implementation", "machine"):
        # Releases that take turns share the examples, so an operation that is rare is counted over all releases.
        done = sum((Counter(result.operations) for result in mine), Counter[str]())
        needed_ones = {operation for needed in _needed(mine[0].machine) for operation in needed}
        never = {operation: None for result in mine for operation in result.operations if not done[operation]}
        if rest := [operation for operation in never if operation not in needed_ones]:
            yield f"{', '.join(rest)} of the {mine[0].machine} machine could not run with {mine[0].implementation}"


def _needed(machine: str) -> list[list[str]]:
    """Return the operations that a machine needs, each with its alternatives; none for an unknown machine."""
    return [each.split() for each in MACHINES[machine].needs] if machine in MACHINES else []
