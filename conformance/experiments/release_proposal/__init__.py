"""``conformance kafka infer-dialect``: dialect data of a release, inferred by executing its classes."""
