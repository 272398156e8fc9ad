"""``conformance kafka infer-dialect``: the data that the package needs for a release, found by executing it."""
