"""All examples of one machine, from the traces that are kept to the last hand, added up in the order of the seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from conformance.events import Progressed, Replayed
from conformance.runs.dealt import Dealt, is_over
from conformance.runs.hands import hands_of

if TYPE_CHECKING:
    from conformance.events import Sink
    from conformance.runs.crew import Crew
    from conformance.runs.hands import Hand
    from conformance.runs.machine_run import MachineRun


def play(
    run: MachineRun,
    seed: int,
    limit: float | None,
    sink: Sink,
    crew: Crew | None = None,
    departed: Callable[[Dealt], None] = lambda _: None,
) -> Dealt:
    """Performs the kept traces, then hands until the examples or the seconds are used up; at least one example.

    Args:
        run: the machine's, in this process.
        seed: of the run.
        limit: seconds; None for no limit.
        sink: told of progress.
        crew: processes that share the hands; None for this one alone.
        departed: told after every hand, in which a participant may have left the run.
    """
    started = time.monotonic()
    deadline = None if limit is None else started + limit
    wanted = run.plan.examples_of(run.name)
    everybody = [subject.name for _, subject in run.subjects]
    total = run.total = Dealt()
    if not everybody and run.unsupported:
        return total
    if run.plan.kept:
        kept, traces, diverged = run.perform_kept()
        total.add(kept, run.patience)
        departed(total)
        if traces:
            sink(Replayed(run.name, traces, diverged))
    before = total.examples
    for hand, dealt in _dealt(run, seed, wanted, crew, deadline, total):
        total.add(dealt, run.patience)
        departed(total)
        late = deadline is not None and time.monotonic() >= deadline
        total.cut = (total.cut or late) and total.examples - before < wanted
        over = is_over(total, everybody, run.patience)
        if hand.ends_round or over:
            used = (time.monotonic() - started) / limit if limit else 0.0
            share = 1.0 if total.cut else max(hand.done / wanted, min(1.0, used))
            sink(Progressed(run.name, total.examples, total.steps, share))
        if over:
            break
    return total


def _dealt(
    run: MachineRun, seed: int, wanted: int, crew: Crew | None, deadline: float | None, total: Dealt
) -> Iterator[tuple[Hand, Dealt]]:
    """The hands of a seed with what came of each, in order, whichever process has dealt them; none if all is over."""
    if is_over(total, [subject.name for _, subject in run.subjects], run.patience):
        return
    hands = hands_of(run.name, wanted, seed)
    if crew is not None:
        yield from crew.dealt(run, hands, deadline)
        return
    for hand in hands:
        yield hand, run.deal(hand, lambda: deadline is not None and time.monotonic() >= deadline)
