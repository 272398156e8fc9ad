"""Implementation of the pytest plug-in: the collected items, and the tiers that tests may need."""
