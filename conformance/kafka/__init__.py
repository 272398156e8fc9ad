"""Kafka's locked releases, their jars, and the Java that runs them.

A release is locked if a lock file lists its jars with their SHA-256 hashes. All downloads are checked against it.
:mod:`~conformance.kafka.releases` reads the lock files, :mod:`~conformance.kafka.jar_fetch` fetches and verifies the
jars of a release, :mod:`kidx.java` finds a Java, and :mod:`~conformance.kafka.lock_file` writes the lock files.
"""

from __future__ import annotations

from conformance.kafka.jar_fetch import cache_directory, class_path, tool_jar
from conformance.kafka.releases import GROUPS, RELEASES, Jar, Release, load_release, newest
from kidx.java import Java, find_java

__all__ = [
    "GROUPS",
    "RELEASES",
    "Jar",
    "Java",
    "Release",
    "cache_directory",
    "class_path",
    "find_java",
    "load_release",
    "newest",
    "tool_jar",
]
