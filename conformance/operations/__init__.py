"""Operations and their outcomes as plain data, for every scope that machines test.

An operation is one call on an index file, a segment, a log, a cache of remote index files or a broker's topic. Its
outcome is a value or the kind of an error; an observation is the outcome and the state after it. An effect says whether
an operation opens, releases or corrupts its object. A recorded sequence of operations is a trace. Every implementation
can execute a trace: Kafka's own classes, or a program on a pipe.

`EFFECTS`, `ERRORS`, `ERROR_KINDS`, `FILE_OPERATIONS`, `KINDS`, `SIGNATURES`, `Observation` and `State` are about index
files only. ``every_effect`` and ``every_signature`` include all operations.
"""

from conformance.operations.index import EFFECTS, FILE_OPERATIONS, KINDS, SIGNATURES, Observation, State
from conformance.operations.op import Effect
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
