"""Campaign on Spark: one task for each release, machine and seed."""
