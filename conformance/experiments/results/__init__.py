"""Pages of results: the scoreboard of some runs, the changes since earlier results, the history, and badges."""
