"""Campaign on Spark: release × machine × seed as tasks."""
