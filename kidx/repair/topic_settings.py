"""Settings of topics in KRaft's metadata on the same disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kidx.cluster import read_metadata
from kidx.java_numbers import INT_MAX, parse_java

_INTERVAL: Final = "index.interval.bytes"


def intervals_of_topics(log_directories: Iterable[Path]) -> dict[str, int]:
    """Return ``index.interval.bytes`` of the topics that set it, from the metadata in log directories.

    A topic without the setting has the broker's setting.
    """
    found = read_metadata(log_directories).settings
    numbers = {topic: parse_java(settings.get(_INTERVAL, ""), INT_MAX) for topic, settings in found.items()}
    return {topic: number for topic, number in numbers.items() if number is not None and number >= 0}
