"""Registry of mutants: kidx with one defect, and the clause that it violates.

A defect of one fragment is a row: clause, name, title, function, the fragment of its source, and what replaces it::

    plant(
        OffsetIndex,
        Row("AI-6", "never-full", "An index is full only if it has more entries than fit.",
            "is_full", "self.entries >= self.max_entries", "self.entries > self.max_entries"),
    )

Any other defect is a subclass; the first line of its docstring is the title::

    @defect("AI-21a")
    class CopiesInsteadOfMoving(OffsetIndex):
        "A rename leaves a file under the old name."

Either is then an implementation, such as ``mutant:never-full``, of the machine that drives such objects.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import cleandoc
from typing import Any, Final, NamedTuple, TypeVar

from conformance.implementations.kidx.cache import ReferenceCache
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.implementations.kidx.log import ReferenceLog
from conformance.implementations.kidx.segment import ReferenceSegment
from conformance.implementations.kidx.tiered import ReferenceTiered
from conformance.implementations.mutants.planting import FragmentError, planted
from kidx.log import UnifiedLog
from kidx.producers import ProducerStateManager

NEWEST: Final = "4.4.0"
"""The release in whose dialect a defect is planted, unless only other dialects show the defect."""
TRIMMING: Final = "3.9.2"
"""The newest release whose close trims the index files and appends the last time entry."""
PER_APPEND: Final = "3.9.0"
"""A release in which an append has at most one index entry."""

REFERENCES: Final[dict[str, tuple[type, str]]] = {
    "offset": (ReferenceIndex, "offset_index"),
    "time": (ReferenceIndex, "time_index"),
    "transaction": (ReferenceIndex, "transaction_index"),
    "segment": (ReferenceSegment, "log_segment"),
    "tiered": (ReferenceTiered, "tiered_log"),
    "log": (ReferenceLog, "unified_log"),
    "cleaned": (ReferenceLog, "unified_log"),
    "cache": (ReferenceCache, "index_cache"),
}
"""The reference of each machine, and its attribute whose value is the class that has the defect.

The first machine whose class is the class of a defect, or one of its base classes, must find it.
"""
_OF_CLEANER: Final = "CL-"
"""Beginning of the clauses that only the machine of compacted logs exercises."""


START: Final = ""
"""Fragment of a row whose replacement is inserted at the beginning of the function."""


class Row(NamedTuple):
    """Defect of one fragment.

    Attributes:
        clause: The clause that the defect violates.
        name: The name in ``mutant:NAME``.
        title: The defect in one sentence.
        function: The names that lead to the function from the class of the table, see :func:`planted`.
        before: The fragment: an expression or statements of the function, or :data:`START`.
        after: The replacement.
        release: The release whose dialect the mutant has.
    """

    clause: str
    name: str
    title: str
    function: str
    before: str
    after: str
    release: str = NEWEST

    def planted_in(self, base: type) -> Callable[[], type]:
        """Return a function that plants the defect in a class; a FragmentError contains the name of the row."""

        def build() -> type:
            try:
                return planted(base, self.function.split("."), self.before, self.after)  # type: ignore[no-any-return]
            except FragmentError as error:
                raise FragmentError(f"{self.name}: {error}") from None

        return build


@dataclass(frozen=True)
class Mutant:
    """Reviewed defect.

    Attributes:
        name: The name in ``mutant:NAME``.
        title: The defect in one sentence.
        machine: The machine that must find the defect.
        clause: The clause that the defect violates.
        release: The release whose dialect the mutant has.
        build: A function that returns the defective class.
    """

    name: str
    title: str
    machine: str
    clause: str
    release: str
    build: Callable[[], type]

    @cached_property
    def defect(self) -> type:
        """The defective class.

        Raises:
            FragmentError: A row does not fit the source of kidx.
        """
        return self.build()

    @property
    def attribute(self) -> str:
        """Attribute of the reference with the class."""
        return REFERENCES[self.machine][1]

    @property
    def reference(self) -> type:
        """Class of the reference that has the defect."""
        return REFERENCES[self.machine][0]


MUTANTS: Final[dict[str, Mutant]] = {}
"""All mutants by name, in the order of their modules."""

MutantClass = TypeVar("MutantClass", bound=type[Any])


def defect(clause: str, *, release: str = NEWEST) -> Callable[[MutantClass], MutantClass]:
    """Register a class as a mutant that violates ``clause`` in the dialect of ``release``."""

    def register(mutant_class: MutantClass) -> MutantClass:
        if issubclass(mutant_class, ProducerStateManager):
            kind: type = type(mutant_class.__name__, (UnifiedLog,), {"producer_state": mutant_class})
        else:
            kind = mutant_class
        name = re.sub(r"(?<!^)(?=[A-Z])", "-", mutant_class.__name__).lower()
        title = cleandoc(mutant_class.__doc__ or "").partition("\n")[0]
        _register(kind, name, title, clause, release, lambda: kind)
        return mutant_class

    return register


def plant(base: type, *rows: Row) -> None:
    """Register rows as mutants of a class."""
    for row in rows:
        _register(base, row.name, row.title, row.clause, row.release, row.planted_in(base))


def _register(base: type, name: str, title: str, clause: str, release: str, build: Callable[[], type]) -> None:
    machine = next(name for name, (reference, of) in REFERENCES.items() if issubclass(base, getattr(reference, of)))
    if clause.startswith(_OF_CLEANER):
        machine = "cleaned"
    if name in MUTANTS:
        raise ValueError(f"there are two mutants {name!r}")
    MUTANTS[name] = Mutant(name, title, machine, clause, release, build)
