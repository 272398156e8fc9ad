"""Shrinking of a finding's operations: each unnecessary one is removed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import TYPE_CHECKING

from conformance.studies.power_loss.checking import Checker
from conformance.studies.power_loss.failures import Failure, crash_points, fewest
from conformance.studies.power_loss.signatures import Finding, Signature, kind_of, signature_of

if TYPE_CHECKING:
    from conformance.operations import Operation
    from conformance.studies.power_loss.explorer import LogExplorer
    from conformance.studies.power_loss.histories import History

_MOST = 64
"""Maximum number of losses that are tried at one crash point."""


def shrunk(finding: Finding[History], explorer: LogExplorer, seconds: float) -> Finding[History]:
    """Return the same finding with fewer operations, as far as time allows.

    Args:
        finding: the finding.
        explorer: explorer of its release.
        seconds: time limit.
    """
    end = time.monotonic() + seconds
    best = _of(finding.history.operations[: finding.failure.crash_point.step + 1], finding, explorer) or finding
    width = max(1, (len(best.history.operations) - 1) // 2)
    while width:
        at = len(best.history.operations) - 1 - width
        while at >= 1 and time.monotonic() < end:
            operations = best.history.operations
            smaller = _of((*operations[:at], *operations[at + width :]), finding, explorer)
            if smaller is not None:
                best = smaller
            at -= width
        width //= 2
    return best


def _of(operations: Sequence[Operation], finding: Finding[History], explorer: LogExplorer) -> Finding[History] | None:
    """Return the same finding at the last of these operations, or None."""
    history = explorer.recorder.perform(operations)
    if len(history.operations) < len(operations):
        return None
    checker = Checker(history, explorer.opener)
    wanted = finding.signature
    for failure in _candidates(history, wanted):
        shown = checker.shows(failure, wanted.guarantee)
        if shown and signature_of(history, failure, wanted.guarantee).lost <= wanted.lost:
            smallest = fewest(failure, lambda other: bool(checker.shows(other, wanted.guarantee)))
            signature = signature_of(history, smallest, wanted.guarantee)
            if bool(signature.lost) == bool(wanted.lost):
                return replace(
                    finding,
                    history=history,
                    failure=smallest,
                    text=checker.shows(smallest, wanted.guarantee),
                    signature=signature,
                )
    return None


def _candidates(history: History, wanted: Signature) -> Iterator[Failure]:
    """Yield failures at the last operation whose losses are among the kinds that the finding lost."""
    for crash_point in crash_points(history):
        if crash_point.step < len(history.operations) - 1:
            continue
        options = {
            item: values
            for item, values in crash_point.disk.options().items()
            if kind_of(crash_point.disk, item) in wanted.lost
        }
        chosen = product(*([None, *values] for values in options.values()))
        for restart in crash_point.restarts:
            if restart.clean != wanted.clean:
                continue
            for values in islice(chosen, _MOST):
                pairs = zip(options, values, strict=True)
                yield Failure(crash_point, {item: value for item, value in pairs if value is not None}, restart)
