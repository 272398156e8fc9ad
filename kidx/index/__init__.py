"""Offset, time and transaction index files, their mapped buffer, and the binary search in them."""
