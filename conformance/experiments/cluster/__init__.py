"""A cluster of brokers in lockstep with the reference: replication, elections, truncation by epochs."""
