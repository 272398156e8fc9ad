"""Scoreboard as a page and as Markdown: implementations are rows, areas (groups of clauses) are columns."""
