"""Whether an adapter is sane, asked before its implementation is judged."""
