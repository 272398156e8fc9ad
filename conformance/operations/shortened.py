"""Operations as text in which long arguments are shortened."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from kidx.errors import KidxError
from kidx.records import iter_batches

if TYPE_CHECKING:
    from conformance.operations.operation import Operation

_WIDTH: Final = 160
"""Maximum number of characters of an argument."""


def shortened(operation: Operation) -> str:
    """Return an operation with its arguments; long arguments are shortened."""
    arguments = operation.to_json()
    del arguments["op"]
    return f"{operation.name}({', '.join(f'{name}={_argument(name, value)}' for name, value in arguments.items())})"


def _argument(name: str, value: Any) -> str:
    if name == "records" and isinstance(value, str):
        return _batches(value)
    text = repr(value)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}… ({len(text)} characters)"


def _batches(records: str) -> str:
    """Describe batches in hexadecimal: their size in bytes, and the offsets and largest timestamp of each."""
    data = bytes.fromhex(records)
    found = []
    with contextlib.suppress(KidxError):
        found += [f"{b.base_offset}–{b.last_offset} at {b.max_timestamp}" for b in iter_batches(data)]
    return f"<{len(data)} bytes: {', '.join(found) or 'no whole batch'}>"
