"""Release range of a clause that states a behaviour of the table: ``where close_trims``.

=================================== ===================================================
``where close_trims``               releases that have the behaviour
``where not close_trims``           releases that lack it
``where max_lookup is read``        releases in which it has this value
=================================== ===================================================

The range of the row (:mod:`kidx.dialect.table`) is the only place that names releases: one edit changes both.
"""

from __future__ import annotations

import re
from typing import Any, Final

from kidx.dialect import DIALECTS, PUBLISHED, ROWS, dialect_of
from kidx.dialect.release_range import ReleaseRange, ReleaseRangeError, range_of

_WHERE: Final = re.compile(r"where (?P<not>not )?(?P<name>\w+)(?: is (?P<value>.+))?")


class BehaviourRange(ReleaseRange):
    """Releases in which a behaviour has one value.

    Attributes:
        behaviour: The name of the row.
        value: Its value in these releases.
    """

    behaviour: str
    value: Any

    def __init__(self, behaviour: str, value: Any) -> None:
        object.__setattr__(self, "behaviour", behaviour)
        object.__setattr__(self, "value", value)
        supported = [release for release in PUBLISHED.split() if ROWS[behaviour].value_in(release) == value]
        if supported:
            parsed = ReleaseRange.parse(range_of(supported, PUBLISHED.split()))
            super().__init__(parsed.text, parsed.spans)
        else:
            super().__init__("no published release", ())

    def __contains__(self, release: str) -> bool:
        if release in DIALECTS:
            return bool(getattr(dialect_of(release), self.behaviour) == self.value)
        return super().__contains__(release)


def parse_range(text: str) -> ReleaseRange:
    """Parse the release range of a clause.

    Raises:
        ReleaseRangeError: The text is no range, or it names a behaviour or a value that the table does not have.
    """
    if not text.startswith("where "):
        return ReleaseRange.parse(text)
    match = _WHERE.fullmatch(text)
    row = ROWS.get(match["name"]) if match else None
    if match is None or row is None:
        raise ReleaseRangeError(f"{text!r} names no behaviour of the table")
    wanted = match["value"] or str(not match["not"])
    for value in row.values:
        if str(value) == wanted:
            return BehaviourRange(match["name"], value)
    raise ReleaseRangeError(f"{text!r}: {match['name']} has no value {wanted}")
