"""``conformance kafka propose``: what the package's data would have to say of a release, found by executing it."""
