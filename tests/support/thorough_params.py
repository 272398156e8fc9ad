"""Cases of a parametrized test, some of which run only with ``--thorough`` (as in CI)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def thorough_param(*values: Any, marks_too: Any = (), **options: Any) -> Any:
    """Return a case for :func:`pytest.mark.parametrize` that needs ``--thorough``; another case must always run."""
    more = marks_too if isinstance(marks_too, tuple) else (marks_too,)
    return pytest.param(*values, marks=(pytest.mark.thorough, *more), **options)


def thorough_except(few: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """Return the values as cases; only those in ``few`` run without ``--thorough``."""
    return [value if value in few else thorough_param(value) for value in values]
