"""Brokers with tiered storage: lookups across tiers, and starts with a corrupt cache of remote index files."""

from conformance.experiments.tiers.experiment import Outcome, Tried, try_release
from conformance.experiments.tiers.prepared import CASES, RELEASES, Case

__all__ = ["CASES", "RELEASES", "Case", "Outcome", "Tried", "try_release"]
