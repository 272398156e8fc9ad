"""Third-party implementations of the catalogue, which are built once and started for a run."""
