"""Writer of lock files: ``python -m conformance.kafka.lock_file RELEASE ...`` (or ``tools``).

A maintainer runs this module when Kafka publishes a release. The module resolves the run-time class path of
``org.apache.kafka:kafka_2.13:RELEASE`` with jgo's pure-Python Maven resolver, adds a logging backend and the jar that
contains ``DumpLogSegments``, downloads every jar, and writes ``locks/RELEASE.toml``, which lists all jars with their
hashes. Later runs trust this file, so read the diff before committing it.

A group is the class path for one purpose: the classes of indexes, of segments, of logs, or a whole broker.

``--work DIR`` keeps poms and jars between runs; the default is a temporary directory.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conformance.errors import ToolError, UnknownReleaseError
from conformance.kafka.builds import release_of
from conformance.kafka.jar_fetch import repositories
from conformance.kafka.releases import GROUPS, RELEASES, Group, Jar, Release, load_release, user_locks
from conformance.quoting import quoted
from kidx.dialect import DIALECTS, Dialect, dialect_of

LOCKS = Path(__file__).parent / "locks"

# Jars that the harness itself uses, and that belong to no release.
TOOLS = {
    # The last ecj that runs on Java 17; it compiles the harness's Java sources if only a JRE is installed.
    "ecj": "org.eclipse.jdt:ecj:3.33.0",
    # Reads and writes class files; tests use it to make broken builds of Kafka.
    "asm": "org.ow2.asm:asm:9.8",
    "asm-tree": "org.ow2.asm:asm-tree:9.8",
    # Measures which code of Kafka's classes a fuzzed file has reached; needs asm, asm-tree and asm-commons.
    "asm-commons": "org.ow2.asm:asm-commons:9.8",
    "jacoco": "org.jacoco:org.jacoco.core:0.8.13",
    # Kafka's own storage in a local directory, which its tests and its quick start of tiered storage use.
    **{
        f"tiers-{release}": f"org.apache.kafka:kafka-storage:{release}:test"
        for release in ("3.6.2", "3.7.2", "3.8.1", "3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1")
    },
    # Runs the JUnit tests that replay --export writes, as the reader of a bug report would.
    "junit": "org.junit.platform:junit-platform-console-standalone:1.11.4",
    # Kafka's own unit tests of its log layer, and the libraries that they need.
    **{
        f"{name}-tests-4.3.1": f"org.apache.kafka:{name}:4.3.1:test"
        for name in ("kafka-clients", "kafka-server-common", "kafka-server", "kafka-metadata", "kafka_2.13")
    },
    # Sources from which the diffs of findings are made; 4.4.0 has none.
    **{
        f"kafka-{name}-sources-4.3.1": f"org.apache.kafka:kafka-{name}:4.3.1:sources"
        for name in ("clients", "storage", "tools")
    },
    "mockito": "org.mockito:mockito-core:5.20.0",
    "mockito-junit": "org.mockito:mockito-junit-jupiter:5.20.0",
    "byte-buddy": "net.bytebuddy:byte-buddy:1.17.7",
    "byte-buddy-agent": "net.bytebuddy:byte-buddy-agent:1.17.7",
    "objenesis": "org.objenesis:objenesis:3.3",
    "hamcrest": "org.hamcrest:hamcrest:2.2",
    # Spark's own Kafka source, which also runs on later releases of Spark; kafka-clients comes from a release.
    "connector": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "connector-tokens": "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0",
    "commons-pool2": "org.apache.commons:commons-pool2:2.12.1",
}

# For classes in this process: without any backend, slf4j prints three lines on stderr for every class loader.
SILENT = "org.slf4j:slf4j-nop:1.7.36"
# Kafka's distribution has log4j 1.2.17 until 3.0, and from 3.1 on reload4j, its maintained replacement. One
# reload4j for all of them keeps the cache small and free of log4j 1.2's known vulnerabilities.
RELOAD4J = ("ch.qos.reload4j:reload4j:1.2.25", "org.slf4j:slf4j-reload4j:1.7.36")
# 4.0's pom does not name log4j2 (4.1's does); this is the version in its distribution.
LOG4J2 = "2.24.3"

# Jars that the index classes load; tried with all releases in one JVM, with one class loader each.
INDEX_SCALA = {"kafka_2.13", "kafka-clients", "scala-library", "scala-logging_2.13", "slf4j-api"}
# LockUtils, in kafka-server-common, is needed from 3.9.2, 4.0.2 and 4.1.2 on; other releases do not use the jar.
INDEX_JAVA = {"kafka-storage", "kafka-clients", "kafka-server-common", "slf4j-api"}
SEGMENT_JAVA = INDEX_JAVA | {"kafka-storage-api", "metrics-core", "zstd-jni", "lz4-java", "snappy-java"}


def _dialect(release: str) -> Dialect:
    """Return the dialect of a release; for an unknown release, the dialect of the newest one before it."""
    return dialect_of(release_of(release))


def groups_of(release: str, artifact: str) -> list[Group]:
    """Return the groups that contain an artifact of a release, in the order of ``GROUPS``."""
    if artifact == SILENT:
        return ["index", "segment", "log"]
    _, name, _ = artifact.split(":")
    if name in {"reload4j", "slf4j-reload4j", "log4j-slf4j-impl"}:
        return ["broker"]
    dialect = _dialect(release)
    index = INDEX_SCALA if dialect.index_classes_are_in_scala else INDEX_JAVA
    wanted: dict[Group, bool] = {
        "index": name in index,
        "segment": dialect.segment_classes_are_in_scala or name in SEGMENT_JAVA,
        "log": True,
        "broker": True,
    }
    return [group for group in GROUPS if wanted[group]]


def backend(release: str, resolved: list[str]) -> tuple[str, list[str]]:
    """Return the name of a release's logging backend and the artifacts to add for it."""
    if not _dialect(release).logs_with_log4j2:
        return "reload4j", list(RELOAD4J)
    versions = {name: version for _, name, version in (artifact.split(":") for artifact in resolved)}
    version = versions.get("log4j-core", LOG4J2)
    return "log4j2", [
        f"org.apache.logging.log4j:{name}:{version}" for name in ("log4j-api", "log4j-core", "log4j-slf4j-impl")
    ]


