"""Arguments that only some implementations accept.

An index of the line protocol declares them as capabilities. Only Kafka's classes and kidx accept negative sizes
(AI-44). An implementation may have the attributes ``capabilities`` and ``takes_negative_sizes``; without them, it
accepts all arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.operations.index_capabilities import missing_index_capability

if TYPE_CHECKING:
    from conformance.operations import Operation


def takes(implementation: Any, operation: Operation) -> bool:
    """Return True if an implementation accepts an operation with these arguments.

    Args:
        implementation: Any participant.
        operation: An operation; one that is not on an index is always accepted.
    """
    capabilities: frozenset[str] | None = getattr(implementation, "capabilities", None)
    if capabilities is not None and missing_index_capability(operation, capabilities):
        return False
    if operation.name != "resize" or operation.args[0] >= 0:
        return True
    return bool(getattr(implementation, "takes_negative_sizes", True))
