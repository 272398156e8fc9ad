"""Implementations that are servers: each kind has its own machine and its own way of running."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.implementations.forms import is_server
from conformance.implementations.spec import parse_spec

if TYPE_CHECKING:
    from conformance.events import Result, Sink
    from conformance.expectations import ExpectationTracker
    from conformance.kafka.jar_fetch import Progress
    from conformance.runs.plan import Plan


class ServerRunContext(NamedTuple):
    """Context of a run of servers, in addition to the plan.

    Attributes:
        seed: The seed of all random choices.
        seconds_left: A function that returns the remaining time in seconds; None without a limit.
        sink: A callback that receives every event.
        ledger: The expectations.
        progress: A callback that receives the progress of downloads.
        announce: A callback that receives a description of changes to servers that do not belong to the harness.
    """

    seed: int
    seconds_left: Callable[[], float | None]
    sink: Sink
    ledger: ExpectationTracker
    progress: Progress | None
    announce: Callable[[str], None]


def _run_brokers(plan: Plan, names: Sequence[str], circumstances: ServerRunContext) -> list[Result]:
    seed, seconds_left, sink, ledger, progress, _ = circumstances
    if plan.attachment is not None:
        from conformance.runs.external_broker import run_attached  # noqa: PLC0415 -- part of an extra

        return [run_attached(plan.attachment, plan.releases[-1], sink, progress)]
    if "broker" not in plan.machines:
        return []
    from conformance.runs.broker import Budget, Run, run_brokers  # noqa: PLC0415 -- part of an extra

    budget = Budget.of_profile(
        plan.profile.name,
        examples=plan.max_examples,
        cycles=plan.kill_cycles,
        seconds=seconds_left(),
        patience=plan.shrink_time,
    )
    results: list[Result] = []
    for server in names:
        run = Run(seed, budget, plan.traces, sink, ledger, plan.broker, server)
        results += run_brokers(plan.releases, run, progress)
    return results


def _run_wires(plan: Plan, names: Sequence[str], circumstances: ServerRunContext) -> list[Result]:
    if "wire" not in plan.machines:
        return []
    from conformance.runs.wire import WireRun, run_wire  # noqa: PLC0415 -- part of an extra
    from conformance.runs.wire_options import WireOptions  # noqa: PLC0415

    seed, seconds_left, sink, ledger, _, announce = circumstances
    results: list[Result] = []
    for name in names:
        run = WireRun(
            name,
            seed,
            plan.profile.name,
            plan.level,
            plan.traces,
            sink,
            ledger,
            topics=plan.max_examples,
            seconds=seconds_left(),
            shrink_time=plan.shrink_time,
            options=plan.wire or WireOptions(),
        )
        results += run_wire(plan.releases, run, announce)
    return results


_RUNS: Final[dict[str, Callable[[Plan, Sequence[str], ServerRunContext], list[Result]]]] = {
    "broker": _run_brokers,
    "wire": _run_wires,
    "subject": _run_wires,
}
"""By the name of a form: a function that executes the part of a plan for the servers of these names."""


def run_servers(plan: Plan, circumstances: ServerRunContext) -> list[Result]:
    """Run the servers among the implementations of a plan, once per kind."""
    kinds: dict[str, list[str]] = {}
    for name in filter(is_server, plan.implementations):
        kinds.setdefault(parse_spec(name).form, []).append(name)
    return [result for kind, names in kinds.items() for result in _RUNS[kind](plan, names, circumstances)]
