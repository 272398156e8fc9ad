"""Index corruption: what a broker does with index files that were deleted, truncated or falsified while it was stopped.

A broker is stopped, cleanly or with ``kill -9``. Each of many topics has one index file corrupted in a different way
(:mod:`conformance.experiments.index_corruption.corruptions`). The broker starts again. The experiment records whether
it starts, what it rebuilds, what ``offsetsForTimes`` returns, and how many records a consumer would miss or read twice
(:mod:`conformance.experiments.index_corruption.consumer_cost`). kidx loads a copy of the corrupt files under the rules
of that release and predicts all of it; the two are compared.
"""

from __future__ import annotations

from conformance.experiments.index_corruption.cases import CASES, Case
from conformance.experiments.index_corruption.experiment import Outcome, run_corruption_cases

__all__ = ["CASES", "Case", "Outcome", "run_corruption_cases"]
