"""Kafka's own classes, of any number of releases in this process (JPype)."""

from conformance.implementations.jvm.index import JvmIndex

__all__ = ["JvmIndex"]
