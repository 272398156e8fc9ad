"""Garbage collections that do not get in the way of a run.

Hypothesis makes some thousand small objects an example, and nearly all of them are gone without a collector. Python's
looks for cycles after every 700 new ones, and every now and then among everything that has been imported and loaded:
measured, a tenth to a fifth of a run's time for nothing.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Final

RARE: Final = (50_000, 20, 20)
"""Some tens of megabytes may wait for a collection; the files of an example and the JVM's heap take more."""


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Collects rarely inside the block, and never looks at what was there before it."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*RARE)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
