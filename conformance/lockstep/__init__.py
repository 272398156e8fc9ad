"""Lockstep: every participant executes the same operations in the same order, and all are compared after each.

The ``Lockstep`` of this package tests index files. The locksteps of other scopes (kinds of object) are in
:mod:`conformance.lockstep.scopes`, and their base class is in :mod:`conformance.lockstep.lockstep`.
"""

from conformance.lockstep.divergence import Divergence, DivergenceError, Statistics
from conformance.lockstep.scopes.index import IndexLockstep as Lockstep

__all__ = ["Divergence", "DivergenceError", "Lockstep", "Statistics"]
