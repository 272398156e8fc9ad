"""Implementations that a lockstep can drive: reference, model, Kafka's own classes, brokers, external programs."""
