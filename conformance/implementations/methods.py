"""Methods of a Python index that execute the operations: kidx's own names, which others may use as well."""

from __future__ import annotations

from typing import Final

from conformance.operations.index import INDEX_OPS

METHODS: Final = {name: each.method or name for name, each in INDEX_OPS.items() if each.tried is not None}

BULK: Final = {name: each.many for name, each in INDEX_OPS.items() if each.many}
"""Operation that each bulk operation repeats."""
