"""Any broker by Kafka's protocol alone: queries, stored records, and allowed responses."""
