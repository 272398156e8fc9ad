"""Test of a cluster of three brokers: lookups and files after replication, elections and truncation by epochs."""
