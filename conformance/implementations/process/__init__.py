"""Programs as implementations: the line protocol and the process that speaks it."""

from conformance.implementations.process.index import START, STATE, ProcessIndex
from conformance.implementations.process.log import ProcessLog
from conformance.implementations.process.restarted import DEADLINE, START_DEADLINE, STOP, StartError

__all__ = ["DEADLINE", "START", "START_DEADLINE", "STATE", "STOP", "ProcessIndex", "ProcessLog", "StartError"]
