"""The implementations a lockstep can hold: reference, model, Kafka's own classes, brokers, external programs."""
