"""An implementation behind a pipe: the line protocol and the process that speaks it."""

from conformance.implementations.process.index import (
    DEADLINE,
    START,
    START_DEADLINE,
    STATE,
    STOP,
    ProcessIndex,
    StartError,
)

__all__ = ["DEADLINE", "START", "START_DEADLINE", "STATE", "STOP", "ProcessIndex", "StartError"]
