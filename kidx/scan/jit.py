"""Just-in-time compilation of kernels by numba, if it is installed; otherwise they run as plain Python.

``KIDX_PLAIN=1`` selects the plain kernels; both give the same results. Compiled code is cached on disk, next to the
source, or in the user's cache if that directory is read-only, so that only the first run ever compiles.

numba finds cached code by the path of its source. Spark puts an archive of ``--py-files`` into a new directory for each
executor, and each would compile again; so kernels of an archive are given a copy of their source in the user's cache.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import FunctionType
from typing import Any, Final, TypeVar, cast

from platformdirs import user_cache_path

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
    with suppress(OSError, ImportError, AttributeError):  # without a copy of the source, each process compiles
        _keep_source(cast("FunctionType", function))
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no writable cache directory: neither next to the source nor in the user's cache
        compiled = numba.njit(nogil=True)(function)
    return compiled


def _keep_source(function: FunctionType) -> None:
    """Give a function of an archive a source that the next process finds under the same path.

    Raises:
        OSError: the user's cache cannot be written.
        ImportError, AttributeError: the module's loader has no source.
    """
    if os.path.exists(function.__code__.co_filename):  # noqa: PTH110 -- a path in an archive is no path
        return
    name = function.__module__
    source = cast("str", cast("Any", sys.modules[name].__loader__).get_source(name)).encode()
    kept = user_cache_path("kidx") / "kernels" / hashlib.sha256(source).hexdigest()[:16] / f"{name}.py"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        temporary = kept.with_name(f"{name}.{os.getpid()}")
        temporary.write_bytes(source)
        temporary.replace(kept)  # whole or not at all: several executors may start concurrently
    function.__code__ = function.__code__.replace(co_filename=str(kept))
