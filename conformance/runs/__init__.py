"""One run: plan, profiles, rounds, verdicts, regression traces, replay, shrinking."""
