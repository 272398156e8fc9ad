"""Campaign: a test run on Spark, with one task for each Kafka release, Hypothesis state machine and seed."""
