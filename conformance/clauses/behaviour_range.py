"""Release range of a clause that refers to a row of kidx's table of behaviours: ``where close_trims``.

A row of the table (:mod:`kidx.dialect.table`) has a name and, for each release, a value; most values are booleans.

=================================== ===================================================
``where close_trims``               releases in which ``close_trims`` is True
``where not close_trims``           releases in which ``close_trims`` is False
``where max_lookup is read``        releases in which ``max_lookup`` is ``"read"``
=================================== ===================================================

Only the row names releases, so that one edit changes both kidx and the clause.
"""

from __future__ import annotations

import re
from typing import Any, Final

from kidx.dialect import DIALECTS, PUBLISHED, ROWS, dialect_of
from kidx.dialect.release_range import ReleaseRange, ReleaseRangeError, range_of

_WHERE: Final = re.compile(r"where (?P<not>not )?(?P<name>\w+)(?: is (?P<value>.+))?")


class BehaviourRange(ReleaseRange):
    """Releases in which a row of the table has one value.

    Attributes:
        behaviour: The name of the row.
        value: The value of the row in these releases.
    """

    behaviour: str
    value: Any

    def __init__(self, behaviour: str, value: Any) -> None:
        object.__setattr__(self, "behaviour", behaviour)
        object.__setattr__(self, "value", value)
        releases = [release for release in PUBLISHED.split() if ROWS[behaviour].value_in(release) == value]
        if releases:
            parsed = ReleaseRange.parse(range_of(releases, PUBLISHED.split()))
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
        ReleaseRangeError: The text is no range, or the table does not have the row or the value that it names.
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
