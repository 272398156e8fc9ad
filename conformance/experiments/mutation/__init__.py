"""Mutation testing of the harness: how soon it finds planted defects, artificial ones and re-created bugs of Kafka."""
