"""Cluster of brokers, compared with the reference: replication, elections, truncation by epochs."""
