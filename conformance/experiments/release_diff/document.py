"""JSON document of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.clauses import load_clauses
from conformance.experiments.release_diff.text_report import changes, headline
from conformance.operations.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.experiments.release_diff.comparison import Comparison
    from conformance.experiments.release_diff.difference import Difference
    from conformance.experiments.release_diff.error_texts import TextChange
    from conformance.experiments.release_diff.implicated import ImplicatedClauses
    from conformance.experiments.release_diff.sides import Side
    from conformance.operations import Json
    from conformance.verdict import Conclusion


_WORDS: Final[dict[Conclusion, str]] = {
    "diverges": "differs",
    "conforms": "same",
    "incomplete": "incomplete",
    "nothing-compared": "nothing-compared",
}


def to_json(comparison: Comparison) -> Json:
    """Return the document that ``conformance diff --json`` prints: verdict, differences, texts, and totals."""
    plan = comparison.plan
    return {
        "verdict": _WORDS[comparison.compared(int(comparison.differs)).conclusion],
        "old": plan.old,
        "new": plan.new,
        "machines": list(plan.machines),
        "seed": plan.seed,
        "differences": [_difference(difference) for difference in comparison.differences],
        "texts": [_text(change, plan.sides) for change in comparison.texts],
        "examples": comparison.examples,
        "steps": comparison.steps,
        "seconds": comparison.seconds,
        "traces_not_executed": comparison.not_replayed,
        "missing": list(comparison.missing),
    }


def _difference(difference: Difference) -> Json:
    answers = zip(difference.old.observations, difference.new.observations, strict=False)
    return {
        "machine": difference.machine,
        "headline": headline(difference),
        "operation": difference.divergence.operation.name,
        "aspects": list(difference.divergence.aspects),
        "changes": dict(changes(difference)),
        "clauses": _clauses(difference.implicated),
        "steps": [operation.to_json() for operation in difference.operations],
        "answers": [
            [None if seen is None else seen.outcome.to_json() for seen in (before, after)] for before, after in answers
        ],
        "unobserved": list(difference.unobserved),
        "also": [{"machine": machine, "operation": name, "aspects": list(of)} for machine, name, of in difference.also],
        "more": [str(trace) for trace in difference.more],
        "conforms": {record.side.label: record.conforms for record in (difference.old, difference.new)},
        **_trace(difference.trace, (difference.old.side, difference.new.side)),
    }


def _text(change: TextChange, sides: Sequence[Side]) -> Json:
    return {
        "machine": change.machine,
        "operation": change.operations[-1].name,
        "error": change.wording.error,
        "texts": [change.wording.old, change.wording.new],
        "clauses": _clauses(change.implicated),
        "steps": [operation.to_json() for operation in change.operations],
        **_trace(change.trace, sides),
    }


def _clauses(implicated: ImplicatedClauses) -> Json:
    catalogue = load_clauses()
    return {
        side: [{"id": id_, "level": catalogue[id_].level, "statement": catalogue[id_].statement} for id_ in ids]
        for side, ids in implicated._asdict().items()
    }


def _trace(path: Path, sides: Sequence[Side]) -> Json:
    return {
        "id": Trace.load(path).id,
        "trace": str(path),
        "replay": [side.replay(path) for side in sides],
    }
