"""Builds of Kafka that are not released with a lock file of their jars: a release candidate, a fork, a checkout.

``DIR`` is a directory of jars, a distribution (its ``libs``), the ``.tar.gz`` of a distribution, or a checkout after
``./gradlew jar`` (``**/build/libs`` and ``**/build/dependant-libs*``). All jars of a build form one class path. The
version comes from ``kafka/kafka-version.properties`` or from the names of the jars.
"""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.errors import ToolError
from conformance.kafka.jar_fetch import cache_directory, cache_error, sha256_of
from conformance.kafka.releases import RELEASES
from kidx.dialect import DIALECTS, version_of

INDEX_CLASSES: Final = ("org/apache/kafka/storage/internals/log/OffsetIndex.class", "kafka/log/OffsetIndex.class")
"""Names of the class that a build must contain: since 3.5, and before."""
_CLIENTS_CLASS: Final = "org/apache/kafka/common/utils/Time.class"
_MAIN_CLASS: Final = "kafka/Kafka.class"
_PROPERTIES: Final = "kafka/kafka-version.properties"
_ARTIFACTS: Final = (
    "kafka-clients|kafka-storage|kafka-storage-api|kafka-server-common|kafka-server|kafka-metadata|kafka-raft"
    r"|kafka-group-coordinator|kafka_2\.1\d"
)
_NAME: Final = re.compile(rf"(?P<artifact>{_ARTIFACTS})-(?P<version>\d+\.\d+\.\d+.*?)(?:\.jar)")
_NO_CLASSES: Final = re.compile(r"-(?:sources|javadoc|scaladoc|test|tests|test-sources|test-fixtures|site-docs)\.jar$")
_BINDINGS: Final = re.compile(r"(?:slf4j-(?:reload4j|log4j12|simple)|log4j-slf4j2?-impl|logback-classic)-\d")
"""Jars that connect slf4j to a logging backend; excluded from classes in this process, which must not log."""
_IN_CHECKOUT: Final = ("build/libs", "build/dependant-libs*")
_DEPTHS: Final = ("", "*/", "*/*/", "*/*/*/")
_ARCHIVES: Final = (".tar.gz", ".tgz")


@dataclass(frozen=True, slots=True)
class Build:
    """Build of Kafka.

    Attributes:
        text: path as the user gave it.
        jars: class path, Kafka's own jars first.
        version: version according to the build, e.g. ``"4.5.0-SNAPSHOT"``.
        release: release whose dialect the build is expected to have: the release of its version, or the newest before.
        class_version: class file version of the build's index classes: 61 is Java 17.
        is_kafka: True for Kafka's own classes; False for a fork with its own names.
    """

    text: str
    jars: tuple[Path, ...]
    version: str
    release: str
    class_version: int
    is_kafka: bool = True

    @property
    def jars_without_logging(self) -> tuple[Path, ...]:
        """Jars without logging backends."""
        return tuple(jar for jar in self.jars if not _BINDINGS.match(jar.name))

    @property
    def logging(self) -> str:
        """Logging backend of the build's broker: ``log4j2`` or ``reload4j`` (log4j 1)."""
        return "log4j2" if any(jar.name.startswith("log4j-core-") for jar in self.jars) else "reload4j"

    @property
    def stamp(self) -> tuple[object, ...]:
        """Value that changes if a jar changes."""
        stats = ((jar, jar.stat()) for jar in self.jars)
        return tuple((str(jar), stat.st_size, stat.st_mtime_ns) for jar, stat in stats)


def open_build(text: str) -> Build:
    """Return the build in a directory or archive.

    Args:
        text: path of the directory or archive.

    Raises:
        ToolError: the build does not exist, is not Kafka, is incomplete, or has two versions.
    """
    try:
        # Java resolves relative paths in the working directory that it was started in.
        return _opened(text, Path(text).expanduser().absolute())
    except OSError as error:
        raise ToolError(f"cannot read the build {text}: {error.strerror or error}") from error


def require_broker(build: Build) -> None:
    """Check that a build has the main class of a broker.

    Raises:
        ToolError: the build has only the classes of indexes and logs.
    """
    if not any(_MAIN_CLASS in _names(build.text, jar) for jar in build.jars):
        raise ToolError(
            f"the build {build.text} cannot start a broker: none of its {len(build.jars)} jars has kafka.Kafka; give"
            " the libs of a whole distribution"
        )


