"""Kafka itself: which releases are locked, how their jars arrive, and the Java that runs them.

Four steps, one file each: :mod:`~conformance.kafka.releases` reads the lock files,
:mod:`~conformance.kafka.fetch` turns one into a class path of verified jars,
:mod:`kidx.java` finds a Java, and :mod:`~conformance.kafka.lock` makes the lock files.
"""

from __future__ import annotations

from conformance.kafka.fetch import cache_directory, class_path, tool_jar
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
