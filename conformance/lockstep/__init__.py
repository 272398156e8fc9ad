"""Lockstep: every participant performs the same operations in the same order, and all are compared after each.

``Lockstep`` of this package drives index files. Those of other levels are in :mod:`conformance.lockstep.levels`, and
what they have in common in :mod:`conformance.lockstep.lockstep`.
"""

from conformance.lockstep.divergence import Divergence, DivergenceError, Statistics
from conformance.lockstep.levels.index import IndexLockstep as Lockstep

__all__ = ["Divergence", "DivergenceError", "Lockstep", "Statistics"]
