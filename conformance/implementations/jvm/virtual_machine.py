"""JVM of this process, with one class loader for each release.

A JVM cannot be started twice in a process, so it is started once, on first use, and kept small. Each release has a
separate ``URLClassLoader`` whose parent is the platform loader, so that releases never use each other's classes.
"""

from __future__ import annotations

import faulthandler
import gc
import resource
import tempfile
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.kafka.jar_fetch import class_path
from kidx.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress
    from conformance.kafka.releases import Group

OPTIONS: tuple[str, ...] = (
    "-Xms320m",  # a smaller heap would grow four times with the objects of 26 releases, and move them
    "-XX:MetaspaceSize=256m",  # up to this size of the loaded classes, Java does not search for unused ones
    "-Xmn128m",
    "-Xmx512m",  # 26 releases' classes and the buffers of one example; the rest is headroom for segments
    "-XX:+UseSerialGC",  # one of two cores executes Python
    # The second compiler takes a third of a run's processor time and gives nothing back: reports/jobs.md.
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=240m",  # the default of both compilers; the 48 MB of one are full after 26 releases
    "-XX:+DisplayVMOutputToStderr",  # the report of a crash: stdout belongs to the command
    f"-XX:ErrorFile={tempfile.gettempdir()}/kidx-java-crash-%p.log",  # not into the user's directory
    "-XX:-UsePerfData",  # no /tmp/hsperfdata file
    # The driver runs the tasks that the caching library of RemoteIndexCache runs in separate threads.
    "-Djava.util.concurrent.ForkJoinPool.common.parallelism=0",
    "-Xrs",  # Python keeps handling Ctrl-C
    # Java puts guard pages into the stack of the thread that starts it, this far from its beginning. From 3.12 on,
    # Python calls C functions 10,000 deep, as for nested JSON of a program, and would reach the default ones, 1 MB.
    "-Xss8m",
    "-XX:-StackTraceInThrowable",  # an error is an outcome; its stack trace would cost more than the operation
    "-Dslf4j.internal.verbosity=ERROR",  # otherwise each of 26 releases reports that slf4j has no provider
)
_WITH_C2: Final = "-XX:TieredStopAtLevel=4"
_EXTRA_OPTIONS: Final[list[str]] = []
"""Options of this run, after :data:`OPTIONS`."""
_MOST_FILES: Final = 1 << 13
"""The maximum of :func:`most_open_files`."""


def enable_c2_compiler() -> None:
    """Enable the second compiler of a JVM that is not yet started; it pays off in a minute of the same loop."""
    _EXTRA_OPTIONS.append(_WITH_C2)


@cache
def start_jvm() -> Any:
    """Start the JVM if it does not run yet.

    Returns:
        The ``jpype`` module.

    Raises:
        ToolError: The ``jvm`` extra is not installed, no Java was found, or Java does not start.
    """
    try:
        import jpype  # noqa: PLC0415 -- part of an extra
    except ImportError as error:
        raise ToolError("Kafka's own classes require the jvm extra; install with pip install 'kidx[jvm]'") from error
    if not jpype.isJVMStarted():
        java = find_java()
        # Java reads through null pointers on purpose and catches the signal. If Python's handler were disabled later,
        # as pytest does at its end, the handler from before Java would be restored, and Java's last threads would crash
        # the process.
        faulthandler.disable()
        try:
            jpype.startJVM(str(java.libjvm), *OPTIONS, *_EXTRA_OPTIONS, convertStrings=False, interrupt=False)
        except (OSError, RuntimeError) as error:
            raise ToolError(f"Java {java.version} at {java.home} does not start: {error}") from error
        _collect_apart()
        # Kafka logs through slf4j, which writes warnings to stderr when it is loaded.
        sink = jpype.JClass("java.io.OutputStream").nullOutputStream()
        jpype.JClass("java.lang.System").setErr(jpype.JClass("java.io.PrintStream")(sink))
    return jpype


def _collect_apart() -> None:
    """Prevent the garbage collectors of Java and Python from triggering each other.

    JPype does that to find cycles through objects of both. There are no such cycles here, and each collection of Java
    would scan all Python objects of a run, and the reverse.
    """
    gc.callbacks[:] = [hook for hook in gc.callbacks if getattr(hook, "__module__", None) != "_jpype"]


def most_open_files() -> int:
    """Return the number of files that this process may open; Java raises the limit when it starts."""
    start_jvm()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_FILES if soft == resource.RLIM_INFINITY else min(soft, _MOST_FILES)


def java_bytes(data: bytes) -> Any:
    """Return a Java array of bytes."""
    jpype = start_jvm()
    return jpype.JArray(jpype.JByte)(data)


def class_loader(paths: Iterable[Path]) -> Any:
    """Return a class loader for jars and directories, which uses only their classes and the classes of the platform."""
    jpype = start_jvm()
    files = jpype.JClass("java.io.File")
    urls = [files(str(path)).toURI().toURL() for path in paths]
    platform = jpype.JClass("java.lang.ClassLoader").getPlatformClassLoader()
    return jpype.JClass("java.net.URLClassLoader")(urls, platform)


_JAVA_0: Final = 44
"""Number that is added to a Java release to get its class file version."""
_LOADERS: Final[dict[tuple[str, Group], Any]] = {}  # by release and group of jars
_BUILD_LOADERS: Final[dict[tuple[object, ...], Any]] = {}  # by names and modification times of jars


def release_loader(release: str, group: Group = "index", progress: Progress | None = None) -> Any:
    """Return the shared class loader of a release's locked jars; ``progress`` receives the progress of downloads.

    Raises:
        ToolError: As :func:`start_jvm` and :func:`conformance.kafka.jar_fetch.class_path`.
    """
    if (release, group) not in _LOADERS:
        _LOADERS[release, group] = class_loader(class_path(release, group, progress=progress))
    return _LOADERS[release, group]


def build_loader(build: Build, further: Sequence[Path] = ()) -> Any:
    """Return the shared class loader of a build's jars; it is renewed after a change of a jar.

    Args:
        build: The build.
        further: Other jars and directories, at the end of the class path.

    Raises:
        ToolError: As :func:`start_jvm`; or the classes need a newer Java.
    """
    jpype = start_jvm()
    newest = int(float(str(jpype.JClass("java.lang.System").getProperty("java.class.version"))))
    if build.class_version > newest:
        raise ToolError(
            f"the build {build.text} is compiled for Java {build.class_version - _JAVA_0}, and this is Java "
            f"{newest - _JAVA_0}: set KIDX_JAVA_HOME to a newer one"
        )
    key = *build.stamp, *further
    if key not in _BUILD_LOADERS:
        _BUILD_LOADERS[key] = class_loader([*build.jars_without_logging, *further])
    return _BUILD_LOADERS[key]
