"""The vocabulary: operations and their outcomes as plain data, for every level that machines drive.

An operation is one call on an index file, a segment, a log or a broker's topic. A recorded sequence of them is a trace,
which every implementation can perform: Kafka's own classes as well as a program behind a pipe.
"""

from conformance.operations.effects import Effect
from conformance.operations.index import EFFECTS, FILE_OPERATIONS, KINDS, SIGNATURES, Observation, State
from conformance.operations.operation import Operation, every_effect, every_signature
from conformance.operations.outcomes import ERROR_KINDS, ERRORS, OK, UNSUPPORTED, Json, Outcome, as_tuples, is_collected

__all__ = [
    "EFFECTS",
    "ERRORS",
    "ERROR_KINDS",
    "FILE_OPERATIONS",
    "KINDS",
    "OK",
    "SIGNATURES",
    "UNSUPPORTED",
    "Effect",
    "Json",
    "Observation",
    "Operation",
    "Outcome",
    "State",
    "as_tuples",
    "every_effect",
    "every_signature",
    "is_collected",
]
