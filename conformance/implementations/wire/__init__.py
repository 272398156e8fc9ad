"""Any broker by the protocol alone: what it is asked, what it has stored, and what it may answer."""
