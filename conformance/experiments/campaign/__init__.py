"""A campaign on Spark: release × machine × seed as tasks."""
