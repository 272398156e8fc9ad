"""Implementations that are servers: each of their machines has its own way of running."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final

from conformance.clauses.machines import SERVER_MACHINES
from conformance.implementations.forms import machine_of
from conformance.runs.server_run import run_server

if TYPE_CHECKING:
    from conformance.events import Result
    from conformance.runs.plan import Plan
    from conformance.runs.server_run import ServerRunContext

_RUNS: Final = {"broker": "conformance.runs.broker:BrokerRun", "wire": "conformance.runs.wire:WireRun"}
"""The run of each machine, by its path: its module needs an extra."""


def run_servers(plan: Plan, context: ServerRunContext) -> list[Result]:
    """Run the servers among the implementations of a plan, machine by machine."""
    if plan.attachment is not None:
        from conformance.runs.external_broker import check_external_broker  # noqa: PLC0415 -- part of an extra

        return [check_external_broker(plan.attachment, plan.releases[-1], context.sink, context.progress)]
    results: list[Result] = []
    for machine in SERVER_MACHINES:
        names = [name for name in plan.implementations if machine_of(name) == machine]
        if names and machine in plan.machines:
            kind = resolve_name(_RUNS[machine])
            results += (result for name in names for result in run_server(kind, plan, name, context))
    return results
