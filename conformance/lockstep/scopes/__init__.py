"""Scopes of lockstep: index file, segment, log, cache, and a broker's topic."""
