"""Which ``index.interval.bytes`` a topic has, as its sound offset indexes tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.discovery import parse_partition
from kidx.verify.verdicts import Interval, agree

if TYPE_CHECKING:
    from kidx.verify import FileVerdict

DEFAULT: Final = 4096
"""Kafka's own."""


class Choice(NamedTuple):
    """A value, and a warning where nothing on disk tells it."""

    value: int
    warning: str = ""


class Intervals:
    """What the offset indexes under some paths tell.

    Args:
        files: verdicts on them.
        given: the setting, if it is known.
    """

    def __init__(self, files: Iterable[FileVerdict], given: int | None = None) -> None:
        self._given = given
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
        """For a segment: as given, or from its own index, its partition's, its topic's; else a guess."""
        if self._given is not None:
            return Choice(self._given)
        own = self._own.get(log.with_suffix(".index"))
        if own is not None and own.most is not None and not own.restarts:
            return Choice(_roundest(own))
        for known in (self._by_directory.get(log.parent), self._by_topic.get(_topic(log.parent))):
            agreed = agree(known or ())
            if agreed is not None:
                return _among(agreed, log.parent.name)
        return Choice(
            DEFAULT,
            f"no index of {log.parent.name} tells its index.interval.bytes, and {DEFAULT} was taken: look-ups come out "
            "right with any; --index-interval-bytes N gives the topic's",
        )


def _among(known: Interval, name: str) -> Choice:
    """A value that explains the siblings' entries; several do, unless there are many of them."""
    value = _roundest(known)
    if value == DEFAULT or known.least == known.most:
        return Choice(value)
    return Choice(
        value,
        f"the indexes of {name} tell an index.interval.bytes of {known}, and {value} was taken: look-ups come out "
        "right with any; --index-interval-bytes N gives the topic's",
    )


def _topic(directory: Path) -> str:
    parsed = parse_partition(directory.name)
    return directory.name if parsed is None else parsed[0]


def _roundest(interval: Interval) -> int:
    """Kafka's default if it explains the entries, else the value a person would have set: all explain them alike."""
    least, most = interval.least, interval.most if interval.most is not None else max(interval.least, DEFAULT)
    if least <= DEFAULT <= most:
        return DEFAULT
    for unit in (10**9, 1 << 20, 10**6, 10**5, 1 << 12, 10**4, 1 << 10, 1000, 100, 10, 1):
        if (value := -(-least // unit) * unit) <= most and value:
            return value
    return least
