"""The index files: offset, time and transaction index, their mapped buffer, and the search in them."""
