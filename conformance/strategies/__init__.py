"""Strategies: the values that machines draw, each with the reason why it is relevant."""
