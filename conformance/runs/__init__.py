"""Runs: plan, example loop, verdicts, regression traces, replay and shrinking; runs against brokers."""
