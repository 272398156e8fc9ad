"""How findings about logs are made: searched for by the machine, made small, and replayed.

Three kinds of differences, each a lockstep of its own::

    OracleLockstep([], scratch, releases=["3.6.2"])              a release's answer to a timestamp is not the oracle's
    LogLockstep([HeldTo(JvmLog("3.9.1"), "3.9.0")], scratch)     a release does not do what another one does
    LogLockstep([Follower(JvmLog("3.6.2"))], scratch)            a follower's files are not its leader's

    found = search(lockstep, examples=200)
    found = shorten(found, lambda operations: replay(lockstep, operations))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from conformance.lockstep import DivergenceError
from conformance.machines.log import LogMachine
from conformance.runs import shortening

if TYPE_CHECKING:
    from conformance.lockstep import Divergence
    from conformance.lockstep.levels.log import LogLockstep
    from conformance.operations import Operation


def search(lockstep: LogLockstep, *, examples: int, steps: int = 20, number: int = 1) -> DivergenceError | None:
    """Runs the machine until somebody differs; :func:`shorten` makes it small, faster than Hypothesis does.

    Args:
        lockstep: whom to drive.
        examples: how many runs at most.
        steps: of a run at most.
        number: the seed.

    Returns:
        What differed, or None.
    """
    machine = seed(number)(LogMachine.bind(lockstep))
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                print_blob=False,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.generate,),
            ),
        )
    except DivergenceError as error:
        return error
    return None


def replay(lockstep: LogLockstep, operations: Sequence[Operation]) -> DivergenceError | None:
    """Performs the operations from the start; the first difference, or None.

    Operations on a log that is not open are left out, as the machine does.
    """
    lockstep.begin()
    opened = False
    try:
        for operation in operations:
            if not opened and operation.name not in ("open_log", "damage_log_file"):
                continue
            observation = lockstep.perform(operation)
            if operation.name != "damage_log_file":
                opened = observation.state is not None
    except DivergenceError as error:
        return error
    finally:
        lockstep.end()
    return None


def shorten(error: DivergenceError, again: Callable[[Sequence[Operation]], DivergenceError | None]) -> DivergenceError:
    """Leaves out every operation, target and batch that the difference does not need.

    Args:
        error: what was found.
        again: replays operations.
    """

    def still(operations: Sequence[Operation]) -> DivergenceError | None:
        other = again(operations)
        return other if other is not None and _same(other.divergence, error.divergence) else None

    short = shortening.shorten(error.operations, still)
    return error if short is None else DivergenceError(short[1].divergence, short[1].operations)


def _same(one: Divergence, other: Divergence) -> bool:
    same_why = one.against != "oracle" or one.clauses == other.clauses
    return (one.party, one.against, one.aspects) == (other.party, other.against, other.aspects) and same_why
