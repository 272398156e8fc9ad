"""The levels of lockstep: what an index file, a segment, a log and a broker's topic are to it."""
