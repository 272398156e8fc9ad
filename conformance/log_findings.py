"""How findings about logs are made: searched for by the machine, made small, and replayed.

Three kinds of differences, each a lockstep of its own::

    OracleLockstep([], scratch, releases=["3.6.2"])              a release's answer to a timestamp is not the oracle's
    LogLockstep([HeldTo(JvmLog("3.9.1"), "3.9.0")], scratch)     a release does not do what another one does
    LogLockstep([Follower(JvmLog("3.6.2"))], scratch)            a follower's files are not its leader's

    found = search(lockstep, examples=200)
    found = shorten(found, lambda operations: replay(lockstep, operations))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from conformance.lockstep import DivergenceError
from conformance.machines.log import LogMachine
from conformance.operations import Operation

if TYPE_CHECKING:
    from conformance.lockstep import Divergence
    from conformance.log_lockstep import LogLockstep


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
    found, changed = error, True
    while changed:
        changed = False
        for candidate in _smaller(found.operations):
            other = again(candidate)
            is_same = other is not None and _same(other.divergence, error.divergence)
            if other is not None and is_same and len(str(other.operations)) < len(str(found.operations)):
                found, changed = other, True
                break
    return found


def _same(one: Divergence, other: Divergence) -> bool:
    same_why = one.against != "oracle" or one.clauses == other.clauses
    return (one.party, one.against, one.aspects) == (other.party, other.against, other.aspects) and same_why


def _smaller(operations: Sequence[Operation]) -> Iterable[list[Operation]]:
    for size in (8, 3, 1):
        for i in reversed(range(0, len(operations), size)):
            yield [*operations[:i], *operations[i + size :]]
    for i, operation in enumerate(operations):
        for simpler in _simpler(operation):
            yield [*operations[:i], simpler, *operations[i + 1 :]]


def _simpler(operation: Operation) -> Iterable[Operation]:
    """The same operation with fewer targets, batches, records or options."""
    name, arguments = operation
    if name == "open_log":
        topic, *rest = arguments
        for key in sorted(topic.keys() - {"segment.bytes", "segment.index.bytes"}):
            fewer = {other: value for other, value in topic.items() if other != key}
            yield Operation(name, (fewer, *rest))
    elif name == "list_offsets":
        yield from (operation._replace(args=(rest,)) for rest in _without_one(arguments[0]))
    elif name in ("append_as_follower", "append_as_leader"):
        batches, epoch = arguments
        yield from (Operation(name, (rest, epoch)) for rest in _without_one(batches))
        for i, batch in enumerate(batches):
            plain = [{**batch, "records": rest} for rest in _without_one(batch["records"])]
            if "codec" in batch:
                plain.append({key: value for key, value in batch.items() if key != "codec"})
            yield from (Operation(name, ([*batches[:i], other, *batches[i + 1 :]], epoch)) for other in plain)


def _without_one(items: Sequence[Any]) -> Iterable[list[Any]]:
    if len(items) > 1:
        yield from ([*items[:i], *items[i + 1 :]] for i in range(len(items)))
