"""Kafka's own unit tests of its log layer, from the published test jars, against the same mutants."""

from __future__ import annotations

import multiprocessing
import re
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from conformance.errors import ToolError
from conformance.implementations.jvm.driver import WITH_JUNIT, compiled_against, driver_class
from conformance.implementations.jvm.virtual_machine import start_jvm
from conformance.kafka.jar_fetch import storage_jar, tool_jar
from conformance.studies.mutants.replays import Difference, Found, MutantClasses, Subject, Task, Unloadable
from kidx.workers import WorkerPool

TESTED: Final = ("4.3.1",)
"""Releases whose test jars are locked."""
LIBRARIES: Final = ("junit", "mockito", "mockito-junit", "byte-buddy", "byte-buddy-agent", "objenesis", "hamcrest")
_JARS: Final = ("kafka-clients", "kafka-server-common", "kafka-server", "kafka-metadata", "kafka_2.13")
_TIMEOUT: Final = "60s"
"""Time of a test, after which it fails; it needs a second or less."""
_SILENT: Final = "rootLogger.level = off\n"
"""Configuration of log4j, instead of the tests' own, which logs into the working directory."""
_TESTS: Final = re.compile(
    r"(?:org/apache/kafka/storage/internals/(?:log|checkpoint|epoch)|kafka/log|kafka/server/epoch)/\w+Test\.class"
    r"|org/apache/kafka/common/record/internal/"
    r"(?:\w*FileRecords|FileLogInputStream|DefaultRecordBatch|MemoryRecords|ControlRecordType)Test\.class"
)
_SLOW: Final = re.compile(r".*(?:Integration|Concurrency|BrokerCompression|LogManager|LogConfig)\w*Test")
"""Tests of other parts, or of several threads for seconds."""


Row = tuple[str, bool, list[int]]
"""Id of a method, True if it fails, and the places that it has reached; a method with parameters has several rows."""


def test_jars(release: str) -> list[Path]:
    """Return the jars with the tests of a release.

    Raises:
        ToolError: they are not locked, or cannot be fetched.
    """
    if release not in TESTED:
        raise ToolError(f"no test jars of Kafka {release} are locked; --against kafka-tests has {', '.join(TESTED)}")
    return [storage_jar(release), *(tool_jar(f"{name}-tests-{release}") for name in _JARS)]


class UnitTests:
    """Execution of Kafka's unit tests in this process.

    Args:
        subject: classes whose mutants are tested.
        methods: ids of the tests; their positions are their numbers.
        scratch: directory for the tests' files; Java uses it from now on.
    """

    def __init__(self, subject: Subject, methods: Sequence[str], scratch: Path) -> None:
        self._methods, self._scratch = methods, scratch
        scratch.mkdir(parents=True, exist_ok=True)
        jpype = start_jvm()
        from jpype import config  # noqa: PLC0415 -- part of an extra

        config.destroy_jvm = False  # it would wait for threads that tests leave running
        system = jpype.JClass("java.lang.System")
        system.setProperty("java.io.tmpdir", str(scratch))
        silent = scratch.with_suffix(".properties")
        silent.write_text(_SILENT)
        system.setProperty("log4j2.configurationFile", str(silent))
        self._strings = jpype.JArray(jpype.JString)
        self._jars = test_jars(subject.release)
        libraries = [tool_jar(name) for name in LIBRARIES]
        own = compiled_against(libraries, WITH_JUNIT)
        self._classes = MutantClasses([*self._jars, *subject.jars()], [*libraries, own])
        self._tests = jpype.JClass("conformance.KafkaTests", loader=self._classes.others)(_TIMEOUT)

    def executing(self) -> int:
        """Return the number of tests that have begun; another thread may call this."""
        return int(self._tests.executing())

    def first_difference(self, task: Task) -> Found:
        """Execute tests with changed classes until one fails."""
        changed, chosen = task
        loader = self._classes.loader(changed)
        rejected = loader.unloadable()
        if rejected is not None:
            return Unloadable(str(rejected))
        try:
            for _, numbers in chosen:
                failed = self._tests.firstFailure(loader, self._strings([self._methods[number] for number in numbers]))
                if failed is not None:
                    return Difference(self._number(str(failed), numbers), -1, "fails")
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch.mkdir(exist_ok=True)
        return None

    def _number(self, failed: str, numbers: Sequence[int]) -> int:
        """Return the number of a failed test, or of the first one of a class that failed as a whole."""
        return next((number for number in numbers if self._methods[number].startswith(failed)), numbers[0])

    def reached(self, watched: Mapping[str, bytes], places: int, classes: Sequence[str]) -> list[Row]:
        """Execute the tests of classes with watched classes of Kafka."""
        loader = self._classes.loader(watched)
        taken = driver_class("Reach").taker(places)
        rows = [str(row).split("\t") for row in self._tests.reached(loader, self._strings(list(classes)), taken)]
        return [(method, fails == "true", [int(place) for place in reached.split()]) for method, fails, reached in rows]


def open_tests(subject: Subject, methods: Sequence[str], directory: Path, name: str) -> UnitTests:
    """Return the tests of a worker of that name, with files below the directory."""
    return UnitTests(subject, methods, directory / name)


def survey(
    subject: Subject, watched: Mapping[str, bytes], places: int, scratch: Path, classes: Sequence[str] = ()
) -> list[Row]:
    """Execute all tests, or the tests of some classes, in another process: they leave threads and settings of Java.

    Raises:
        ToolError: the test jars are not locked, or cannot be fetched.
    """
    names = classes or _test_classes(test_jars(subject.release))
    with WorkerPool(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_survey, subject, watched, places, scratch, names).result()


def _survey(
    subject: Subject, watched: Mapping[str, bytes], places: int, scratch: Path, classes: Sequence[str]
) -> list[Row]:
    return UnitTests(subject, (), scratch).reached(watched, places, classes)


def _test_classes(jars: Sequence[Path]) -> list[str]:
    found = list[str]()
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            found += filter(_TESTS.fullmatch, archive.namelist())
    names = [name.removesuffix(".class").replace("/", ".") for name in sorted(found)]
    return [name for name in names if not _SLOW.fullmatch(name)]
