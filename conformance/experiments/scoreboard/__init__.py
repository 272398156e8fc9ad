"""Comparison of implementations by area, from the event streams of runs."""
