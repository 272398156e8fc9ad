"""Bounded exhaustive testing: every sequence of a few operations, and every crash point of a segment."""
