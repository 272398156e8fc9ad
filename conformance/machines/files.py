"""Base class of the machines whose implementations have several files: segments, logs, and the remote index cache.

To write a machine, set ``kind`` and ``lockstep_type``, and add the rules.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

from conformance.clauses.machines import MACHINES, why_not_driven
from conformance.errors import NotDrivenError
from conformance.implementations.spec import build_of, mutant_subject, parse_spec
from conformance.implementations.subject.build import command_of
from conformance.machines.machine import Machine
from conformance.subjects import load_subject

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep.lockstep import Lockstep


class FilesMachine(Machine):
    """State machine whose rules execute operations in a ``Lockstep``; each run of the machine is one example."""

    lockstep: ClassVar[Lockstep[Any, Any]]
    program: ClassVar[Callable[..., Any] | None] = None
    """Class of programs with the line protocol, called with a command and a release; None if not supported."""

    @classmethod
    def jvm(cls, release: str, progress: Progress | None = None, build: Build | None = None) -> Any:
        """Return Kafka's own class of a release, or of a build that is compared with the release.

        It is ``JvmCache`` in :mod:`conformance.implementations.jvm` for the machine or the operations ``cache``.

        Raises:
            NotDrivenError: The build lacks a class or member.
            ToolError: Java or the jars are missing, or a class has members that the adapter does not know.
        """
        module = MACHINES[cls.kind].base or cls.kind
        return resolve_name(f"conformance.implementations.jvm.{module}:Jvm{module.title()}")(release, progress, build)

    @classmethod
    def subject(cls, specification: str, release: str, progress: Progress | None = None) -> Any:
        """Return the implementation that a specification such as ``jvm`` names, for a release.

        Raises:
            NotDrivenError: This machine does not support this form of implementation.
            ToolError: The implementation is not available here, or the specification is unknown.
        """
        if reason := why_not_driven(cls.kind, release):
            raise NotDrivenError(reason)
        form, words = parse_spec(specification)
        if form == "jvm":
            return cls.jvm(release, progress, build_of(*words) if words else None)
        if form == "mutant":
            return mutant_subject(words[0], release, (cls.kind,))
        if form == "exec" and cls.program is not None:
            return cls.program(words, release, name=specification)
        if form == "subject" and cls.program is not None and load_subject(words[0]).driven == "line":
            return cls.program(command_of(load_subject(words[0])), release, name=specification)
        forms = "jvm: and mutant:" if cls.program is None else "jvm:, mutant:, exec: and subject:"
        raise NotDrivenError(f"the {cls.kind} machine does not support {specification}; it supports {forms}")

    def __init__(self) -> None:
        super().__init__()
        self.lockstep.begin()

    def teardown(self) -> None:
        """Remove the example's files; called by Hypothesis, also after a failure."""
        self.lockstep.end()
