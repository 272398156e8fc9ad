"""Corrupt index files of a stopped broker: what a start does with them, compared with what kidx predicts."""
