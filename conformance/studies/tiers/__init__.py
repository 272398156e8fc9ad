"""Brokers with tiered storage: lookups across tiers, and starts with a corrupt cache of remote index files."""
