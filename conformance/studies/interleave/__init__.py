"""Interleavings: operations of Kafka's classes that run in the middle of another operation, as other threads would."""
