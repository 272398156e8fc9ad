"""Determinism: the same seed gives the same examples, whatever modules the process has loaded.

Hypothesis extracts constants from the source of every loaded module that is not installed, and sometimes draws one. A
Spark worker, a test run or an editable installation has loaded other modules than the command line, so the same seed
would give different examples. During a run, no module is a source of constants.

Hypothesis has no setting for this, so this module replaces a private function of Hypothesis. If a new version does not
have the function, or has changed it, the function is not replaced: a run continues, and a warning explains the limits
of its seed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final, NamedTuple

from hypothesis.errors import HypothesisWarning

_PROVIDERS: Final = "hypothesis.internal.conjecture.providers"
_CONSTANTS: Final = "hypothesis.internal.constants_ast"


class NondeterminismWarning(UserWarning):
    """Warning that the same seed may give different examples elsewhere."""


class _HypothesisInternals(NamedTuple):
    """Private parts of Hypothesis.

    Attributes:
        providers: The module whose function is replaced.
        none: An empty set of constants.
        forget: A function that clears the cache of constants.
    """

    providers: Any
    none: Any
    forget: Callable[[], None]


@contextmanager
def without_local_constants() -> Iterator[None]:
    """Restrict Hypothesis to its own constants; warn once if this version of Hypothesis does not support it."""
    private = _private()
    if private is None:
        warnings.warn(
            f"Hypothesis {version('hypothesis')} draws constants of the modules that happen to be loaded, and cannot be"
            " configured otherwise: the same seed may give other values in another process (pytest, a worker, another"
            " checkout). Traces are not affected",
            NondeterminismWarning,
            stacklevel=3,
        )
        with _quiet_generator():
            yield
        return
    providers, none, forget = private
    found = providers._get_local_constants  # noqa: SLF001 -- there is no setting for it
    providers._get_local_constants = lambda: none  # noqa: SLF001
    forget()
    try:
        with _quiet_generator():
            yield
    finally:
        providers._get_local_constants = found  # noqa: SLF001
        forget()


@contextmanager
def _quiet_generator() -> Iterator[None]:
    """Suppress a warning of Hypothesis on Python 3.14 about its own random generator, of which each thread has one."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "It looks like `register_random`", HypothesisWarning)
        yield


def _private() -> _HypothesisInternals | None:
    """Return the private parts of Hypothesis if they have the form of versions 6.131 to 6.170, or None."""
    try:
        providers = import_module(_PROVIDERS)
        constants = import_module(_CONSTANTS).Constants
        local = providers._get_local_constants  # noqa: SLF001
        forget = providers.CONSTANTS_CACHE.cache.clear
        none = constants()
    except (ImportError, AttributeError, TypeError):
        return None
    return _HypothesisInternals(providers, none, forget) if callable(local) and callable(forget) else None