def resolve(context: Any, release: str) -> list[str]:
    """Return the run-time class path of a release's broker as ``group:artifact:version``, unordered."""
    dependency = context.create_dependency(f"org.apache.kafka:kafka_2.13:{release}")
    inputs, transitive = context.resolver.resolve([dependency])
    found = [
        f"{d.groupId}:{d.artifactId}:{d.version}"
        for d in [*inputs, *transitive]
        if d.scope in {None, "compile", "runtime"}
    ]
    if _dialect(release).dump_tool_in_own_jar:
        found.append(f"org.apache.kafka:kafka-tools:{release}")  # its dependencies are not needed by DumpLogSegments
    return found


def download(context: Any, artifact: str) -> Jar:
    """Return an artifact with its hash and size; download it unless it is in the work directory."""
    group, name, version, *classifier = artifact.split(":")
    path = context.project(group, name).at_version(version).artifact(*classifier).resolve()
    data = path.read_bytes()
    return Jar(artifact, hashlib.sha256(data).hexdigest(), len(data))


def lock(context: Any, release: str) -> str:
    """Return the text of the lock file of a release."""
    artifacts = resolve(context, release)
    name, extra = backend(release, artifacts)
    # Kafka's own jars come first, so that a dependency cannot shadow one of Kafka's classes.
    artifacts = sorted({*artifacts, *extra, SILENT}, key=lambda a: (not a.startswith("org.apache.kafka:"), a))
    with ThreadPoolExecutor(4) as pool:
        jars = list(pool.map(lambda artifact: download(context, artifact), artifacts))
    lines = [
        f"# Made by: python -m conformance.kafka.lock_file {release}",
        f'release = "{release}"',
        f'logging = "{name}"',
        "jars = [",
    ]
    for jar in jars:
        groups = ", ".join(f'"{group}"' for group in groups_of(release, jar.artifact))
        lines.append(
            f'  {{ artifact = "{jar.artifact}", sha256 = "{jar.sha256}", size = {jar.size}, groups = [{groups}] }},'
        )
    return "\n".join([*lines, "]", ""])


