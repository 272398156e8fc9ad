"""Comparison of two states field by field."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any


def differing_fields(old: Any, new: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the name and both values of every field that differs; names of nested fields are joined by dots.

    If a state or a nested state is missing on one side, the two whole values are one difference. For a missing state,
    the name is empty.
    """
    if old is None or not hasattr(old, "_asdict") or not hasattr(new, "_asdict"):
        yield prefix, old, new
        return
    for name, mine in old._asdict().items():
        theirs = getattr(new, name)
        if mine != theirs:
            yield from differing_fields(mine, theirs, f"{prefix}.{name}" if prefix else name)


def with_fields_of(state: Any, other: Any, names: Collection[str]) -> Any:
    """Return a state with some fields taken from another state.

    Args:
        state: The state to change; may be None.
        other: The state with the values; ``state`` is returned without another state (None).
        names: The names of the fields; nested names are joined by dots.
    """
    if state is None or other is None or not names:
        return state
    values = {}
    for name, value in state._asdict().items():
        theirs = getattr(other, name)
        nested = {rest for first, _, rest in (path.partition(".") for path in names) if first == name}
        if "" in nested:
            values[name] = theirs
        elif nested and hasattr(value, "_asdict"):
            values[name] = with_fields_of(value, theirs, nested)
    return state._replace(**values)
