"""One participant of a lockstep: an implementation in a directory of its own."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from conformance.operations.log_capabilities import needs_missing_capability

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.operations import Operation


class Participant(ABC):
    """An implementation, its directory, and the files that it works on.

    Attributes:
        perform: performs an operation; of a batched one, the result of the last operation that it has performed.
        prefix: the directory as a string that ends with a slash.
        active: it takes part in the rest of the example.
        batched: it performs what the references have performed, many steps at a time, see
            :mod:`conformance.lockstep.batched_execution`.
    """

    def __init__(self, implementation: Any, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.implementation = implementation
        self.directory = directory
        self.prefix = f"{directory}/"
        self.active = True
        self.batched = getattr(implementation, "followers", None) is not None
        self.perform: Callable[[Operation], Any] = (
            implementation.observation if self.batched else implementation.perform
        )

    def begin(self) -> None:
        """Starts an example in the empty directory."""
        self.implementation.begin(self.directory)
        self.active = True

    def end(self) -> None:
        """Ends it and removes the files."""
        self.implementation.end()
        self.clear()

    def clear(self) -> None:
        """Removes everything in the directory."""
        for left_over in os.listdir(self.prefix):  # noqa: PTH208 -- every example of every participant comes by here
            try:
                os.unlink(self.prefix + left_over)  # noqa: PTH108 -- as above
            except IsADirectoryError:  # the implementation has made it
                shutil.rmtree(self.prefix + left_over)

    def watch(self, name: Any) -> None:
        """Reads the files of this name from now on; names are those of :meth:`Level.named`."""
        del name

    @abstractmethod
    def read(self) -> Any:
        """The content of the files that are compared, right now."""

    def fairly(self, operation: Operation, expected: Any, actual: Any, reference: Participant) -> tuple[Any, Any]:
        """What it is held to after a step, and what there is: both without what it may do otherwise.

        Args:
            operation: the step's.
            expected: the reference's observation, and its files.
            actual: the same of this participant.
            reference: as it is after the step.
        """
        del operation, reference
        return expected, actual

    def at_stake(self, clauses: tuple[str, ...]) -> tuple[str, ...]:
        """Return the clauses that a difference may be about: none that is beyond the capabilities.

        Args:
            clauses: those that the step exercises.
        """
        capabilities: frozenset[str] | None = getattr(self.implementation, "capabilities", None)
        if capabilities is None:
            return clauses
        return tuple(clause for clause in clauses if not needs_missing_capability(clause, capabilities))

    def failure_between_examples(self) -> str | None:
        """Return the last failure to close what was open, and forget it; None if there is none."""
        failures: list[str] = getattr(self.implementation, "failures_between_examples", [])
        text = failures[-1] if failures else None
        failures.clear()
        return text

    def is_promised(self) -> bool:
        """Return whether a broker may have come to the last step, with the files that this participant has."""
        return True

    def discredit(self, clauses: tuple[str, ...]) -> None:
        """Take back the evidence of a step for clauses that it exercised with the reference alone.

        Args:
            clauses: those that the reference exercised.
        """
        del clauses

    def listing_for(self, expected: list[str]) -> list[str]:
        """:meth:`listing`, as far as the reference's has to be the same."""
        del expected
        return self.listing()

    def listing(self) -> list[str]:
        """Names of all files in the directory, sorted."""
        return sorted(os.listdir(self.prefix))  # noqa: PTH208 -- as above
