"""Drives implementations of Kafka's log indexes in lockstep, and compares answers, state and bytes."""
