"""CRC-32C of one batch after another, without a Python call for each.

google-crc32c's library uses the processor's instruction, but its Python function wants a ``bytes`` object a call. So
compiled kernels call the library's C function by its address; where the wheel hides it, a table does the work. Batches
of formats v0 and v1 have a CRC-32, which always comes from a table.
"""

from __future__ import annotations

import ctypes
import importlib
from functools import cache
from typing import Any, Final

import numpy as np

from kidx.scan.compiled import COMPILED, kernel

CASTAGNOLI: Final = 0x82F63B78
"""The polynomial of CRC-32C, reflected."""

IEEE: Final = 0xEDB88320
"""The polynomial of CRC-32, reflected."""


@cache
def crc_tables(polynomial: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Eight tables of 256 entries, for eight bytes at a time ("slicing by 8"); shape (8, 256)."""
    tables = np.zeros((8, 256), np.uint32)
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = np.where(values & 1, (values >> 1) ^ np.uint32(polynomial), values >> 1)
    tables[0] = values
    for number in range(1, 8):
        values = (values >> np.uint32(8)) ^ tables[0][values & 0xFF]
        tables[number] = values
    return tables


@cache
def crc32c_address() -> int:
    """Address of the C function ``crc32c_value(data, length)``; 0 if it cannot be found."""
    try:
        from google_crc32c import _crc32c  # noqa: PLC0415 -- its C extension is not there on every platform

        function = ctypes.CDLL(_crc32c.__file__).crc32c_value
    except (ImportError, OSError, AttributeError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@kernel
def table_crc(tables: Any, buffer: Any, start: int, end: int) -> Any:
    """The CRC of ``buffer[start:end]`` by tables of :func:`crc_tables`."""
    crc = np.int64(0xFFFFFFFF)
    position = start
    while position + 8 <= end:
        low = (
            crc
            ^ np.int64(buffer[position])
            ^ (np.int64(buffer[position + 1]) << 8)
            ^ (np.int64(buffer[position + 2]) << 16)
            ^ (np.int64(buffer[position + 3]) << 24)
        )
        crc = (
            np.int64(tables[7, low & 0xFF])
            ^ np.int64(tables[6, (low >> 8) & 0xFF])
            ^ np.int64(tables[5, (low >> 16) & 0xFF])
            ^ np.int64(tables[4, (low >> 24) & 0xFF])
            ^ np.int64(tables[3, np.int64(buffer[position + 4])])
            ^ np.int64(tables[2, np.int64(buffer[position + 5])])
            ^ np.int64(tables[1, np.int64(buffer[position + 6])])
            ^ np.int64(tables[0, np.int64(buffer[position + 7])])
        )
        position += 8
    while position < end:
        crc = (crc >> 8) ^ np.int64(tables[0, (crc ^ np.int64(buffer[position])) & 0xFF])
        position += 1
    return crc ^ 0xFFFFFFFF


def _caller() -> Any:
    """Makes the intrinsic behind :data:`call_crc32c`."""
    ir: Any = importlib.import_module("llvmlite.ir")
    types: Any = importlib.import_module("numba").types
    extending: Any = importlib.import_module("numba.extending")

    def call_address(_typing: Any, _address: Any, _data: Any, _length: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            pointer, size = ir.IntType(8).as_pointer(), ir.IntType(64)
            function = ir.FunctionType(ir.IntType(32), [pointer, size])
            address, data, length = arguments
            callee = builder.inttoptr(address, function.as_pointer())
            return builder.call(callee, [builder.inttoptr(data, pointer), length])

        return types.uint32(types.intp, types.intp, types.intp), generate

    return extending.intrinsic(call_address)


call_crc32c: Final[Any] = _caller() if COMPILED else None
"""``call_crc32c(address, data, length)`` in compiled code: calls the C function at an address. That is an argument and
not a constant, so that compiled code can be kept on disk."""
