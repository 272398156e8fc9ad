"""Experiments that use runs.

Mutation testing, exhaustive runs, fuzzing, release diffs, file corruption, golden corpora, clusters and campaigns.
"""
