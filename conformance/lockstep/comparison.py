"""Comparison of two participants after a step, aspect by aspect."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.verdict_levels import READ_WHEN_NEEDED
from conformance.implementations.model import UNKNOWN
from conformance.lockstep.divergence import Divergence, FileDifference, file_differences
from conformance.operations.outcomes import FAILURE
from conformance.operations.state_diff import differing_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from conformance.lockstep.divergence import Entries, Files
    from conformance.operations import Operation, Outcome

Pairs = dict[str, tuple[Any, Any]]
"""The expected and the actual value of each aspect: outcome, text (of an error), state, bytes (of the files)."""

_MESSAGE_LENGTH: Final = 500
"""The maximum length of an error message in a divergence, characters."""


def compare_with_reference(reference: tuple[Any, Any], subject: tuple[Any, Any], *, speaks_kafka: bool) -> Pairs:
    """Return the pairs for the comparison of a subject with its reference.

    Args:
        reference: The reference's observation and files.
        subject: The subject's observation and files.
        speaks_kafka: True if the subject's errors have Kafka's messages.
    """
    (expected, files), (actual, contents) = reference, subject
    expected_outcome, actual_outcome = expected.outcome, actual.outcome
    return {
        "outcome": (
            expected_outcome[:2],
            _compared_outcome(expected_outcome, actual_outcome, speaks_kafka=speaks_kafka),
        ),
        "text": (expected_outcome.text, actual_outcome.text) if speaks_kafka else (None, None),
        # An implementation that is not Kafka need not report its state, for example of a closed index.
        "state": (expected.state, actual.state if actual.state or speaks_kafka else expected.state),
        "bytes": (files, contents),
    }


def _compared_outcome(expected: Outcome, actual: Outcome, *, speaks_kafka: bool) -> tuple[Any, ...]:
    """Return the part of a subject's outcome that is compared.

    It includes the message of a failure of the program. It also includes the message of an unexpected error of an
    implementation that is not Kafka, so that the report shows it.
    """
    if actual.error == FAILURE:
        return actual
    is_surprise = actual.error is not None and expected.error is None and actual.text and not speaks_kafka
    return (actual.error, actual.value, (actual.text or "")[:_MESSAGE_LENGTH]) if is_surprise else actual[:2]


def compare_with_model(prediction: Any, reference: tuple[Any, Any]) -> Pairs:
    """Return the pairs for the comparison of a reference with its model; empty if the model predicted all values.

    Values that the model does not predict (``UNKNOWN``) are not compared.
    """
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


def build_divergence(
    step: int,
    operation: Operation,
    who: tuple[str, str],
    pairs: Mapping[str, tuple[Any, Any]],
    clauses: tuple[str, ...],
    *,
    against: str = "kidx",
    named: Callable[[Any], Files] | None = None,
    promised: bool = True,
    rests_on: Callable[[Divergence], Collection[str]] = lambda _: (),
    carried: Callable[[Divergence], Collection[str]] = lambda _: (),
    known: Iterable[Entries | None] = (),
    reports_state: bool = True,
) -> Divergence | None:
    """Return the divergence between the expected and the actual values, or None if they are equal.

    Args:
        step: The 0-based index of the step in the trace.
        operation: The operation of that step.
        who: The name and the release of the implementation.
        pairs: For each aspect, the expected and the actual value; of two directories, only differing files are
            reported.
        clauses: The ids of the clauses that the step exercises.
        against: The name of the other side.
        named: A function that returns the files of a side by name; None if files are not classified.
        promised: True if a broker can execute such a step.
        rests_on: A function that returns the clauses by which the state came about that a difference depends on.
        carried: A function that returns the clauses by which the other length came about, if it differed before.
        known: The number of entries in the index files of both sides by suffix, as far as the states have it.
        reports_state: False if the implementation reported no state.
    """
    different = {aspect: pair for aspect, pair in pairs.items() if pair[0] != pair[1]}
    if not different:
        return None
    expected, actual = next(iter(different.values()))
    if isinstance(expected, dict):
        expected, actual = differing_files(expected, actual)
    states = tuple(differing_fields(*different["state"])) if "state" in different else ()
    fields = tuple(name for name, _, _ in states)
    files: tuple[FileDifference, ...] = ()
    if named is not None and "bytes" in different:
        files = file_differences(named(different["bytes"][0]), named(different["bytes"][1]), *known)
    found = Divergence(
        step, operation, *who, against, tuple(different), expected, actual, clauses, fields, files, promised
    )
    unread = tuple(name for name, *values in states if name in READ_WHEN_NEEDED and None in values)
    rests, length = tuple(rests_on(found)), tuple(carried(found))
    return replace(found, rests_on=rests, carried=length, unread=unread, reports_state=reports_state)


def differing_files(
    expected: Mapping[str, bytes], actual: Mapping[str, bytes]
) -> tuple[tuple[tuple[str, bytes | None], ...], tuple[tuple[str, bytes | None], ...]]:
    """Return name and content of the files that differ between two directories; a missing file has None."""
    names = sorted(name for name in {*expected, *actual} if expected.get(name) != actual.get(name))
    return tuple((name, expected.get(name)) for name in names), tuple((name, actual.get(name)) for name in names)
