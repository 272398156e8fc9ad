"""The ``index.interval.bytes`` of a topic, inferred from its sound offset indexes, or from KRaft's metadata."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.cluster import read_metadata
from kidx.discovery import parse_partition
from kidx.java_values import INT_MAX, parse_java
from kidx.printable import counted
from kidx.verify.verdicts import Interval, agree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kidx.verify import FileVerdict

DEFAULT: Final = 4096
"""Kafka's default in bytes."""
_NAMED: Final = 3
"""Maximum number of guesses that a warning lists."""


class Choice(NamedTuple):
    """Value of the setting; ``guess`` describes where it was guessed and from what, and is empty if it is certain."""

    value: int
    guess: str = ""


class Intervals:
    """Intervals that offset indexes under some paths allow, and the topics' settings on the same disks.

    Args:
        files: verdicts on the indexes.
        given: the setting, if it is known.
        settings: settings by topic, from KRaft's metadata.
    """

    def __init__(
        self, files: Iterable[FileVerdict], given: int | None = None, settings: Mapping[str, int] | None = None
    ) -> None:
        self._given = given
        self._settings = settings or {}
        self._own: dict[Path, Interval] = {}
        self._by_directory: dict[Path, list[Interval]] = defaultdict(list)
        self._by_topic: dict[str, list[Interval]] = defaultdict(list)
        for file in files:
            if file.interval is None:
                continue
            path = Path(file.path)
            self._own[path] = file.interval
            self._by_directory[path.parent].append(file.interval)
            self._by_topic[_topic(path.parent)].append(file.interval)

    def of(self, log: Path) -> Choice:
        """Return the interval of a segment.

        It is the given value, or a value that the segment's own index allows, preferably the topic's setting; or the
        topic's setting; or a value that the other indexes of the partition or topic allow; or else Kafka's default.
        """
        if self._given is not None:
            return Choice(self._given)
        topic = _topic(log.parent)
        setting = self._settings.get(topic)
        own = self._own.get(log.with_suffix(".index"))
        if own is not None and own.most is not None and not own.restarts:
            return Choice(setting if setting is not None and own.holds(setting) else likeliest(own))
        if setting is not None:
            return Choice(setting)
        for known in (self._by_directory.get(log.parent), self._by_topic.get(topic)):
            agreed = agree(known or ())
            if agreed is not None:
                value = likeliest(agreed)
                is_certain = value == DEFAULT or agreed.least == agreed.most
                return Choice(value, "" if is_certain else f"{log.parent}: {value} of {agreed}")
        return Choice(DEFAULT, f"{log.parent}: {DEFAULT}, the default, because no index limits the value")


def warning_of(guesses: Iterable[str]) -> list[str]:
    """Return one warning for all guessed values; empty if none was guessed."""
    places = list(dict.fromkeys(guess for guess in guesses if guess))
    if not places:
        return []
    named = "; ".join(places[:_NAMED]) + (f", and {len(places) - _NAMED} more" if len(places) > _NAMED else "")
    guessed = f"index.interval.bytes was guessed in {counted(len(places), 'partition')} ({named})"
    return [f"{guessed}: lookups are right with any value; --index-interval-bytes N sets the topics' value"]


def _topic(directory: Path) -> str:
    parsed = parse_partition(directory.name)
    return directory.name if parsed is None else parsed[0]


def likeliest(interval: Interval) -> int:
    """Return Kafka's default if it explains the entries, else the value that a person would have set.

    That is the largest power of two, or else a round number. All values in the interval explain the entries.
    """
    least, most = interval.least, interval.most if interval.most is not None else max(interval.least, DEFAULT)
    if least <= DEFAULT <= most:
        return DEFAULT
    if most and (power := 1 << (most.bit_length() - 1)) >= least:
        return power
    for unit in (10**9, 1 << 20, 10**6, 10**5, 1 << 12, 10**4, 1 << 10, 1000, 100, 10, 1):
        if (value := -(-least // unit) * unit) <= most and value:
            return value
    return least


_INTERVAL: Final = "index.interval.bytes"


def intervals_of_topics(log_directories: Iterable[Path]) -> dict[str, int]:
    """Return ``index.interval.bytes`` of the topics that set it, from the metadata in log directories.

    A topic without the setting has the broker's setting.
    """
    found = read_metadata(log_directories).settings
    numbers = {topic: parse_java(settings.get(_INTERVAL, ""), INT_MAX) for topic, settings in found.items()}
    return {topic: number for topic, number in numbers.items() if number is not None and number >= 0}
