"""All examples of one machine, from the traces that are kept to the last hand, added up in the order of the seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from conformance.events import Progressed, Replayed
from conformance.runs.dealt import FAILURES, Dealt, is_over
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
        departed: told of what was dealt after every hand in which a participant left the run.
    """
    plan, wanted = run.plan, run.plan.examples_of(run.name)
    patience = 1 if plan.stop_at_first else FAILURES
    everybody = [subject.name for _, subject in run.subjects]
    started = time.monotonic()
    total = Dealt()
    if not everybody and run.unsupported:
        return total
    if plan.kept:
        kept, traces, diverged = run.perform_kept()
        total.add(kept, patience)
        departed(total)
        if traces:
            sink(Replayed(run.name, traces, diverged))
    before = total.examples
    deadline = None if limit is None else started + limit

    def is_late() -> bool:
        return deadline is not None and time.monotonic() >= deadline

    if is_over(total, everybody, patience):
        return total
    for hand, dealt in _dealt(run, seed, wanted, crew, deadline):
        gone = len(total.departed)
        total.add(dealt, patience)
        if len(total.departed) > gone:
            departed(total)
        over = is_over(total, everybody, patience)
        total.cut = (total.cut or is_late()) and total.examples - before < wanted
        if hand.ends_round or over or total.cut:
            share = 1.0 if total.cut else hand.done / wanted
            if limit:
                share = max(share, min(1.0, (time.monotonic() - started) / limit))
            sink(Progressed(run.name, total.examples, total.steps, share))
        if over or total.cut:
            break
    return total


def _dealt(
    run: MachineRun, seed: int, wanted: int, crew: Crew | None, deadline: float | None
) -> Iterator[tuple[Hand, Dealt]]:
    """The hands of a seed with what came of each, in order, whichever process has dealt them."""
    hands = hands_of(run.name, wanted, seed)
    if crew is not None:
        yield from crew.dealt(run, hands, deadline)
        return
    for hand in hands:
        yield hand, run.deal(hand, lambda: deadline is not None and time.monotonic() >= deadline)
