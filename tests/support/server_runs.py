"""Runs of one server in a test."""

from __future__ import annotations

from dataclasses import replace

from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.server_run import ServerRunContext, run_server


def results_of(kind, releases, name, traces, ledger, *, amount=None, seed=1, sink=None, announce=None, **plan):
    """Return the results of runs of a class; ``amount`` replaces the amount of work in the profile."""
    profile = PROFILES["dev"] if amount is None else replace(PROFILES["dev"], **{kind.machine: amount})
    whole = Plan(tuple(releases), (name,), (kind.machine,), profile, traces, **plan)
    silent = lambda _: None  # noqa: E731
    context = ServerRunContext(seed, lambda: None, sink or silent, ledger, announce=announce or silent)
    return run_server(kind, whole, name, context)
