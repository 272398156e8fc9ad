"""Runs of one server by a test."""

from __future__ import annotations

from dataclasses import replace

from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.server_run import ServerRunContext, run_server


def results_of(kind, releases, name, traces, ledger, *, amount=None, seed=1, sink=None, announce=None, **plan):
    """Return the results of a class of runs, with an amount of work that replaces the amount of the profile."""
    profile = PROFILES["dev"] if amount is None else replace(PROFILES["dev"], **{kind.machine: amount})
    whole = Plan(tuple(releases), (name,), (kind.machine,), profile, traces, **plan)
    silent = lambda _: None  # noqa: E731
    context = ServerRunContext(seed, lambda: None, sink or silent, ledger, announce=announce or silent)
    return run_server(kind, whole, name, context)
