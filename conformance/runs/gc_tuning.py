"""Tuning of the garbage collector for a run.

Hypothesis creates some thousand small objects per example, and nearly all of them are freed by reference counting. By
default, Python also searches for cycles after every 700 new objects, and sometimes among all imported objects. This
takes a tenth to a fifth of a run's time (measured), and frees next to nothing.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Final

RARE: Final = (50_000, 20, 20)
"""The thresholds of the collector; up to some tens of megabytes may wait for a collection."""


@contextlib.contextmanager
def infrequent_gc() -> Iterator[None]:
    """Collect garbage rarely in the block, and ignore all objects that exist before it."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*RARE)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
