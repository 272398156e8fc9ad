"""Operations on an index that may run in the middle of each other, as a broker's threads do.

A fetch looks up an index without a lock, while a replica's thread appends, truncates, rolls or closes it.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Scenario(NamedTuple):
    """Operations of one kind of index: names and arguments, separated by blanks.

    Attributes:
        class_names: names of the index's class in the different eras of Kafka.
        setup: operations that run before.
        writers: operations that change the index; consecutive ones are separated by ``;``.
        readers: lookups.
    """

    class_names: tuple[str, ...]
    setup: tuple[str, ...]
    writers: tuple[str, ...]
    readers: tuple[str, ...]


_STORAGE: Final = "org.apache.kafka.storage.internals.log."

SCENARIOS: Final = {
    "offset": Scenario(
        (f"{_STORAGE}OffsetIndex", "kafka.log.OffsetIndex"),
        ("append 10 100", "append 20 200", "append 30 300", "append 40 400"),
        (
            "append 50 500",
            "truncateTo 25",
            "truncateTo 10",
            "truncate",
            "resize 48",
            "trimToValidSize",
            "flush",
            "truncateTo 25;append 26 260;append 36 360",
        ),
        ("lookup 35", "lookup 25", "lookup 100", "lastOffset", "entries", "entry 2", "isFull", "sanityCheck"),
    ),
    "time": Scenario(
        (f"{_STORAGE}TimeIndex", "kafka.log.TimeIndex"),
        ("maybeAppend 1010 10 false", "maybeAppend 1020 20 false", "maybeAppend 1030 30 false"),
        (
            "maybeAppend 1050 50 false",
            "truncateTo 25",
            "truncateTo 10",
            "truncate",
            "resize 48",
            "trimToValidSize",
            "flush",
            "truncateTo 15;maybeAppend 1016 16 false",
        ),
        ("lookup 1035", "lookup 1025", "lookup 5000", "lastEntry", "entries", "entry 1", "isFull", "sanityCheck"),
    ),
}
"""Scenarios by the kind of index."""

PLANTED: Final = Scenario(("conformance.Racy",), (), ("add 1",), ("add 2",))
"""Race that must be detected before a run is trusted."""
