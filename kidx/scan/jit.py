"""Just-in-time compilation of kernels by numba, if it is installed; otherwise they run as plain Python.

``KIDX_PLAIN=1`` selects the plain kernels; both give the same results. Compiled code is cached on disk, next to the
source, or in the user's cache if that directory is read-only, so that only the first run ever compiles.
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


def _is_enabled() -> bool:
    if os.environ.get(PLAIN_VARIABLE, "0") not in {"", "0"} or os.environ.get("NUMBA_DISABLE_JIT", "0") == "1":
        return False
    return importlib.util.find_spec("numba") is not None


COMPILED: Final = _is_enabled()
"""True if kernels are compiled in this process."""

_COMPILED_FROM: Final = 32 << 20


@cache
def _compiler() -> Any:
    return importlib.import_module("numba")


def kernels_loaded() -> bool:
    """Return True if this process has compiled kernels already: others then load in milliseconds, not in a second."""
    return _compiler.cache_info().currsize > 0


def worth_compiling(size: int) -> bool:
    """Return True if compiled kernels are faster for this many bytes of logs; the first ones take a second to load."""
    return COMPILED and (size >= _COMPILED_FROM or kernels_loaded())


def kernel(function: _Function) -> _Function:
    """Return a function that is compiled on its first call, or the function itself."""
    if not COMPILED:
        return function
    numba = _compiler()
    compiled: _Function
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no writable cache directory: neither next to the source nor in the user's cache
        compiled = numba.njit(nogil=True)(function)
    return compiled
