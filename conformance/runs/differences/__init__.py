"""Differences: what a run sees of them, which of them are one, and how each is told."""
