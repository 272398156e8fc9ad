"""Implementations that are servers: each kind has its own machine and its own way of running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.implementations.forms import is_server
from conformance.implementations.spec import parse_spec

if TYPE_CHECKING:
    from conformance.events import Result
    from conformance.runs.plan import Plan
    from conformance.runs.server_run import ServerRun, ServerRunContext


def run_servers(plan: Plan, context: ServerRunContext) -> list[Result]:
    """Run the servers among the implementations of a plan, once per kind."""
    kinds: dict[str, list[str]] = {}
    for name in filter(is_server, plan.implementations):
        kinds.setdefault("broker" if parse_spec(name).form == "broker" else "wire", []).append(name)
    return [result for machine, names in kinds.items() for result in _run_kind(plan, machine, names, context)]


def _run_kind(plan: Plan, machine: str, names: list[str], context: ServerRunContext) -> list[Result]:
    if machine == "broker" and plan.attachment is not None:
        from conformance.runs.external_broker import run_attached  # noqa: PLC0415

        return [run_attached(plan.attachment, plan.releases[-1], context.sink, context.progress)]
    if machine not in plan.machines:
        return []
    from conformance.runs.server_run import run_server  # noqa: PLC0415

    kind: type[ServerRun]
    if machine == "broker":
        from conformance.runs.broker import BrokerRun  # noqa: PLC0415

        kind = BrokerRun
    else:
        from conformance.runs.wire import WireRun  # noqa: PLC0415

        kind = WireRun
    return [result for name in names for result in run_server(kind, plan, name, context)]
