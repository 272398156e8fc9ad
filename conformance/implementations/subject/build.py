"""Builds of third-party implementations with the tools of their languages, in the cache; jars are a build of Kafka."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.errors import ToolError
from conformance.kafka.builds import Build
from conformance.kafka.jar_fetch import cache_directory

if TYPE_CHECKING:
    from conformance.subjects import Subject

LIMIT: Final = 900.0
"""Maximum duration of a build in seconds."""
_JAVA_8: Final = 52
"""Class file format of Java 8; whether Java can load newer classes is noticed when they are loaded."""
_LAST: Final = 400
"""Number of characters at the end of a failed build's output that a message quotes."""


def missing_tools(subject: Subject) -> list[str]:
    """Return the required programs that are missing from the PATH."""
    return [tool for tool in subject.needs if shutil.which(tool) is None]


def place_of(subject: Subject) -> Path:
    """Return the build directory, which exists if the implementation is built.

    Its name depends on the sources, and on the version of Python if they need it: wheels are for one version.
    """
    with as_file(subject.folder) as sources:
        digest = hashlib.sha256(json.dumps([subject.build, dict(subject.environment), subject.version]).encode())
        for path in sorted(path for path in sources.rglob("*") if path.is_file()):
            digest.update(f"{path.relative_to(sources)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    if "python3" in subject.needs:
        digest.update(_python_tag())
    return cache_directory() / "subjects" / f"{subject.name}-{digest.hexdigest()[:16]}"


def _python_tag() -> bytes:
    """Return the cache tag of the ``python3`` on the PATH, such as ``cpython-311``; empty if it does not exist."""
    command = ["python3", "-c", "import sys; print(sys.implementation.cache_tag)"]
    try:
        return subprocess.run(command, capture_output=True, check=True).stdout  # noqa: S603 -- a constant
    except (OSError, subprocess.CalledProcessError):
        return b""


def build(subject: Subject) -> Path:
    """Build the implementation unless it is built; return its directory, which is complete as soon as it exists.

    Raises:
        ToolError: A tool is missing, or the build fails or takes too long.
    """
    place = place_of(subject)
    if place.is_dir():
        return place
    if missing := missing_tools(subject):
        raise ToolError(f"the subject {subject.name} requires {', '.join(missing)} on the PATH")
    partial = place.with_name(f".{place.name}-{uuid.uuid4().hex}")
    try:
        with _one_at_a_time(place.parent):
            if place.is_dir():  # another process has built it
                return place
            with as_file(subject.folder) as sources:
                shutil.copytree(sources, partial / "sources")
            _run(subject, partial)
            partial.rename(place)
    except OSError as error:
        raise ToolError(f"the subject {subject.name} cannot be built in {place.parent}: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return place


@contextmanager
def _one_at_a_time(directory: Path) -> Iterator[None]:
    """Lock a directory, so that one process builds and the others wait. The end of the process releases the lock."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def command_of(subject: Subject) -> list[str]:
    """Build the implementation, unless it is built; return the command that starts it.

    In the commands of the catalogue, ``{out}`` is the build directory.

    Raises:
        ToolError: As :func:`build`.
    """
    out = build(subject)
    return [word.replace("{out}", str(out)) for word in subject.start]


def _run(subject: Subject, partial: Path) -> None:
    command = [word.replace("{out}", str(partial)) for word in subject.build]
    message = f"the subject {subject.name} cannot be built"
    try:
        done = subprocess.run(  # noqa: S603 -- a command of the package's own catalogue
            command,
            cwd=partial / "sources",
            env={**os.environ, **subject.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"{message}: {subject.build[0]} was not done within {LIMIT:g} s") from None
    if done.returncode:
        last = " ".join(done.stdout.decode("utf-8", "replace").split())[-_LAST:]
        raise ToolError(f"{message}: {subject.build[0]} ended with status {done.returncode}: {last}")


def classes_of(subject: Subject, release: str) -> Build:
    """Build the implementation if necessary; return its jars, with the release with which they are compared.

    Raises:
        ToolError: The implementation cannot be built, or has no jars.
    """
    jars = tuple(sorted((build(subject) / "lib").glob("*.jar")))
    if not jars:
        raise ToolError(f"the subject {subject.name} was built without jars in lib")
    return Build(f"subject:{subject.name}", jars, subject.version, release, _JAVA_8, is_kafka=False)
