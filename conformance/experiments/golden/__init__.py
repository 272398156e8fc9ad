"""Golden corpora: segments of a real broker, with the broker's lookup results, for checks without a broker.

``conformance record-golden`` records a corpus (:func:`record`), and :data:`CHECKS` compare kidx with it::

    corpus = record("3.9.2", "out", seed=0)
    for name, check in CHECKS.items():
        assert not check(corpus)

A corpus is a directory with ``corpus.json``, the files of every partition after a clean stop, and in ``running`` the
index files of the active segments before the stop.
"""

from __future__ import annotations

from conformance.experiments.golden.checks import CHECKS
from conformance.experiments.golden.corpus import Corpus, Partition, RecordedAppend, load_corpus
from conformance.experiments.golden.recorder import record
from conformance.experiments.golden.soundness import Finding
from conformance.experiments.golden.verdicts import FileVerdict, judge
from conformance.kafka.client import OffsetResult

__all__ = [
    "CHECKS",
    "Corpus",
    "FileVerdict",
    "Finding",
    "OffsetResult",
    "Partition",
    "RecordedAppend",
    "judge",
    "load_corpus",
    "record",
]
