"""Broker that is tested only through Kafka's protocol: queries, stored records, and allowed responses."""
