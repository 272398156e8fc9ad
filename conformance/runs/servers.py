"""Implementations that are servers: each kind has a machine of its own, and its own way to be run and replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.implementations.forms import form_of, is_server

if TYPE_CHECKING:
    from conformance.events import Result, Sink
    from conformance.expectations import Ledger
    from conformance.kafka.fetch import Progress
    from conformance.lockstep import Divergence
    from conformance.operations import Observation, Operation
    from conformance.runs.plan import Plan

Tell = Callable[[int, "Operation", "Observation | None", "Divergence | None"], None]


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


class Server(NamedTuple):
    """A kind of server.

    Attributes:
        machine: the name of its machine.
        run: carries out the part of a plan that is about it.
        replay: performs a trace of its machine in the dialect of a release; the difference, and the steps until then.
    """

    machine: str
    run: Callable[[Plan, Circumstances], list[Result]]
    replay: Callable[[Sequence[Operation], str, Tell, Progress | None], tuple[Divergence | None, int]]


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
    return run_brokers(plan.releases, Run(seed, budget, plan.traces, sink, ledger, plan.broker), progress)


def _replay_on_broker(
    operations: Sequence[Operation], release: str, tell: Tell, progress: Progress | None
) -> tuple[Divergence | None, int]:
    from conformance.runs.broker_replay import replay_on_broker  # noqa: PLC0415 -- part of an extra

    return replay_on_broker(operations, release, tell, progress)


SERVERS: Final = {"broker": Server("broker", _run_brokers, _replay_on_broker)}
"""Every kind of server by the name of its form."""
SERVER_MACHINES: Final = {server.machine: server for server in SERVERS.values()}


def servers_of(plan: Plan) -> list[Server]:
    """The kinds of servers among the implementations of a plan, each once."""
    forms = [form_of(name) for name in plan.implementations if is_server(name)]
    return [SERVERS[name] for name in dict.fromkeys(form.name for form in forms if form is not None)]
