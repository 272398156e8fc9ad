"""Scopes: the kinds of object that a lockstep tests (index, segment, log, tiered log, cache, a broker's topic)."""
