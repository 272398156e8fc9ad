"""Pages of results: the board of some runs, what is new in them, the earlier results, and badges."""