def _opened(text: str, path: Path) -> Build:
    if path.is_file() and path.name.endswith(_ARCHIVES):
        path = _unpacked(text, path)
    elif not path.is_dir():
        raise ToolError(f"no build at {text}; give a directory of jars, or a .tar.gz of a distribution")
    jars = _jars_of(path)
    if not jars:
        raise ToolError(f"the build {text} has no jars; give a distribution's libs, or a checkout after ./gradlew jar")
    properties = None
    index = clients = None
    for jar in jars:
        names = _names(text, jar)
        if index is None and (found := next((name for name in INDEX_CLASSES if name in names), None)):
            index = jar, found
        if clients is None and _CLIENTS_CLASS in names:
            clients = jar
            properties = _PROPERTIES if _PROPERTIES in names else None
        if index and clients:
            break
    if index is None:
        missing = "kafka-storage (kafka_2.13 up to 3.4)"
        what = f"none of its {len(jars)} jars has OffsetIndex: {missing} is missing"
        raise ToolError(f"the build {text} is not Kafka: {what}" if clients is None else f"the build {text}: {what}")
    if clients is None:
        raise ToolError(f"the build {text} is not complete: kafka-clients is missing, none of its jars has Time")
    version = _version(text, jars, _read_version(clients) if properties else "")
    with zipfile.ZipFile(index[0]) as archive, archive.open(index[1]) as file:
        class_version = int.from_bytes(file.read(8)[6:8], "big")
    return Build(text, tuple(jars), version, release_of(version), class_version)


def _jars_of(directory: Path) -> list[Path]:
    """Return the jars with classes, Kafka's own jars first; of jars with the same name, only the first one found."""
    for place in (directory, directory / "libs"):
        found = sorted(place.glob("*.jar"))
        if found:
            break
    else:
        found = [
            jar
            for pattern in _IN_CHECKOUT
            for depth in _DEPTHS
            for jar in sorted(directory.glob(f"{depth}{pattern}/*.jar"))
        ]
    by_name = {jar.name: jar for jar in reversed(found) if not _NO_CLASSES.search(jar.name)}
    return sorted(by_name.values(), key=lambda jar: (_NAME.match(jar.name) is None, jar.name))


def _names(text: str, jar: Path) -> frozenset[str]:
    try:
        with zipfile.ZipFile(jar) as archive:
            return frozenset(archive.namelist())
    except zipfile.BadZipFile:
        raise ToolError(f"cannot read {jar.name} of the build {text}: not a zip file") from None


def _read_version(jar: Path) -> str:
    with zipfile.ZipFile(jar) as archive:
        text = archive.read(_PROPERTIES).decode("utf-8", "replace")
    found = re.search(r"^version\s*[=:]\s*(\S+)", text, re.MULTILINE)
    return found[1] if found else ""


def _version(text: str, jars: Iterable[Path], declared: str) -> str:
    """Return the version of Kafka that a build has.

    Raises:
        ToolError: the build has two versions, or none.
    """
    by_version: dict[str, str] = {}
    for jar in jars:
        if named := _NAME.fullmatch(jar.name):
            by_version.setdefault(named["version"], jar.name)
    if len(by_version) > 1:
        first, second, *_ = by_version.values()
        raise ToolError(f"the build {text} has two versions of Kafka: {first} and {second}; keep one of them")
    version = declared or next(iter(by_version), "")
    if not re.match(r"\d+\.\d+\.\d+", version):
        raise ToolError(f"the build {text} has no version, neither in kafka-clients nor in a jar's name")

    return version


def release_of(version: str, *, before: bool = False) -> str:
    """Return the release whose dialect a version has: the version itself, or the newest release before it.

    Args:
        version: e.g. ``"4.5.0-SNAPSHOT"``.
        before: True to return the newest locked release before the version, even if the version is a release.

    Raises:
        ToolError: the version is older than all known releases.
    """
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:3])
    known = [release for release in RELEASES if version_of(release) < numbers] if before else list(DIALECTS)
    older = [release for release in known if version_of(release) <= numbers]
    if not older:
        raise ToolError(f"Kafka {version} is older than {min(DIALECTS, key=version_of)}, the oldest known release")
    return max(older, key=version_of)


def _unpacked(text: str, archive: Path) -> Path:
    """Return a cache directory, named by the archive's hash, with the jars of the archive's ``libs``.

    Raises:
        ToolError: the file is not an archive, or the cache cannot be written.
    """
    target = cache_directory() / "builds" / sha256_of(archive)[:32]
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=".unpacking-"))
    except OSError as error:
        raise cache_error(error, cache_directory()) from error
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in _libs(tar):
                content = tar.extractfile(member)
                if content is not None:
                    with content, (scratch / Path(member.name).name).open("wb") as file:
                        shutil.copyfileobj(content, file)
        if not target.is_dir():  # another process may have been faster
            scratch.rename(target)
    except (tarfile.TarError, EOFError) as error:
        raise ToolError(f"cannot unpack the build {text}: {error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _libs(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for member in tar:
        path = Path(member.name)
        if member.isfile() and path.suffix == ".jar" and path.parent.name in ("libs", ""):
            yield member
