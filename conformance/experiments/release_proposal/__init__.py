"""``conformance kafka infer-dialect``: the behaviours of a new Kafka release, inferred by executing its classes."""
