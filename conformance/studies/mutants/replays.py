"""Replay of recorded examples with changed classes: each mutant has its own class loader in one JVM.

A mutant may hang, crash Java or use all memory, so mutants are replayed in worker processes. A worker that hangs or
crashes costs this mutant, and is replaced.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from conformance.clauses.machines import why_not_driven
from conformance.errors import ToolError
from conformance.implementations.forms import directory_of
from conformance.implementations.jvm.bytecode import jars_of
from conformance.implementations.jvm.cache import JvmCache
from conformance.implementations.jvm.driver import driver_class
from conformance.implementations.jvm.index import JvmIndex
from conformance.implementations.jvm.log import JvmLog
from conformance.implementations.jvm.segment import JvmSegment
from conformance.implementations.jvm.tiered import JvmTiered, storage_of
from conformance.implementations.jvm.virtual_machine import class_loader, java_bytes, start_jvm
from conformance.kafka.builds import open_build
from kidx.workers import begin_worker, start_quietly

if TYPE_CHECKING:
    from conformance.implementations.jvm.classes import JvmClasses
    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress

DRIVEN: Final[Mapping[str, type[JvmClasses[Any]]]] = {
    "offset": JvmIndex,
    "time": JvmIndex,
    "transaction": JvmIndex,
    "segment": JvmSegment,
    "cache": JvmCache,
    "log": JvmLog,
    "cleaned": JvmLog,
    "tiered": JvmTiered,
}
"""Class that drives Kafka's classes, for each machine; those whose examples are fast come first."""
PATIENCE: Final = 15.0
"""Seconds for an example, after which a mutant hangs; an example of the unchanged classes needs milliseconds."""
_PER_WORKER: Final = 150
"""Mutants after which a worker is replaced: Java keeps some of the classes of each."""


class Subject(NamedTuple):
    """Classes whose mutants are replayed.

    Attributes:
        release: the release whose dialect they have.
        build: the build, or None for the release's published jars.
    """

    release: str
    build: Build | None

    @property
    def has_tiers(self) -> bool:
        """True if the tiered machine can drive the classes."""
        return not why_not_driven("tiered", self.release)

    def jars(self, progress: Progress | None = None) -> list[Path]:
        """Return the class path; ``progress`` is called while jars are fetched.

        Raises:
            ToolError: a jar cannot be fetched.
        """
        return jars_of(self.release, progress, self.build)


def subject_of(release: str, implementation: str) -> Subject:
    """Return the classes that ``jvm`` or ``jvm:DIR`` names.

    Raises:
        ToolError: there is no build in the directory.
    """
    build = directory_of(implementation)
    return Subject(release, None if build is None else open_build(build))


class Difference(NamedTuple):
    """First difference that a replay found.

    Attributes:
        example: number of the example; -1 if none was in progress.
        step: number of the first step that differs, from 0; -1 if it is unknown.
        how: ``differs``, ``fails``, ``hangs``, ``crashes``, or the error that ended the replay.
    """

    example: int
    step: int
    how: str = "differs"


class Unloadable(NamedTuple):
    """Changed class that Java rejects: this mutant could not run.

    Attributes:
        reason: Java's message.
    """

    reason: str


Found = Difference | Unloadable | None
CRASHED: Final = Difference(-1, -1, "crashes")
Task = tuple[Mapping[str, bytes], Sequence[tuple[str, Sequence[int]]]]
"""Changed class files by name, and the examples of each machine, in the order of replay."""
OpenReplay = Callable[[str], "Replay"]
"""Function that returns the replay of a worker of that name; workers receive it, so it can be pickled."""
_NO_TASK: Final[Task] = ({}, ())


class Replay(Protocol):
    """Examples or tests that kill mutants, executed in one process."""

    def executing(self) -> int:
        """Return a number that changes with every example or test; another thread may call this."""

    def first_difference(self, task: Task) -> Found:
        """Execute examples or tests with changed classes until one differs or fails."""


