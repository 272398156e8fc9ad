"""Methods of a Python index that execute operations; they have the names of kidx's methods."""

from __future__ import annotations

from typing import Final

from conformance.operations.index import INDEX_OPS

METHODS: Final = {name: each.method or name for name, each in INDEX_OPS.items() if each.tried is not None}
"""The name of the method, for each operation that Python objects may have."""

BULK: Final = {name: each.many for name, each in INDEX_OPS.items() if each.many}
"""The single operation that each bulk operation repeats."""
