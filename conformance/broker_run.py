"""``-i broker``: a real broker of each release goes through the scenario, and its files are held to its answers."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from conformance.clauses import load_clauses
from conformance.events import Diverged, Progressed, Result
from conformance.kafka.broker import choose, new_broker
from conformance.kafka.broker.scenario import run_scenario

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.events import Sink, Verdict
    from conformance.kafka.broker.backend import Choice, Chosen
    from conformance.kafka.broker.scenario import Mismatch, ScenarioResult
    from conformance.kafka.fetch import Progress

MACHINE: Final = "scenario"


def run_brokers(
    releases: Sequence[str], seed: int, sink: Sink, progress: Progress | None = None, choice: Choice = "auto"
) -> list[Result]:
    """One broker of each release after the other, which is always stopped.

    Args:
        releases: locked releases.
        seed: decides what is produced.
        sink: told of every mismatch and of each release's result.
        progress: told while jars are being fetched.
        choice: in containers or as local processes.

    Raises:
        NoEngineError: containers are asked for, and no engine answers.
        NoImageError: containers are asked for, and the engine has no image of a release.
        BrokerError: a broker did not start, died, or did not do what it was asked; the line names its log.
    """
    results: list[Result] = []
    for number, release in enumerate(releases):
        started = time.monotonic()
        chosen = choose(release, choice)
        with new_broker(release, chosen.backend, progress=progress) as broker:
            outcome = run_scenario(broker, seed=seed)
        for mismatch in outcome.mismatches:
            sink(_diverged(mismatch, outcome))
        result = _result(outcome, chosen, time.monotonic() - started)
        sink(
            Progressed(MACHINE, number + 1, sum(r.steps for r in results) + result.steps, (number + 1) / len(releases))
        )
        sink(result)
        results.append(result)
    return results


def _diverged(mismatch: Mismatch, outcome: ScenarioResult) -> Diverged:
    catalogue = load_clauses()
    clause = catalogue.get(mismatch.clause)
    failure = {
        "step": -1,
        "party": f"broker {outcome.release}",
        "release": outcome.release,
        "against": "kidx",
        "aspects": ["outcome"],
        "expected": str(mismatch.expected),
        "actual": str(mismatch.actual),
        "clauses": [mismatch.clause],
    }
    return Diverged(
        MACHINE,
        failure,
        () if clause is None else ((clause.id, clause.level, clause.statement),),
        (mismatch.subject,),
        "",
        f"conformance run -i broker --kafka {outcome.release} --seed {outcome.seed}",
        "broker",
    )


def _result(outcome: ScenarioResult, chosen: Chosen, seconds: float) -> Result:
    """The scenario as a row: an example is a broker's life, a step an answer that was compared."""
    diverging = {mismatch.clause for mismatch in outcome.mismatches}
    verdicts: dict[str, Verdict] = dict.fromkeys(sorted(diverging & load_clauses().keys()), "diverges")
    details = {key: value for key, value in asdict(outcome).items() if key != "mismatches"}
    details |= {"backend": chosen.backend, "why_not_a_container": chosen.why or None}
    return Result(
        MACHINE,
        "broker",
        outcome.release,
        1,
        outcome.answers,
        seconds,
        len(outcome.mismatches),
        dict.fromkeys(verdicts, 1),
        verdicts,
        details,
    )