class MutantClasses:
    """Class loaders of mutants, which share the third-party classes.

    Args:
        jars: class path; Kafka's own jars are loaded for each mutant.
        libraries: further jars and directories for all mutants.
        further: other jars and directories that are loaded for each mutant.

    Attributes:
        others: loader of what the mutants share.
    """

    def __init__(self, jars: Sequence[Path], libraries: Sequence[Path] = (), further: Sequence[Path] = ()) -> None:
        jpype = start_jvm()
        self._strings = jpype.JArray(jpype.JString)
        self._arrays = jpype.JArray(jpype.JArray(jpype.JByte))
        own = [jar for jar in jars if jar.name.startswith("kafka")]
        self._jars = driver_class("MutantLoader$Jars")(self._strings([str(jar) for jar in (*own, *further)]))
        self.others = class_loader([*libraries, *(jar for jar in jars if jar not in own)])

    def loader(self, changed: Mapping[str, bytes]) -> Any:
        """Return a loader of Kafka's classes, some of them changed."""
        files = self._arrays([java_bytes(data) for data in changed.values()])
        return driver_class("MutantLoader")(self._jars, self.others, self._strings(list(changed)), files)


class Replayer:
    """Replay of recorded examples in this process.

    Args:
        subject: classes whose mutants are replayed.
        recording: file of the recorded examples.
        scratch: directory for the files of the examples.
    """

    def __init__(self, subject: Subject, recording: Path, scratch: Path) -> None:
        self._subject, self._scratch = subject, scratch
        jpype = start_jvm()
        self._ints = jpype.JArray(jpype.JInt)
        jars = subject.jars()
        self._classes = MutantClasses(jars, further=storage_of(subject.release, jars) if subject.has_tiers else ())
        self._replays = driver_class("Replays")(str(recording))

    def executing(self) -> int:
        """Return the number of the example in progress; another thread may call this."""
        return int(self._replays.executing())

    def _member(self, machine: str, loader: Any) -> JvmClasses[Any]:
        member = DRIVEN[machine](self._subject.release, None, self._subject.build, loader)
        member.begin(self._scratch)
        return member

    def first_difference(self, task: Task) -> Found:
        """Replay examples with changed classes until one differs."""
        changed, examples = task
        loader = self._classes.loader(changed)
        rejected = loader.unloadable()
        if rejected is not None:
            return Unloadable(str(rejected))
        for machine, chosen in examples:
            try:
                member = self._member(machine, loader)
                found = self._replays.firstDifference(
                    member.driver, str(self._scratch), member.directory, self._ints(list(chosen))
                )
            except start_jvm().JException as thrown:
                return Difference(self.executing(), -1, str(thrown.getClass().getName()))
            if len(found):
                return Difference(int(found[0]), int(found[1]))
        return None

    def reached(
        self, watched: Mapping[str, bytes], examples: Mapping[str, Sequence[int]], places: int
    ) -> Iterator[tuple[int, bool, list[int]]]:
        """Replay examples with watched classes; yield number, True if it differs, and the places that it reached."""
        loader = self._classes.loader(watched)
        for machine, chosen in examples.items():
            member = self._member(machine, loader)
            rows = list(
                self._replays.reached(
                    member.driver, str(self._scratch), member.directory, self._ints(list(chosen)), places
                )
            )
            at = 0
            for number in chosen:
                count = rows[at]
                differs, count = (True, -1 - count) if count < 0 else (False, count)
                yield number, differs, [int(place) for place in rows[at + 1 : at + 1 + count]]
                at += 1 + count


