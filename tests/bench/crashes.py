"""Table of the defects that a crash hides: ``python -m tests.bench.crashes [--profile ci]``.

Each row is a program with two defects: it crashes in some calls of one operation, and it breaks a promise in another
way. The table says whether a run at level must finds the second defect in the program that crashes, and in the same
program without the crash.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.events import Diverged
from conformance.implementations.mutants import MUTANTS
from conformance.lockstep.divergence import CRASH_ASPECT
from conformance.operations.outcomes import FAILURE
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import run
from conformance.scratch import scratch_directory
from tests.bench.frame import Rows, bench, machine

if TYPE_CHECKING:
    from conformance.events import Event
    from conformance.implementations.mutants import Mutant


class Crash(NamedTuple):
    """Calls of a method that crash if the condition holds, for the object and the arguments."""

    name: str
    method: str
    holds: Callable[..., bool]


class Found(NamedTuple):
    """Result of a run."""

    crashed: bool
    other: bool


OF_INDEXES: Final = (
    Crash("lookup below the base", "lookup", lambda index, target: target < index.base_offset),
    Crash("lookup in an empty index", "lookup", lambda index, _: index.entries == 0),
    Crash("every lookup", "lookup", lambda *_: True),
    Crash("append to a full index", "append", lambda index, *_: index.is_full),
    Crash("truncation", "truncate_to", lambda *_: True),
    Crash("upper bound past the end", "fetch_upper_bound_offset", lambda _, start, size: start.position + size > 99),
)
OF_LOGS: Final = (
    Crash("truncation", "truncate_to", lambda log, offset: offset < log.end_offset),
    Crash("special targets", "fetch_offset_by_timestamp", lambda _, target: target < -2),
    Crash("append of several batches", "append_as_follower", lambda _, records, *__, **___: len(records) > 200),
    Crash("delete records", "delete_records", lambda *_: True),
)
PAIRS: Final = {
    "offset": (OF_INDEXES, ("looks-strictly-below", "keeps-the-equal-offset", "ignores-the-equal-offset")),
    "log": (OF_LOGS, ("cuts-one-offset-too-late", "finds-deleted-records", "retains-one-segment-more")),
}
"""For each machine, the crashes and the other defects."""


def with_crash(mutant: Mutant, crash: Crash) -> Mutant:
    """Return a defect together with a crash."""
    base = mutant.defect

    def crashing(self: Any, *arguments: Any, **named: Any) -> Any:
        if crash.holds(self, *arguments, **named):
            raise ZeroDivisionError(crash.name)
        return getattr(super(both, self), crash.method)(*arguments, **named)

    both = type("Both", (base,), {crash.method: crashing})
    name = f"{mutant.name}-and-{crash.name.replace(' ', '-')}"
    return type(mutant)(name, mutant.title, mutant.machine, mutant.clause, mutant.release, lambda: both)


def found_in(mutant: Mutant, profile: str, seed: int) -> Found:
    """Run a program at level must, and return the result."""
    MUTANTS[mutant.name] = mutant
    events: list[Event] = []
    with scratch_directory() as scratch:
        plan = Plan(
            (mutant.release,),
            (f"mutant:{mutant.name}",),
            (mutant.machine,),
            PROFILES[profile],
            scratch,
            seed=seed,
            level="must",
            replays=False,
            shrink_time=0,
        )
        run(plan, events.append)
    failures = [event.failure for event in events if isinstance(event, Diverged)]
    crashes = [FAILURE in str(failure["actual"]) or CRASH_ASPECT in failure["aspects"] for failure in failures]
    return Found(any(crashes), not all(crashes))


def rows(given: argparse.Namespace) -> Rows:
    """Yield a row for each pair."""
    started, alone, lost = time.process_time(), dict[str, Found](), Counter[str]()
    pairs = [(crash, name) for each in given.machine or PAIRS for crash, name in itertools.product(*PAIRS[each])]
    words = ("no", "yes")
    for crash, name in pairs[: given.only]:
        mutant = MUTANTS[name]
        if name not in alone:
            alone[name] = found_in(mutant, given.profile, given.seed)
        both = found_in(with_crash(mutant, crash), given.profile, given.seed)
        lost[words[both.other]] += alone[name].other
        yield mutant.machine, crash.name, name, words[both.crashed], words[alone[name].other], words[both.other]
    yield (
        f"profile {given.profile}, {machine()}: {lost['yes']} of {lost.total()} are found in spite of the crash"
        f" · {time.process_time() - started:.0f} s of processor time"
    )


if __name__ == "__main__":
    bench(
        __doc__,
        ("machine", "crash", "other defect", "crash found", "other found without the crash", "with the crash"),
        rows,
        profile="dev",
        machine=[*PAIRS],
        seed=0,
        only=(int, "Run this many pairs."),
    )
