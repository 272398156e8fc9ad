"""Hands on the files: what a broker makes of index files that somebody has deleted, cut, overwritten or made up.

While a broker is stopped, cleanly or with ``kill -9``, one index file of each of many topics is damaged in another way
(:mod:`conformance.hands.damages`). Then it is started: does it come up, what does it rebuild, what does a consumer get
for ``offsetsForTimes``, and how many records would it miss or read twice (:mod:`conformance.hands.judging`)? Everything
is predicted by kidx, which loads a copy of the damaged files under the rules of that release, and compared.
"""

from __future__ import annotations

from conformance.hands.cases import CASES, Case
from conformance.hands.experiment import Outcome, lay_hands

__all__ = ["CASES", "Case", "Outcome", "lay_hands"]
