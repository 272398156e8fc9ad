"""One run: what it is to do, its rounds, what it finds, and its verdicts."""
