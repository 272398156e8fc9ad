"""Scoreboard as a page and as Markdown: implementations are rows, areas are columns."""
