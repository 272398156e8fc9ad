"""Mutation testing of the harness: the number of examples until it finds planted defects and old bugs of Kafka."""
