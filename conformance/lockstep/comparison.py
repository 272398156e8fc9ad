"""What is compared after a step, aspect by aspect: pairs of what was expected and what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.model import UNKNOWN
from conformance.implementations.replies import FAILURE
from conformance.lockstep.divergence import Divergence
from conformance.lockstep.file_differences import file_differences
from conformance.operations.state_diff import differing_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.lockstep.file_differences import Files
    from conformance.operations import Operation, Outcome

Pairs = dict[str, tuple[Any, Any]]

_TOLD: Final = 500
"""Characters of an error's text that a divergence carries."""


def pairs_of_subject(reference: tuple[Any, Any], subject: tuple[Any, Any], *, speaks_kafka: bool) -> Pairs:
    """What a subject is held to.

    Args:
        reference: its observation, and its files.
        subject: the same.
        speaks_kafka: the subject's refusals carry Kafka's own texts.
    """
    (expected, files), (actual, contents) = reference, subject
    mine, theirs = expected.outcome, actual.outcome
    return {
        "outcome": (mine[:2], _told(mine, theirs, speaks_kafka=speaks_kafka)),
        "text": (mine.text, theirs.text) if speaks_kafka else (None, None),
        # An implementation that is not Kafka need not tell its state, of a closed index for instance.
        "state": (expected.state, actual.state if actual.state or speaks_kafka else expected.state),
        "bytes": (files, contents),
    }


def _told(mine: Outcome, theirs: Outcome, *, speaks_kafka: bool) -> tuple[Any, ...]:
    """Return what is compared of a subject's outcome.

    A failure comes with its text, which says what went wrong with the program. So does an error of a foreign
    implementation in the place of a result: the reference's error has no text that says more.
    """
    if theirs.error == FAILURE:
        return theirs
    is_surprise = theirs.error is not None and mine.error is None and theirs.text and not speaks_kafka
    return (theirs.error, theirs.value, (theirs.text or "")[:_TOLD]) if is_surprise else theirs[:2]


def pairs_of_model(prediction: Any, reference: tuple[Any, Any]) -> Pairs:
    """What the reference is held to; nothing if it is as the model predicts, where the model knows."""
    observation, files = reference
    if (
        prediction.outcome[:2] == observation.outcome[:2]
        and (prediction.state is UNKNOWN or prediction.state == observation.state)
        and (prediction.file is UNKNOWN or prediction.file == files)
    ):
        return {}
    return {
        "outcome": (prediction.outcome[:2], observation.outcome[:2]),
        "state": (prediction.state, observation.state if prediction.state is not UNKNOWN else UNKNOWN),
        "bytes": (prediction.file, files if prediction.file is not UNKNOWN else UNKNOWN),
    }


def difference(
    step: int,
    operation: Operation,
    who: tuple[str, str],
    pairs: Mapping[str, tuple[Any, Any]],
    clauses: tuple[str, ...],
    *,
    against: str = "kidx",
    named: Callable[[Any], Files] | None = None,
    promised: bool = True,
) -> Divergence | None:
    """The difference between what was expected and what there is; None if there is none.

    Args:
        step: 0-based index of the step into the trace.
        operation: the operation of that step.
        who: name and release of the implementation.
        pairs: for each aspect, what was expected and what there is; of two directories, files that differ are told.
        clauses: ids of the clauses that the step exercises.
        against: what it is compared with.
        named: the files of a pair by their names; None if it has none.
        promised: whether a broker may come to such a step.
    """
    different = {aspect: pair for aspect, pair in pairs.items() if pair[0] != pair[1]}
    if not different:
        return None
    expected, actual = next(iter(different.values()))
    if isinstance(expected, dict):
        expected, actual = only_different(expected, actual)
    fields = tuple(name for name, _, _ in differing_fields(*different["state"])) if "state" in different else ()
    files = () if named is None or "bytes" not in different else file_differences(*map(named, different["bytes"]))
    return Divergence(
        step, operation, *who, against, tuple(different), expected, actual, clauses, fields, files, promised
    )


def only_different(
    mine: Mapping[str, bytes], theirs: Mapping[str, bytes]
) -> tuple[tuple[tuple[str, bytes | None], ...], tuple[tuple[str, bytes | None], ...]]:
    """Of two directories, name and content of the files that are not the same; None for one that is missing."""
    names = sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))
    return tuple((name, mine.get(name)) for name in names), tuple((name, theirs.get(name)) for name in names)
