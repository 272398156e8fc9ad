"""Studies: experiments with Kafka's classes that share one frame; see ``docs/architecture.md``."""
