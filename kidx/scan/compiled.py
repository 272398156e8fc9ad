"""Kernels are compiled by numba where it is installed, and run as plain Python otherwise.

``KIDX_PLAIN=1`` asks for the plain path; both give the same results. Compiled code is kept on disk, beside the source
or in the user's cache where that is read-only, so that only the very first run compiles.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

PLAIN_VARIABLE: Final = "KIDX_PLAIN"


def _wanted() -> bool:
    if os.environ.get(PLAIN_VARIABLE, "0") not in {"", "0"} or os.environ.get("NUMBA_DISABLE_JIT", "0") == "1":
        return False
    return importlib.util.find_spec("numba") is not None


COMPILED: Final = _wanted()
"""Whether kernels are compiled in this process."""

_COMPILED_FROM: Final = 32 << 20


@cache
def _compiler() -> Any:
    return importlib.import_module("numba")


def kernels_loaded() -> bool:
    """Whether this process has compiled kernels already: then others take milliseconds to load, not a second."""
    return _compiler.cache_info().currsize > 0


def worth_compiling(size: int) -> bool:
    """Whether compiled kernels are faster for so many bytes of logs; the first ones take a second to load."""
    return COMPILED and (size >= _COMPILED_FROM or kernels_loaded())


def kernel(function: _Function) -> _Function:
    """Compiles a function when it is first called, or leaves it as it is."""
    if not COMPILED:
        return function
    numba = _compiler()
    compiled: _Function
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # nowhere to keep compiled code: neither beside the source nor in the user's cache
        compiled = numba.njit(nogil=True)(function)
    return compiled
