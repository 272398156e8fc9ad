"""Negative sizes: the one argument of an index that only Kafka's classes and kidx take (AI-44).

An implementation says so with an attribute, ``takes_negative_sizes``; it does if it has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conformance.operations import Operation


def takes(implementation: Any, operation: Operation) -> bool:
    """Whether the arguments of an operation are of a kind that an implementation knows."""
    if operation.name != "resize" or operation.args[0] >= 0:
        return True
    return bool(getattr(implementation, "takes_negative_sizes", True))
