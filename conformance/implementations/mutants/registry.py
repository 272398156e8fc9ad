"""Registry of mutants: a class of kidx with one defect, and the clause that it violates.

To write one: subclass the class, break one method, describe the defect in the first line of the docstring, and name the
clause::

    @defect("OI-10")
    class KeepsTheEqualOffset(OffsetIndex):
        "Truncation keeps the entry at exactly the offset."

It is then the implementation ``mutant:keeps-the-equal-offset`` of the machine that drives such objects.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Final, TypeVar

from kidx import OffsetIndex, TimeIndex, TransactionIndex
from kidx.log import UnifiedLog
from kidx.producers import ProducerStateManager
from kidx.segment import LogSegment

NEWEST: Final = "4.4.0"
"""The release whose rules a defect is planted in, unless the defect only shows under others."""
TRIMMING: Final = "3.9.2"
"""The newest release whose close trims and appends the last time entry."""
PER_APPEND: Final = "3.9.0"
"""A release that indexes once an append (A1)."""

_MACHINES: Final[dict[type, str]] = {
    OffsetIndex: "offset",
    TimeIndex: "time",
    TransactionIndex: "transaction",
    LogSegment: "segment",
    UnifiedLog: "log",
    ProducerStateManager: "log",
}
_OF_CLEANER: Final = "CL-"
"""Clauses that only the machine of compacted logs exercises."""
_ATTRIBUTES: Final = {
    "offset": "offset_index",
    "time": "time_index",
    "transaction": "transaction_index",
    "segment": "log_segment",
    "log": "unified_log",
    "cleaned": "unified_log",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """Reviewed defect.

    Attributes:
        name: The name in ``mutant:NAME``.
        title: The defect in one sentence.
        machine: The machine that has to find it.
        clause: The clause that it violates.
        release: The release whose rules it must follow.
        defect: The defective class.
    """

    name: str
    title: str
    machine: str
    clause: str
    release: str
    defect: type

    @property
    def attribute(self) -> str:
        """Attribute of the reference's adapter with the class."""
        return _ATTRIBUTES[self.machine]


MUTANTS: Final[dict[str, Mutant]] = {}
"""Every mutant by name, in the order of the files they are in."""

Spoilt = TypeVar("Spoilt", bound=type[Any])


def defect(clause: str, *, release: str = NEWEST) -> Callable[[Spoilt], Spoilt]:
    """Register a class as a mutant that violates ``clause`` under the rules of ``release``."""

    def put_down(spoilt: Spoilt) -> Spoilt:
        name = re.sub(r"(?<!^)(?=[A-Z])", "-", spoilt.__name__).lower()
        machine = next(machine for base, machine in _MACHINES.items() if issubclass(spoilt, base))
        if clause.startswith(_OF_CLEANER):
            machine = "cleaned"
        if name in MUTANTS:
            raise ValueError(f"there are two mutants {name!r}")
        if issubclass(spoilt, ProducerStateManager):
            kind: type = type(spoilt.__name__, (UnifiedLog,), {"producer_state": spoilt})
        else:
            kind = spoilt
        title = cleandoc(spoilt.__doc__ or "").partition("\n")[0]
        MUTANTS[name] = Mutant(name, title, machine, clause, release, kind)
        return spoilt

    return put_down
