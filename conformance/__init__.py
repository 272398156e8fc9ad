"""Conformance tests of Kafka's log indexes: implementations in lockstep, with outcomes, states and bytes compared."""
