"""Who can be held to the rules: the reference, Kafka's own classes, brokers, somebody else's program."""
