"""What is done with runs.

Mutation testing, small worlds, fuzzing, release diffs, file damage, golden corpora, clusters and campaigns.
"""
