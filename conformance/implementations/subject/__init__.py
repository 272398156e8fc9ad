"""Third-party implementations of the catalogue: built once, started for a run."""
