"""Test vectors: for each release, files and a document of queries with the answers of that release's own classes.

An implementation that only reads files needs no lockstep, only these. Nothing in them was answered by kidx: it builds
some of the files, and it chooses the queries.
"""