class _Worker:
    """Worker process, with the mutant that it replays."""

    def __init__(self, open_replay: OpenReplay, patience: float) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self._process = context.Process(target=_work, args=(there, open_replay, patience), daemon=True)
        start_quietly(self._process)
        there.close()
        self._await_replay()
        self.mutants = 0
        self.name, self.task, self._since = "", _NO_TASK, 0.0

    def _await_replay(self) -> None:
        """Wait until the replay is open: the end of a process without one is no crash of a mutant."""
        try:
            failed = self.pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            failed = f"its process has ended with exit code {self._process.exitcode}"
        if failed is not None:
            self.end()
            raise ToolError(f"a worker cannot begin to replay:\n{failed}")

    def begin(self, name: str, task: Task) -> None:
        self.name, self.task, self._since = name, task, time.monotonic()
        self.mutants += 1
        self.pipe.send(task)

    def finish(self) -> tuple[Found, float]:
        """Return the result and the seconds. A worker that must not continue ends.

        Raises:
            ToolError: the replay has failed, for no reason of the mutant.
        """
        try:
            found, hangs = self.pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            code = self._process.exitcode or 0
            found = Unloadable("the system has killed the worker") if code == -signal.SIGKILL else CRASHED
            hangs = True
        if isinstance(found, str):
            raise ToolError(f"the replay of {self.name} has failed:\n{found}")
        if hangs or self.mutants >= _PER_WORKER:
            self.end()
        return found, time.monotonic() - self._since

    @property
    def has_ended(self) -> bool:
        return bool(self.pipe.closed)

    def end(self) -> None:
        self.pipe.close()
        self._process.kill()
        self._process.join()


def replay_all(
    open_replay: OpenReplay, tasks: Iterable[tuple[str, Task]], jobs: int, patience: float = PATIENCE
) -> Iterator[tuple[str, Found, float]]:
    """Replay the examples of each mutant in worker processes; yield its name, the result, and seconds.

    Args:
        open_replay: function that each worker calls.
        tasks: name and task of each mutant.
        jobs: maximum number of workers.
        patience: seconds without progress after which a mutant hangs.

    Raises:
        ToolError: a worker cannot begin, or a replay has failed, for no reason of the mutant.
    """
    left = iter(tasks)
    again: list[tuple[str, Task]] = []
    crashed: set[str] = set()
    idle: list[_Worker] = []
    busy: dict[Connection, _Worker] = {}
    try:
        while True:
            while len(busy) < jobs and (following := again.pop() if again else next(left, None)) is not None:
                worker = idle.pop() if idle else _Worker(open_replay, patience)
                worker.begin(*following)
                busy[worker.pipe] = worker
            if not busy:
                return
            for worker in map(busy.pop, cast("list[Connection]", wait(list(busy)))):
                found, seconds = worker.finish()
                if not worker.has_ended:
                    idle.append(worker)
                if found == CRASHED and worker.name not in crashed:  # a crash counts if it is reproduced
                    crashed.add(worker.name)
                    again.append((worker.name, worker.task))
                else:
                    yield worker.name, found, seconds
    finally:
        for worker in (*idle, *busy.values()):
            worker.end()


def _work(pipe: Connection, open_replay: OpenReplay, patience: float) -> None:
    """Replay mutants until the pipe is closed; send the traceback of an error of the harness itself."""
    begin_worker()
    try:
        replay = open_replay(f"worker-{os.getpid()}")
    except Exception:  # noqa: BLE001 -- whatever it is, the other process reports it
        pipe.send(traceback.format_exc())
        return
    pipe.send(None)
    try:
        _replay_tasks(pipe, replay, patience)
    except Exception:  # noqa: BLE001 -- whatever it is, it must not count as a crash of the mutant
        pipe.send((traceback.format_exc(), True))


def _replay_tasks(pipe: Connection, replayer: Replay, patience: float) -> None:
    """Replay mutants until the pipe is closed; end this process if one hangs."""
    turn = 0

    def watch() -> None:
        before, since = None, time.monotonic()
        while True:
            time.sleep(0.5)
            now = turn, replayer.executing()
            if turn % 2 == 0 or now != before:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > patience:
                pipe.send((Difference(now[1], -1, "hangs"), True))
                os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        turn += 1  # odd while a mutant is replayed
        found = replayer.first_difference(task)
        turn += 1
        pipe.send((found, False))
