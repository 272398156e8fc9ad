"""Conformance tests of Kafka's log layer: outcomes, states and files are compared after every operation."""
