"""One run: its plan and rounds, verdicts, regression traces, replay and shrinking; runs against brokers."""
