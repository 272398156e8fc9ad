"""Names of the files in the cache, parsed as Kafka parses them (``RemoteIndexCache``; RC-1, RC-2).

A name is ``<start offset>_<segment id>.<kind>``. Kafka splits it at the first ``_`` and the first ``.`` and checks
nothing else, so some foreign names are accepted, and others prevent the broker from starting.
"""

from __future__ import annotations

import base64
import re
from typing import Final, NamedTuple

from kidx.errors import InvalidArgumentError, OutOfBoundsError
from kidx.java_numbers import LONG_MAX, LONG_MIN
from kidx.remote.errors import InvalidNumberError

DIRECTORY: Final = "remote-log-index-cache"
"""Name of the cache's directory below a log directory."""
KINDS: Final = (".index", ".timeindex", ".txnindex")
"""Kinds of files of a remote segment, in the order in which they are fetched."""
TEMPORARY: Final = ".tmp"
"""Suffix of a file that is being fetched."""
DELETED: Final = ".deleted"
"""Suffix of a file that will be deleted."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?\d+")


class RemoteSegment(NamedTuple):
    """Segment in remote storage.

    Attributes:
        start_offset: offset of the first record.
        id: the segment's id, sixteen bytes.
    """

    start_offset: int
    id: bytes

    def file_name(self, kind: str) -> str:
        """Return the name of a cached file; the kind is one of :data:`KINDS`."""
        return f"{self.start_offset}_{text_of_id(self.id)}{kind}"


def text_of_id(segment_id: bytes) -> str:
    """Return an id as Kafka prints it: base64 of the URL alphabet without padding."""
    return base64.urlsafe_b64encode(segment_id).decode().rstrip("=")


def id_from_text(text: str) -> bytes:
    """Return the id that a text encodes; the unused bits of the last character are ignored.

    Raises:
        InvalidArgumentError: the text is not base64 of sixteen bytes.
    """
    if not _ID.fullmatch(text):
        raise InvalidArgumentError(f"{text!r} is not the id of a segment, which has 22 characters of base64", None)
    return base64.urlsafe_b64decode(f"{text[:22]}==")


def prefix_of(name: str) -> str:
    """Return the part of a name before the first full stop: start offset and id."""
    return name.partition(".")[0]


def segment_id_of(name: str) -> bytes:
    """Return the id in the name of a file, whatever follows its first full stop.

    Raises:
        OutOfBoundsError: no full stop follows the first underscore.
        InvalidArgumentError: the part between them is not an id.
    """
    underscore, stop = name.find("_"), name.find(".")
    if underscore + 1 > stop:
        raise OutOfBoundsError(
            f"{name!r} is not the name of a cached file: it has no full stop after an underscore", None
        )
    return id_from_text(name[underscore + 1 : stop])


def start_offset_of(name: str) -> int:
    """Return the start offset in the name of a file.

    Raises:
        OutOfBoundsError: the name has no underscore.
        InvalidNumberError: the part before it is not a 64-bit number.
    """
    underscore = name.find("_")
    if underscore < 0:
        raise OutOfBoundsError(f"{name!r} is not the name of a cached file: it has no underscore", None)
    number = name[:underscore]
    if not _NUMBER.fullmatch(number) or not LONG_MIN <= int(number) <= LONG_MAX:
        raise InvalidNumberError(f"{number!r} in the name {name!r} is not an offset", None)
    return int(number)
