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

from rich.console import Console

from conformance.events import Diverged
from conformance.implementations.mutants import MUTANTS
from conformance.lockstep.divergence import CRASH_ASPECT
from conformance.operations.outcomes import FAILURE
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import run
from conformance.scratch import scratch_directory
from tests.bench.table_report import machine, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def rows(machines: tuple[str, ...], profile: str, seed: int, only: int | None) -> Iterator[tuple[str, ...]]:
    """Yield a row for each pair."""
    alone: dict[str, Found] = {}
    pairs = [(crash, name) for each in machines for crash, name in itertools.product(*PAIRS[each])]
    for crash, name in pairs[:only]:
        mutant = MUTANTS[name]
        if name not in alone:
            alone[name] = found_in(mutant, profile, seed)
        both = found_in(with_crash(mutant, crash), profile, seed)
        words = ("no", "yes")
        yield mutant.machine, crash.name, name, words[both.crashed], words[alone[name].other], words[both.other]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", choices=PROFILES, default="dev")
    parser.add_argument("--machine", action="append", choices=PAIRS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="Run this many pairs.")
    options = parser.parse_args()
    started = time.process_time()
    table = list(rows(tuple(options.machine or PAIRS), options.profile, options.seed, options.only))
    heads = ("machine", "crash", "other defect", "crash found", "other found without the crash", "with the crash")
    console = Console(width=160)
    print_table(console, heads, table)
    lost = Counter(row[4:] for row in table)
    console.print(
        f"profile {options.profile}, {machine()}: {lost['yes', 'yes']} of {lost['yes', 'yes'] + lost['yes', 'no']} are"
        f" found in spite of the crash · {time.process_time() - started:.0f} s of processor time"
    )


if __name__ == "__main__":
    main()
