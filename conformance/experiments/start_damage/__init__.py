"""Corruption before a start: a broker's start with a corrupt log directory, compared with ``kidx verify``'s prediction.

One broker fills a partition for each case, and is stopped cleanly, and later killed. This gives two prepared
directories (:mod:`conformance.experiments.start_damage.prepared`). Cases that concern one partition share a copy and a
start; cases that concern more get a separate copy and start. Before each start kidx predicts its result from the files
(:mod:`kidx.startup`). After it the experiment records whether the broker started, which log directories are offline,
and the state and the end of each partition.
"""

from __future__ import annotations

from conformance.experiments.start_damage.cases import CASES, Case
from conformance.experiments.start_damage.experiment import Outcome, try_starts

__all__ = ["CASES", "Case", "Outcome", "try_starts"]
