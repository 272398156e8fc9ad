"""Batched execution of corrupt files by Kafka's classes of each release, compared with each other and with kidx.

A content is the corrupt content of a file. A case is this content, and the operations that open and query the file.
This module only detects differences: a lockstep then executes the differing case again, step by step, and decides.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from conformance.implementations.jvm.cases import CaseBuffer, JvmCases
from conformance.implementations.jvm.coverage import KafkaCoverage
from conformance.implementations.jvm.index import JvmIndex
from conformance.implementations.jvm.segment import JvmSegment
from conformance.implementations.protocol import with_codecs_of
from conformance.implementations.spec import build_of, parse_spec
from conformance.studies.fuzz.corpus import CasesInProgress
from conformance.studies.fuzz.executor import ReferenceCases, probe_of
from conformance.studies.fuzz.probes import MACHINE_OF, PROBES
from kidx.dialect import dialect_of, representative

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from conformance.implementations.jvm.coverage import ClassCoverage
    from conformance.kafka.jar_fetch import Progress
    from conformance.operations import Operation

_SAMPLED_EVERY: Final = 64
"""One content in this many is compared with kidx even if its results show nothing new."""


class BatchResult(NamedTuple):
    """Result of one content.

    Attributes:
        signature: A number that encodes the outcomes of the operations in the newest dialect.
        new: True if one of Kafka's releases reached code that no earlier content reached.
        compared: True if the results were compared with results of kidx.
        differs: The diverging implementation, and the code of the operation (0 if it is unknown); None if all agree.
    """

    signature: int
    new: bool
    compared: bool
    differs: tuple[str, int] | None


class _Member(NamedTuple):
    """Kafka's classes of one release: the implementation's name, the executor of its cases, and the coverage."""

    name: str
    cases: JvmCases
    coverage: KafkaCoverage


class _Dialect(NamedTuple):
    """Releases that must have the same results, and kidx as their reference.

    Attributes:
        reference: The encoder of cases, which executes them with kidx to get the expected results.
        members: Kafka's classes of each release.
        signatures: All values of :attr:`BatchResult.signature` until now.
    """

    reference: ReferenceCases
    members: list[_Member]
    signatures: set[int]


class BatchedExecutor:
    """Executor of the contents of one file format with Kafka's classes, release by release.

    Args:
        format_name: A format of ``--format``.
        implementations: The implementations as for ``-i``; all of them ``jvm`` or ``jvm:DIR``.
        scratch: An empty directory for files and instrumented classes.
        progress: A callback that is called while jars are downloaded.

    Raises:
        ToolError: An implementation is not available.
    """

    def __init__(
        self,
        format_name: str,
        releases: Sequence[str],
        implementations: Sequence[str],
        scratch: Path,
        progress: Progress | None = None,
    ) -> None:
        self._dialects: dict[str, _Dialect] = {}
        machine = MACHINE_OF[format_name]
        directories = (scratch / f"release-{number}" for number in itertools.count())
        for release in releases:
            dialect_of(release)
            # Releases that behave alike still have different decompression libraries, which matters for segments.
            key = release if machine == "segment" else representative(release, "index")
            members = self._dialects[key].members if key in self._dialects else []
            members += [_member(machine, text, release, next(directories), progress) for text in implementations]
            if key not in self._dialects:
                directory = scratch / f"reference-{len(self._dialects)}"
                directory.mkdir()
                dialect = with_codecs_of(dialect_of(release), [member.cases.member for member in members])
                self._dialects[key] = _Dialect(ReferenceCases(format_name, dialect, directory), members, set())
        self._newest = list(self._dialects.values())[-1]
        self._buffer = CaseBuffer(1 << 20)
        self._count = 0
        self._script = PROBES[format_name]
        self._in_progress = CasesInProgress()

    def _members(self) -> list[_Member]:
        return [member for dialect in self._dialects.values() for member in dialect.members]

    def examine(self, contents: Sequence[bytes]) -> list[BatchResult]:
        """Execute the cases of contents.

        Releases of one dialect are compared with each other. Their results are compared with kidx if they differ, if
        they have a new kind of outcome, if they reach new code, and for one content in 64.
        """
        differs: list[tuple[str, int] | None] = [None] * len(contents)
        new = np.zeros(len(contents), bool)
        compared = np.zeros(len(contents), bool)
        compared[-self._count % _SAMPLED_EVERY :: _SAMPLED_EVERY] = True
        self._count += len(contents)
        signatures: list[int] = []
        for dialect in self._dialects.values():
            self._buffer.fill([dialect.reference.script(content) for content in contents])
            first, *others = (self._digest(member, contents) for member in dialect.members)
            signatures = first[:, 1].tolist()
            for number, signature in enumerate(signatures):
                compared[number] |= signature not in dialect.signatures
                dialect.signatures.add(signature)
            for member, found in zip(dialect.members, (first, *others), strict=True):
                new |= found[:, 2] > 0
                for number in np.flatnonzero(found[:, 0] != first[:, 0]).tolist():
                    differs[number] = member.name, 0
                    compared[number] = True
        compared |= new
        numbers = np.flatnonzero(compared).tolist()
        for dialect in self._dialects.values() if numbers else ():
            ends = self._fill([dialect.reference.case(contents[number]) for number in numbers])
            of_some = [differs[number] for number in numbers]
            self._execute(dialect, ends, of_some, lambda row: self._script(contents[numbers[row]]))
            for number, differing in zip(numbers, of_some, strict=True):
                differs[number] = differing
        rows = zip(signatures, new.tolist(), compared.tolist(), differs, strict=True)
        return [BatchResult(*row) for row in rows]

    def _digest(self, member: _Member, contents: Sequence[bytes]) -> NDArray[np.int64]:
        """Return a row per content: a digest of all results, the signature, and 1 if it reached new code."""
        member.cases.watch(member.coverage.probes())
        with self._in_progress.executed_by(member.cases, lambda number: self._script(contents[number])):
            return member.cases.digest(self._buffer, len(contents))

    def _fill(self, cases: Sequence[bytes]) -> NDArray[np.int64]:
        """Fill the buffer with cases; return the end of each, in longs."""
        self._buffer.fill(cases)
        return np.cumsum([len(case) // 8 for case in cases], dtype=np.int64)

    def flips(
        self, content: bytes, flipped: Sequence[bytes]
    ) -> tuple[list[list[tuple[str, Any]]], list[tuple[str, int] | None]]:
        """Execute the probe of a content on changed contents.

        Args:
            content: The content, from which the queries are derived.
            flipped: The changed contents.

        Returns:
            For each changed content, the outcomes in the newest dialect, and ``differs`` as in :class:`BatchResult`.
        """
        differs: list[tuple[str, int] | None] = [None] * len(flipped)
        outcomes: list[list[tuple[str, Any]]] = []
        for dialect in self._dialects.values():
            cases = []
            for other in flipped:
                cases.append(dialect.reference.case(other, content))
                if dialect is self._newest:
                    outcomes.append(dialect.reference.outcomes)
            ends = self._fill(cases)
            self._execute(dialect, ends, differs, lambda number: probe_of(self._script, flipped[number], content))
        return outcomes, differs

    def _execute(
        self,
        dialect: _Dialect,
        ends: NDArray[np.int64],
        differs: list[tuple[str, int] | None],
        script: Callable[[int], Sequence[Operation]],
    ) -> None:
        """Execute the cases in the buffer with each release, and enter the differences from kidx in ``differs``.

        Args:
            ends: The end of each case in the buffer.
            differs: The results for each case, as in :class:`BatchResult`.
            script: A function that returns the operations of the case with a number.
        """
        for member in dialect.members:
            member.cases.watch(member.coverage.probes())
            with self._in_progress.executed_by(member.cases, script):
                steps = member.cases.perform(self._buffer, len(ends))[:, 0]
            for number in np.flatnonzero(steps >= 0):
                differs[number] = member.name, self._operation_code(ends, int(number), int(steps[number]))

    def _operation_code(self, ends: NDArray[np.int64], number: int, step: int) -> int:
        """Return the code of the operation at a step of the case with a number."""
        longs = self._buffer.longs
        at = 1 + (int(ends[number - 1]) if number else 0)
        for _ in range(step):
            at += 2 + int(longs[at + 1])
            at += 1 + (int(longs[at]) + 7) // 8
            at += 1 + (max(int(longs[at]), 0) + 7) // 8
        return int(longs[at])

    def coverage(self) -> dict[str, list[ClassCoverage]]:
        """Return the coverage of each implementation's classes."""
        return {member.name: member.coverage.classes() for member in self._members()}

    def close(self) -> None:
        """Release Kafka's classes."""
        for member in self._members():
            member.cases.member.end()
            member.coverage.close()


def _member(machine: str, text: str, release: str, directory: Path, progress: Progress | None) -> _Member:
    words = parse_spec(text).words
    build = build_of(*words) if words else None
    work, classes = directory / "files", directory / "classes"
    work.mkdir(parents=True)
    classes.mkdir()
    kind: Any = JvmSegment if machine == "segment" else JvmIndex
    coverage = KafkaCoverage(release, machine, kind.group, classes, progress, build)
    member = kind(release, progress, build, coverage.loader)
    if machine != "segment":
        member.require(machine)
    return _Member(member.name, JvmCases(member, work), coverage)
