"""Segments as Arrow tables, in any storage: the code that Spark's source and :func:`kidx.read` share."""
