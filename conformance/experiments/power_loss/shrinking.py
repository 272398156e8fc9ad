"""Shrinking of a finding's operations: each unnecessary one is removed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import TYPE_CHECKING

from conformance.experiments.power_loss.failures import Failure, fewest, moments
from conformance.experiments.power_loss.judging import Judge
from conformance.experiments.power_loss.signatures import Finding, Signature, kind_of, signature_of

if TYPE_CHECKING:
    from conformance.experiments.power_loss.experiment import Explorer
    from conformance.experiments.power_loss.lives import Life
    from conformance.operations import Operation

_MOST = 64
"""Maximum number of losses that are tried at one moment."""


def shrunk(finding: Finding, explorer: Explorer, seconds: float) -> Finding:
    """Return the same finding with fewer operations, as far as time allows.

    Args:
        finding: the finding.
        explorer: explorer of its release.
        seconds: time limit.
    """
    end = time.monotonic() + seconds
    best = _of(finding.life.operations[: finding.failure.moment.step + 1], finding, explorer) or finding
    width = max(1, (len(best.life.operations) - 1) // 2)
    while width:
        at = len(best.life.operations) - 1 - width
        while at >= 1 and time.monotonic() < end:
            operations = best.life.operations
            smaller = _of((*operations[:at], *operations[at + width :]), finding, explorer)
            if smaller is not None:
                best = smaller
            at -= width
        width //= 2
    return best


def _of(operations: Sequence[Operation], finding: Finding, explorer: Explorer) -> Finding | None:
    """Return the same finding at the last of these operations, or None."""
    life = explorer.recorder.perform(operations)
    if len(life.operations) < len(operations):
        return None
    judge = Judge(life, explorer.opener)
    wanted = finding.signature
    for failure in _candidates(life, wanted):
        shown = judge.shows(failure, wanted.promise)
        if shown and signature_of(life, failure, wanted.promise).lost <= wanted.lost:
            smallest = fewest(failure, lambda other: bool(judge.shows(other, wanted.promise)))
            signature = signature_of(life, smallest, wanted.promise)
            if bool(signature.lost) == bool(wanted.lost):
                return replace(
                    finding,
                    life=life,
                    failure=smallest,
                    text=judge.shows(smallest, wanted.promise),
                    signature=signature,
                )
    return None


def _candidates(life: Life, wanted: Signature) -> Iterator[Failure]:
    """Yield failures at the last operation whose losses are among the kinds that the finding lost."""
    for moment in moments(life):
        if moment.step < len(life.operations) - 1:
            continue
        options = {
            item: values for item, values in moment.disk.options().items() if kind_of(moment.disk, item) in wanted.lost
        }
        chosen = product(*([None, *values] for values in options.values()))
        for restart in moment.restarts:
            if restart.clean != wanted.clean:
                continue
            for values in islice(chosen, _MOST):
                pairs = zip(options, values, strict=True)
                yield Failure(moment, {item: value for item, value in pairs if value is not None}, restart)