def lock_tools(context: Any) -> str:
    """Return the text of ``tools.toml``."""
    lines = ["# Made by: python -m conformance.kafka.lock_file tools"]
    for name, artifact in TOOLS.items():
        jar = download(context, artifact)
        lines += ["", f'["{name}"]', f'artifact = "{artifact}"', f'sha256 = "{jar.sha256}"', f"size = {jar.size}"]
    return "\n".join([*lines, ""])


def write_lock(release: str, directory: Path, work: Path | None = None) -> tuple[Path, int]:
    """Write the lock file of one release.

    Args:
        release: name of a published release.
        directory: directory of the lock file; created if it does not exist.
        work: directory that keeps the downloads, or None for a temporary directory.

    Returns:
        The lock file, and the number of its jars.

    Raises:
        ToolError: the release does not exist, is too old, or is locked by this package; jgo is not installed; a
            dependency cannot be resolved; a jar differs from its published checksum; or the file cannot be written.
    """
    if re.fullmatch(r"\d{1,4}(\.\d{1,4}){2}", release, re.ASCII) is None:
        raise ToolError(f"{quoted(release)} is not a release of Kafka; write it as 4.2.0")
    if release in RELEASES and directory != LOCKS:
        raise ToolError(f"Kafka {release} is already locked by this package")
    release_of(release, before=True)  # raises ToolError for a release that is too old to have a dialect
    try:
        from jgo.maven import MavenContext  # noqa: PLC0415  (an optional dependency)
    except ImportError:
        raise ToolError("making a lock file requires jgo; install with pip install 'kidx[jvm]'") from None
    with tempfile.TemporaryDirectory() as temporary:
        try:
            context = MavenContext(repo_cache=work or Path(temporary), remote_repos=repositories())
            with _checksums_enforced():
                text = lock(context, release)
            directory.mkdir(parents=True, exist_ok=True)
            path = directory / f"{release}.toml"
            path.write_text(text, "utf-8")
        except (OSError, RuntimeError, ValueError) as error:
            reason = quoted(" ".join(str(error).partition(" in remote repositories")[0].split()))
            raise ToolError(f"cannot lock Kafka {release}: {reason}") from error
    return path, text.count("artifact =")


def published_release(name: str) -> Release:
    """Load the lock file of a release. For a published release without one, first write it for the user.

    Raises:
        UnknownReleaseError: the release is not locked, and was not published when this package was made.
        ToolError: the release cannot be locked.
    """
    try:
        return load_release(name)
    except UnknownReleaseError:
        if name not in DIALECTS:
            raise
    print(f"conformance: locking Kafka {name} in {user_locks()}, on its first use", file=sys.stderr)  # noqa: T201
    write_lock(name, user_locks())
    return load_release(name)


@contextmanager
def _checksums_enforced() -> Iterator[None]:
    """Turn jgo's warning about a jar that differs from its published SHA-1 into an error.

    Raises:
        RuntimeError: jgo has warned about a checksum.
    """
    warnings: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("jgo")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
    for message in warnings:
        if message.startswith("Checksum mismatch"):
            raise RuntimeError(message)


def main(arguments: list[str] | None = None) -> int:
    """Write the requested lock files; return 0, or 2 if jgo is missing or a release does not resolve."""
    parser = argparse.ArgumentParser(
        prog="python -m conformance.kafka.lock_file", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("names", nargs="+", metavar="RELEASE", help="a Kafka release such as 4.3.1, or 'tools'")
    parser.add_argument("--work", type=Path, help="keep what is downloaded here (default: a temporary directory)")
    options = parser.parse_args(arguments)
    # Print jgo's warning about a jar that does not match its published checksum.
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        from jgo.maven import MavenContext  # noqa: PLC0415  (an optional dependency)
    except ImportError:
        sys.stderr.write("making a lock file requires jgo; install with pip install 'kidx[jvm]'\n")
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        context = MavenContext(repo_cache=options.work or Path(temporary), remote_repos=repositories())
        for name in options.names:
            try:
                text = lock_tools(context) if name == "tools" else lock(context, name)
            except (ToolError, OSError, RuntimeError, ValueError) as error:
                sys.stderr.write(f"cannot lock {name}: {error}\n")
                return 2
            (LOCKS / f"{name}.toml").write_text(text, "utf-8")
            sys.stdout.write(f"{name}: {text.count('artifact =')} jars\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
