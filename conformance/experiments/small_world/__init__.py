"""The small world: every sequence of a few operations instead of a draw, and every crash point of a segment."""
