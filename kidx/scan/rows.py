"""Rows of batch headers, and why a walk over a block stops; shared by the plain walk and the compiled kernels."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

# fmt: off
BATCH: Final = np.dtype([
    ("position",       "i8"),  # byte position in the file
    ("size",           "i8"),  # all its bytes
    ("base_offset",    "i8"),  # of the first record; of a compressed v0, v1 batch found by reading its records
    ("last_offset",    "i8"),  # of the last record that ever was in it
    ("base_timestamp", "i8"),  # milliseconds; v0, v1: as max_timestamp
    ("max_timestamp",  "i8"),  # milliseconds, -1 for none
    ("producer_id",    "i8"),  # -1 for none
    ("leader_epoch",   "i4"),  # -1 for none
    ("base_sequence",  "i4"),  # -1 for none
    ("count",          "i4"),  # records; -1 in v0, v1
    ("crc",            "u4"),  # as stored
    ("attributes",     "i2"),  # the ATTRIBUTE_ bits of kidx.records.layout
    ("producer_epoch", "i2"),  # -1 for none
    ("magic",          "i1"),  # 0, 1, 2 or what the file has there
    ("control",        "i1"),  # type of a control batch's first record: 0 abort, 1 commit; -1 if there is none
    ("crc_ok",         "?"),   # size and checksum are right
], align=True)
"""One row a batch."""
# fmt: on

MORE: Final = 0
"""The walk needs bytes that the block does not have."""

END: Final = 1
"""Fewer than 18 bytes are left, or the next batch would go beyond the end of the file."""

CORRUPT: Final = 2
"""A length below 14: nothing behind it can be read."""

FULL: Final = 3
"""There is no room for more rows."""


ODD: Final = 4
"""What :meth:`kidx.scan.LogBlocks.rows` calls a batch that is not ordinary."""


class Walked(NamedTuple):
    """What a walk has done: rows written, where in the block it stopped, and why (MORE, END, CORRUPT, FULL)."""

    rows: int
    stopped: int
    reason: int
