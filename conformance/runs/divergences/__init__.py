"""Divergences of a run: their buckets, their root causes, and their signatures."""
