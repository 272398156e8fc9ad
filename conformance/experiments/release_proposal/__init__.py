"""``conformance kafka infer-dialect``: the dialect data that a release needs, inferred by executing it."""
