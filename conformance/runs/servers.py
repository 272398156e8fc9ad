"""Implementations that are servers: each kind has a machine of its own, and its own way to be run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.implementations.forms import form_of, is_server

if TYPE_CHECKING:
    from conformance.events import Result, Sink
    from conformance.expectations import Ledger
    from conformance.kafka.fetch import Progress
    from conformance.runs.plan import Plan


class Circumstances(NamedTuple):
    """What a run of servers has to know besides the plan.

    Attributes:
        seed: decides what is drawn.
        seconds_left: None without a limit.
        sink: told of every event.
        ledger: the known differences.
        progress: told while jars are being fetched.
    """

    seed: int
    seconds_left: float | None
    sink: Sink
    ledger: Ledger
    progress: Progress | None


def _run_brokers(plan: Plan, circumstances: Circumstances) -> list[Result]:
    seed, seconds_left, sink, ledger, progress = circumstances
    if plan.attachment is not None:
        from conformance.runs.attached import run_attached  # noqa: PLC0415 -- part of an extra

        return [run_attached(plan.attachment, plan.releases[-1], sink, progress)]
    if "broker" not in plan.machines:
        return []
    from conformance.runs.broker import Budget, Run, run_brokers  # noqa: PLC0415 -- part of an extra

    budget = Budget.of_profile(
        plan.profile.name,
        examples=plan.max_examples,
        cycles=plan.kill_cycles,
        seconds=seconds_left,
        patience=plan.shrink_time,
    )
    results: list[Result] = []
    for server in filter(is_server, plan.implementations):
        run = Run(seed, budget, plan.traces, sink, ledger, plan.broker, server)
        results += run_brokers(plan.releases, run, progress)
    return results


_RUNS: Final[dict[str, Callable[[Plan, Circumstances], list[Result]]]] = {"broker": _run_brokers}
"""By the name of a form: carries out the part of a plan that is about such servers."""


def run_servers(plan: Plan, circumstances: Circumstances) -> list[Result]:
    """Runs the servers that the harness starts itself among the implementations of a plan, each kind once."""
    forms = [form_of(name) for name in plan.implementations if is_server(name)]
    kinds = dict.fromkeys(form.name for form in forms if form is not None)
    return [result for kind in kinds if kind in _RUNS for result in _RUNS[kind](plan, circumstances)]
