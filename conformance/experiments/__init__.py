"""Experiments: programs beyond ``conformance run``, each with its own command.

Mutation testing, exhaustive runs, fuzzing, release diffs, file corruption, golden corpora, clusters and campaigns.
"""
