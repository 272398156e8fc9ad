"""Whole files as numpy arrays: batches of a log and entries of its indexes, checked while they are read.

The kernels are compiled by numba if it is installed (``pip install 'kidx[scan]'``), with the same results without it.
Files are read in blocks, so that memory remains bounded::

    with LogBlocks("00000000000000000000.log") as blocks:
        for rows in blocks:                      # numpy structured arrays of BATCH
            print(rows["base_offset"][0], rows["crc_ok"].all())
"""

from kidx.scan.blocks import LogBlocks, LogTail, scan_log
from kidx.scan.entries import BulkLookup, ExpectedIndexes, IndexContent, expected_indexes, parse_index, read_index
from kidx.scan.jit import COMPILED
from kidx.scan.records import RecordColumns, decode_batch, decode_records
from kidx.scan.rows import BATCH

__all__ = [
    "BATCH",
    "COMPILED",
    "BulkLookup",
    "ExpectedIndexes",
    "IndexContent",
    "LogBlocks",
    "LogTail",
    "RecordColumns",
    "decode_batch",
    "decode_records",
    "expected_indexes",
    "parse_index",
    "read_index",
    "scan_log",
]
