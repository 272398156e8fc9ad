"""Segments as Arrow tables, wherever they lie: what Spark's source and :func:`kidx.read` have in common."""
