"""Kafka's own classes, any number of releases at once, in this process (JPype)."""

from conformance.implementations.jvm.index import JvmIndex

__all__ = ["JvmIndex"]
