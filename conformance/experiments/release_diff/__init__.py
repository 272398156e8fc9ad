"""``conformance diff``: differences in behaviour between two releases of Kafka.

The classes of the *new* release are compared with the reference in the dialect of the *old* release. Classes of the
old release take part as a control, and must not diverge. Every divergence of the new classes is a difference between
the releases::

    found = compare(Plan("3.9.1", "3.9.2", ("offset",), traces=directory))
    for difference in found.differences:
        print(describe(difference))

Each difference is shrunk, executed by both releases for its description (:mod:`.execution`), and saved as a trace. From
then on it is expected. The search ends when it finds no new differences (:mod:`.comparison`). Two differences are the
same if the same clauses separate the releases there (:mod:`.error_texts`). Texts of errors never cause a divergence;
they are collected during the search.
"""

from conformance.experiments.release_diff.comparison import Comparison, Difference, compare
from conformance.experiments.release_diff.error_texts import ImplicatedClauses, TextChange
from conformance.experiments.release_diff.expected import classify, load_expected
from conformance.experiments.release_diff.sides import Plan
from conformance.experiments.release_diff.text_report import describe, describe_texts, events_of, to_json, to_markdown

__all__ = [
    "Comparison",
    "Difference",
    "ImplicatedClauses",
    "Plan",
    "TextChange",
    "classify",
    "compare",
    "describe",
    "describe_texts",
    "events_of",
    "load_expected",
    "to_json",
    "to_markdown",
]
