"""Comparison of implementations: their results in each area, from event streams of any runs."""
