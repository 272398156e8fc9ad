"""Power failures: how Kafka's log recovers from every state that a disk may have when power is lost."""
