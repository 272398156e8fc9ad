"""Test vectors: for each release, files and a document of queries with the answers of that release's own classes.

They suffice to test an implementation that only reads files. All answers come from Kafka's classes; kidx only builds
some of the batches, and chooses the queries.
"""
