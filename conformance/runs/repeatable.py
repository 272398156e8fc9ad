"""The same seed, the same examples, whatever else the process has loaded.

Hypothesis takes constants out of the source of every loaded module that is not installed, and sometimes draws one. In
a checkout that is installed in place, a worker of Spark or a test run has other modules loaded than the command line,
and so the same seed would lead to other examples there. In a run none of them are local.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants


@contextmanager
def without_local_constants() -> Iterator[None]:
    """Lets Hypothesis draw its own constants only."""
    found = providers._get_local_constants  # noqa: SLF001 -- there is no setting for it
    none = Constants()
    providers._get_local_constants = lambda: none  # noqa: SLF001
    providers.CONSTANTS_CACHE.cache.clear()
    try:
        yield
    finally:
        providers._get_local_constants = found  # noqa: SLF001
        providers.CONSTANTS_CACHE.cache.clear()
