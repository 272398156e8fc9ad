"""Programs as implementations: the line protocol and the process that speaks it.

`DEADLINE` and `START_DEADLINE` are the default time limits in seconds for replies, and for the first one.
"""

from conformance.implementations.process.index import ProcessIndex
from conformance.implementations.process.log import ProcessLog
from conformance.implementations.process.participant import DEADLINE, START_DEADLINE, StartError

__all__ = ["DEADLINE", "START_DEADLINE", "ProcessIndex", "ProcessLog", "StartError"]
