"""Arguments that not every implementation takes.

Of an index behind the line protocol the capabilities decide; negative sizes only Kafka's classes and kidx take (AI-44).
An implementation says so with the attributes ``capabilities`` and ``takes_negative_sizes``; without them it takes all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.operations.index_capabilities import missing_index_capability

if TYPE_CHECKING:
    from conformance.operations import Operation


def takes(implementation: Any, operation: Operation) -> bool:
    """Return whether an implementation takes an operation with these arguments.

    Args:
        implementation: any participant.
        operation: on an index; others are taken.
    """
    capabilities: frozenset[str] | None = getattr(implementation, "capabilities", None)
    if capabilities is not None and missing_index_capability(operation, capabilities):
        return False
    if operation.name != "resize" or operation.args[0] >= 0:
        return True
    return bool(getattr(implementation, "takes_negative_sizes", True))
