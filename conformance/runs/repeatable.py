"""The same seed, the same examples, whatever else the process has loaded.

Hypothesis takes constants out of the source of every loaded module that is not installed, and sometimes draws one. In
a checkout that is installed in place, a worker of Spark or a test run has other modules loaded than the command line,
and so the same seed would lead to other examples there. In a run none of them are local.

There is no setting for it, so this replaces a private function of Hypothesis. A Hypothesis that has it no more, or one
that is of another shape, is left as it is: a run goes on, and says what its seed is not good for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final, NamedTuple

_PROVIDERS: Final = "hypothesis.internal.conjecture.providers"
_CONSTANTS: Final = "hypothesis.internal.constants_ast"


class RepeatabilityWarning(UserWarning):
    """The same seed may lead to other examples elsewhere."""


class _Private(NamedTuple):
    """What is private to Hypothesis.

    Attributes:
        providers: the module whose function is replaced.
        none: an empty set of constants.
        forget: forgets which constants were chosen from before.
    """

    providers: Any
    none: Any
    forget: Callable[[], None]


@contextmanager
def without_local_constants() -> Iterator[None]:
    """Lets Hypothesis draw its own constants only; warns once if this Hypothesis cannot be told so."""
    private = _private()
    if private is None:
        warnings.warn(
            f"Hypothesis {version('hypothesis')} draws constants of the modules that happen to be loaded, and cannot be"
            " told otherwise: the same seed may give other values in another process (pytest, a worker, another"
            " checkout). Traces replay as ever",
            RepeatabilityWarning,
            stacklevel=3,
        )
        yield
        return
    providers, none, forget = private
    found = providers._get_local_constants  # noqa: SLF001 -- there is no setting for it
    providers._get_local_constants = lambda: none  # noqa: SLF001
    forget()
    try:
        yield
    finally:
        providers._get_local_constants = found  # noqa: SLF001
        forget()


def _private() -> _Private | None:
    """The private parts of Hypothesis, if they are as they were in 6.131 to 6.170."""
    try:
        providers = import_module(_PROVIDERS)
        constants = import_module(_CONSTANTS).Constants
        local = providers._get_local_constants  # noqa: SLF001
        forget = providers.CONSTANTS_CACHE.cache.clear
        none = constants()
    except (ImportError, AttributeError, TypeError):
        return None
    return _Private(providers, none, forget) if callable(local) and callable(forget) else None
