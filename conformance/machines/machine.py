"""Base class of all machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from hypothesis.stateful import RuleBasedStateMachine

from conformance.lockstep.divergence import Decision

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence


class Machine(RuleBasedStateMachine):
    """State machine whose rules execute operations in a lockstep; each run of the machine is one example.

    Attributes:
        kind: The name of the machine, such as ``offset``.
        lockstep_type: The class of locksteps to which the machine can be bound.
        lockstep: The lockstep of a bound machine: it executes each operation with all participants and compares them.
    """

    kind: ClassVar[str]
    lockstep_type: ClassVar[type[Any]]
    lockstep: ClassVar[Any]

    @classmethod
    def bind(cls, lockstep: Any, **members: Any) -> type[Self]:
        """Return a subclass of this machine that executes its operations in a lockstep.

        Args:
            lockstep: The lockstep, of the type ``lockstep_type``.
            **members: Further members of the class.
        """
        return type(cls.__name__, (cls,), {"lockstep": lockstep, "__module__": cls.__module__} | members)

    @classmethod
    def subject(cls, specification: str, release: str, progress: Progress | None = None) -> Any:
        """Return the implementation that a specification such as ``jvm`` names, for a release.

        Raises:
            NotDrivenError: The machine does not support this form of implementation.
            ToolError: The implementation is not available here, or the specification is unknown.
        """
        raise NotImplementedError

    @classmethod
    def new_lockstep(
        cls,
        subjects: Iterable[Any],
        scratch: Path,
        *,
        releases: Iterable[str] = (),
        on_divergence: Callable[[Divergence], Decision | bool] = lambda _: Decision.RAISE,
    ) -> Any:
        """Return a lockstep for this machine, with the arguments of ``Lockstep``."""
        return cls.lockstep_type(subjects, scratch, releases=releases, on_divergence=on_divergence)
