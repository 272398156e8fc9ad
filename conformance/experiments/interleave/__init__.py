"""Interleavings: operations of Kafka's index classes that run in the middle of another operation."""
