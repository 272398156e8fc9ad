"""Damage before a start: what a broker makes of a damaged log directory, beside what ``kidx verify`` says before.

One broker fills a partition for each case, and is stopped cleanly, and later killed: two prepared directories
(:mod:`conformance.experiments.start_damage.prepared`). Damages that concern one partition share a copy and a start.
Those that concern more get a copy and a start of their own. Before each start kidx predicts its result from the files
(:mod:`kidx.startup`). After it the experiment records what happened: whether the broker started, which log directories
are offline, what became of each partition and where it ends.
"""

from __future__ import annotations

from conformance.experiments.start_damage.cases import CASES, Case
from conformance.experiments.start_damage.experiment import Outcome, damage_starts

__all__ = ["CASES", "Case", "Outcome", "damage_starts"]
