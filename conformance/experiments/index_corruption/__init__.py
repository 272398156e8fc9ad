"""Index corruption: what a broker does if index files were deleted, truncated or changed while it was stopped.

A broker is stopped, cleanly or with ``kill -9``. One index file of each of many topics is corrupted in a different way
(:mod:`conformance.experiments.index_corruption.corruptions`). The broker starts again. The experiment records whether
it starts, what it rebuilds, what ``offsetsForTimes`` returns, and how many records a consumer would miss or read twice
(:mod:`conformance.experiments.index_corruption.experiment`). kidx opens a copy of the corrupt files in the dialect
of the release and predicts all of this; the predictions are compared with the results.
"""

from __future__ import annotations

from conformance.experiments.index_corruption.cases import CASES, Case
from conformance.experiments.index_corruption.experiment import Outcome, run_corruption_cases

__all__ = ["CASES", "Case", "Outcome", "run_corruption_cases"]
