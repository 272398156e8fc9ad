"""Lockstep: every participant performs the same operations in the same order, and all are compared after each."""

from conformance.lockstep.divergence import Divergence, DivergenceError, Tally
from conformance.lockstep.levels.index import Lockstep

__all__ = ["Divergence", "DivergenceError", "Lockstep", "Tally"]
