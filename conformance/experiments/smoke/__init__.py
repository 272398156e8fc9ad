"""Smoke test of an adapter, the program that connects an implementation to the harness, before a test run."""
