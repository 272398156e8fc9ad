"""CRC-32C of many batches without a Python call for each.

google-crc32c's library uses the processor's instruction, but its Python function needs a ``bytes`` object per call. So
compiled kernels call the library's C function by its address; if the wheel hides it, they use a table. Batches of v0
and v1 have a CRC-32, which is always computed with a table.
"""

from __future__ import annotations

import ctypes
import importlib
import platform
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import google_crc32c
import numpy as np

from kidx.scan.jit import COMPILED, kernel

CASTAGNOLI: Final = 0x82F63B78
"""Reflected polynomial of CRC-32C."""

IEEE: Final = 0xEDB88320
"""Reflected polynomial of CRC-32."""


@cache
def crc_tables(polynomial: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Return eight tables of 256 entries, for eight bytes at a time ("slicing by 8"); shape (8, 256)."""
    tables = np.zeros((8, 256), np.uint32)
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = np.where(values & 1, (values >> 1) ^ np.uint32(polynomial), values >> 1)
    tables[0] = values
    for number in range(1, 8):
        values = (values >> np.uint32(8)) ^ tables[0][values & 0xFF]
        tables[number] = values
    return tables


_PROBES: Final = (b"", b"123456789", bytes(range(256)) * 33 + b"odd")


@cache
def crc32c_address() -> int:
    """Return the address of the C function ``crc32c_value(data, length)``; 0 if it is missing, or a different function.

    The name belongs to the library and not to its Python package, which may hide or change it in any version.
    """
    try:
        from google_crc32c import _crc32c  # noqa: PLC0415 -- its C extension is missing on some platforms

        function = ctypes.CDLL(_crc32c.__file__).crc32c_value
    except (ImportError, OSError, AttributeError):
        return 0
    function.argtypes, function.restype = (ctypes.c_char_p, ctypes.c_size_t), ctypes.c_uint32
    if any(function(data, len(data)) != google_crc32c.value(data) for data in _PROBES):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@kernel
def table_crc(tables: Any, buffer: Any, start: int, end: int) -> Any:
    """Return the CRC of ``buffer[start:end]`` with tables of :func:`crc_tables`."""
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


# -- for compiled code only: numba is loaded with this module if it is installed ---------------------------------


def _intrinsic(generate: Callable[[Any, Any, Any], Any], result: str, arguments: int) -> Any:
    """Return a function for compiled code, with ``intp`` arguments; ``generate(ir, builder, values)`` emits it."""
    ir: Any = importlib.import_module("llvmlite.ir")
    types: Any = importlib.import_module("numba").types
    extending: Any = importlib.import_module("numba.extending")
    signature = getattr(types, result)(*[types.intp] * arguments)

    def emit(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return generate(ir, builder, values)

    # numba counts the parameters of the function that it gets.
    shapes = {1: lambda _typing, _a: (signature, emit), 2: lambda _typing, _a, _b: (signature, emit)}
    shapes[3] = lambda _typing, _a, _b, _c: (signature, emit)
    return extending.intrinsic(shapes[arguments])


def _call(ir: Any, builder: Any, values: Any) -> Any:
    address, data, length = values
    pointer = ir.IntType(8).as_pointer()
    function = ir.FunctionType(ir.IntType(32), [pointer, ir.IntType(64)])
    callee = builder.inttoptr(address, function.as_pointer())
    return builder.zext(builder.call(callee, [builder.inttoptr(data, pointer), length]), ir.IntType(64))


def _load(bits: int, *, swap: bool) -> Callable[[Any, Any, Any], Any]:
    def generate(ir: Any, builder: Any, values: Any) -> Any:
        integer = ir.IntType(bits)
        value = builder.load(builder.inttoptr(values[0], integer.as_pointer()))
        value.align = 1
        if swap:
            return builder.sext(builder.bswap(value), ir.IntType(64)) if bits < 64 else builder.bswap(value)
        return builder.zext(value, ir.IntType(64)) if bits < 64 else value

    return generate


def _step(bits: int) -> Callable[[Any, Any, Any], Any]:
    """Return a generator for the instruction ``crc32`` of SSE 4.2, over 8, 16, 32 or 64 bits."""

    def generate(ir: Any, builder: Any, values: Any) -> Any:
        width = ir.IntType(64 if bits == 64 else 32)
        kind = ir.FunctionType(width, [width, ir.IntType(bits)])
        name = f"llvm.x86.sse42.crc32.{64 if bits == 64 else 32}.{bits}"
        function = builder.module.declare_intrinsic(name, (), kind)
        crc, data = values
        if bits == 64:
            return builder.call(function, [crc, data])
        small = [builder.trunc(crc, width), builder.trunc(data, ir.IntType(bits))]
        return builder.zext(builder.call(function, small), ir.IntType(64))

    return generate


@cache
def has_instruction() -> bool:
    """Return True if compiled code can use the processor's own instruction without a call: x86-64 with SSE 4.2."""
    if platform.machine() not in {"x86_64", "AMD64"} or sys.byteorder != "little":
        return False
    binding: Any = importlib.import_module("llvmlite.binding")
    return bool(binding.get_host_cpu_features().get("sse4.2", False))


call_crc32c: Final[Any] = _intrinsic(_call, "int64", 3) if COMPILED else None
"""``call_crc32c(address, data, length)`` calls the C function at an address. The address is an argument and not a

constant, so that compiled code can be cached on disk.
"""

load_be32: Final[Any] = _intrinsic(_load(32, swap=True), "int64", 1) if COMPILED else None
"""``load_be32(address)`` returns a signed big-endian number of 4 bytes, in one instruction."""

load_be64: Final[Any] = _intrinsic(_load(64, swap=True), "int64", 1) if COMPILED else None
"""``load_be64(address)`` returns a signed big-endian number of 8 bytes, in one instruction."""

_INLINE: Final = COMPILED and has_instruction()
_load_64: Final[Any] = _intrinsic(_load(64, swap=False), "int64", 1) if _INLINE else None
_load_32: Final[Any] = _intrinsic(_load(32, swap=False), "int64", 1) if _INLINE else None
_load_16: Final[Any] = _intrinsic(_load(16, swap=False), "int64", 1) if _INLINE else None
_load_8: Final[Any] = _intrinsic(_load(8, swap=False), "int64", 1) if _INLINE else None
_step_64: Final[Any] = _intrinsic(_step(64), "int64", 2) if _INLINE else None
_step_32: Final[Any] = _intrinsic(_step(32), "int64", 2) if _INLINE else None
_step_16: Final[Any] = _intrinsic(_step(16), "int64", 2) if _INLINE else None
_step_8: Final[Any] = _intrinsic(_step(8), "int64", 2) if _INLINE else None

_SHORT: Final = 1024
"""Number of bytes up to which one chain of the instruction is faster than the library, which sets up three chains."""


def _crc32c_inline(library: int, _tables: Any, buffer: Any, start: int, end: int) -> Any:
    """See :data:`crc32c`. The data is not aligned first: for a hundred bytes that costs more than it gains."""
    at, stop = buffer.ctypes.data + start, buffer.ctypes.data + end
    if library != 0 and stop - at > _SHORT:
        return call_crc32c(library, at, stop - at)
    crc = 0xFFFFFFFF
    while at + 32 <= stop:
        crc = _step_64(_step_64(crc, _load_64(at)), _load_64(at + 8))
        crc = _step_64(_step_64(crc, _load_64(at + 16)), _load_64(at + 24))
        at += 32
    while at + 8 <= stop:
        crc = _step_64(crc, _load_64(at))
        at += 8
    if at + 4 <= stop:
        crc = _step_32(crc, _load_32(at))
        at += 4
    if at + 2 <= stop:
        crc = _step_16(crc, _load_16(at))
        at += 2
    if at < stop:
        crc = _step_8(crc, _load_8(at))
    return crc ^ 0xFFFFFFFF


def _crc32c_called(library: int, tables: Any, buffer: Any, start: int, end: int) -> Any:
    """See :data:`crc32c`; for other processors."""
    if library != 0:
        return call_crc32c(library, buffer.ctypes.data + start, end - start)
    return table_crc(tables, buffer, start, end)


crc32c: Final[Any] = kernel(_crc32c_inline if _INLINE else _crc32c_called)
"""``crc32c(library, tables, buffer, start, end)`` returns the CRC-32C of ``buffer[start:end]``, in compiled code.

``library`` is :func:`crc32c_address`, 0 for none; ``tables`` are the tables of :data:`CASTAGNOLI`.
"""
