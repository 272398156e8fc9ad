"""Output of ``kafka-dump-log`` for a log's files, release by release, without opening them for writing (DL-1..9).

A file is dumped as :class:`Entry` objects: fields in the order of Kafka's line. The text is made from the fields, so
that text and JSON cannot differ. An error that Kafka reports is a :class:`~kidx.dump.entry.Mismatch`.
"""

from __future__ import annotations

from kidx.dump.entry import Entry, Mismatch, Mismatches
from kidx.dump.logs import Dump, Options

__all__ = ["Dump", "Entry", "Mismatch", "Mismatches", "Options"]
