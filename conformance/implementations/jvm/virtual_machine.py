"""The one JVM of this process, and one class loader for each release in it.

A JVM cannot be started twice in a process, so it is started once, at the first use, and kept small. Each release gets a
``URLClassLoader`` of its own whose parent is the platform loader: releases never see each other's classes.
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
    from collections.abc import Iterable
    from pathlib import Path

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress
    from conformance.kafka.releases import Group

OPTIONS = (
    "-Xms320m",  # 26 releases: what lives on would be moved four times on the way from less
    "-XX:MetaspaceSize=256m",  # their classes; up to it, Java does not look for some that have gone
    "-Xmn128m",
    "-Xmx512m",  # 26 releases' classes and the buffers of one example; the rest is headroom for segments
    "-XX:+UseSerialGC",  # two cores, one of them ours
    # The second compiler takes a third of a run's processor time and gives nothing back: reports/jobs.md.
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=240m",  # what both compilers have; 48 MB are full after 26 releases
    "-XX:+DisplayVMOutputToStderr",  # of a crash: stdout belongs to the command
    f"-XX:ErrorFile={tempfile.gettempdir()}/kidx-java-crash-%p.log",  # not into the user's directory
    "-XX:-UsePerfData",  # no /tmp/hsperfdata file
    # What the caching library of RemoteIndexCache does in threads of its own is done when the driver says so.
    "-Djava.util.concurrent.ForkJoinPool.common.parallelism=0",
    "-Xrs",  # Ctrl-C stays Python's
    "-XX:-StackTraceInThrowable",  # a refusal is an outcome; its stack trace would cost more than the operation
    "-Dslf4j.internal.verbosity=ERROR",  # "no provider" is what we want, no need to say it 26 times
)
_BOTH_COMPILERS: Final = "-XX:TieredStopAtLevel=4"
_MORE: Final[list[str]] = []
_MOST_FILES: Final = 1 << 13


def expect_one_loop() -> None:
    """Has the JVM, if it does not run yet, use its second compiler too, which pays off in a minute of the same loop."""
    _MORE.append(_BOTH_COMPILERS)


@cache
def start_jvm() -> Any:
    """Starts the JVM if it does not run yet.

    Returns:
        The ``jpype`` module.

    Raises:
        ToolError: the ``jvm`` extra is not installed, no Java was found, or it would not start.
    """
    try:
        import jpype  # noqa: PLC0415 -- part of an extra
    except ImportError as error:
        raise ToolError("Kafka's own classes need the jvm extra: pip install 'kidx[jvm]'") from error
    if not jpype.isJVMStarted():
        java = find_java()
        # Java reads through null pointers on purpose and catches the signal. Disabling Python's handler later, as
        # pytest does at its end, restores the handler from before Java, and Java's last threads crash the process.
        faulthandler.disable()
        try:
            jpype.startJVM(str(java.libjvm), *OPTIONS, *_MORE, convertStrings=False, interrupt=False)
        except (OSError, RuntimeError) as error:
            raise ToolError(f"Java {java.version} at {java.home} does not start: {error}") from error
        _collect_apart()
        # Kafka logs through slf4j, which writes warnings to stderr when it is loaded.
        sink = jpype.JClass("java.io.OutputStream").nullOutputStream()
        jpype.JClass("java.lang.System").setErr(jpype.JClass("java.io.PrintStream")(sink))
    return jpype


def _collect_apart() -> None:
    """Has neither of the two collectors set off the other's, which JPype does for cycles through both: there are none.

    Python would look at everything that a run keeps at each of Java's collections, and Java at 26 releases' classes.
    """
    gc.callbacks[:] = [hook for hook in gc.callbacks if getattr(hook, "__module__", None) != "_jpype"]


def most_open_files() -> int:
    """How many files this process may have open: Java raises the limit as far as it may when it starts."""
    start_jvm()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_FILES if soft == resource.RLIM_INFINITY else min(soft, _MOST_FILES)


def class_loader(paths: Iterable[Path]) -> Any:
    """A class loader over jars and directories, seeing nothing else but the platform's classes."""
    jpype = start_jvm()
    files = jpype.JClass("java.io.File")
    urls = [files(str(path)).toURI().toURL() for path in paths]
    platform = jpype.JClass("java.lang.ClassLoader").getPlatformClassLoader()
    return jpype.JClass("java.net.URLClassLoader")(urls, platform)


_JAVA_0: Final = 44
"""The class file version of Java N is N more than this."""
_LOADERS: Final[dict[tuple[str, Group], Any]] = {}
_BUILDS: Final[dict[tuple[object, ...], Any]] = {}


def release_loader(release: str, group: Group = "index", progress: Progress | None = None) -> Any:
    """The one class loader of a release's locked jars, fetched if need be; ``progress`` is called meanwhile.

    Raises:
        ToolError: as :func:`start_jvm` and :func:`conformance.kafka.jar_fetch.class_path`.
    """
    if (release, group) not in _LOADERS:
        _LOADERS[release, group] = class_loader(class_path(release, group, progress=progress))
    return _LOADERS[release, group]


def build_loader(build: Build) -> Any:
    """The one class loader of a build's jars, as they are now.

    Raises:
        ToolError: as :func:`start_jvm`; or its classes are newer than the Java in use.
    """
    jpype = start_jvm()
    newest = int(float(str(jpype.JClass("java.lang.System").getProperty("java.class.version"))))
    if build.class_version > newest:
        raise ToolError(
            f"the build {build.text} is compiled for Java {build.class_version - _JAVA_0}, and this is Java "
            f"{newest - _JAVA_0}: set KIDX_JAVA_HOME to a newer one"
        )
    if build.stamp not in _BUILDS:
        _BUILDS[build.stamp] = class_loader(build.jars_without_logging)
    return _BUILDS[build.stamp]
