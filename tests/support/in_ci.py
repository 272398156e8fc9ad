"""Cases of a parametrized test of which some wait for ``--thorough``, which CI passes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def in_ci(*values: Any, **options: Any) -> Any:
    """A case of :func:`pytest.mark.parametrize` that only CI performs; another one of the test stays."""
    return pytest.param(*values, marks=pytest.mark.thorough, **options)


def all_but(few: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """The values, those that are not among the few for CI only."""
    return [value if value in few else in_ci(value) for value in values]
