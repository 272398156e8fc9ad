"""Which method of a Python index performs an operation: kidx's own names, which others may use as well."""

from __future__ import annotations

from typing import Final

METHODS: Final = {
    "truncate_to": "truncate_to",
    "reset": "reset",
    "flush": "flush",
    "sanity_check": "sanity_check",
    "close": "close",
    "delete": "delete_if_exists",
    "rename": "rename_to",
    "lookup": "lookup",
    "entry": "entry",
    "truncate": "truncate",
    "resize": "resize",
    "trim": "trim_to_valid_size",
    "append": "append",
    "fetch_upper_bound": "fetch_upper_bound_offset",
    "maybe_append": "maybe_append",
    "append_aborted": "append",
    "collect_aborted": "collect_aborted_txns",
    "all_aborted": "all_aborted_txns",
}

BULK: Final = {"bulk_append": "append", "bulk_maybe_append": "maybe_append"}
"""The operation that a bulk operation is many of."""
