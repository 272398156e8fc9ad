"""File damage: what a broker makes of index files that were deleted, cut, overwritten or forged while it was stopped.

A broker is stopped, cleanly or with ``kill -9``. One index file of each of many topics is damaged in a way of its own
(:mod:`conformance.experiments.file_damage.damages`). The broker starts again. The experiment records whether it comes
up, what it rebuilds, what ``offsetsForTimes`` answers, and how many records a consumer would miss or read twice
(:mod:`conformance.experiments.file_damage.judging`). kidx loads a copy of the damaged files under the rules of that
release and predicts all of it; the two are compared.
"""

from __future__ import annotations

from conformance.experiments.file_damage.cases import CASES, Case
from conformance.experiments.file_damage.experiment import Outcome, damage_files

__all__ = ["CASES", "Case", "Outcome", "damage_files"]
