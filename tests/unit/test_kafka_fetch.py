"""Jars come into the cache whole and right, or not at all; nothing here touches the network."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import jgo.maven
import pytest
import requests
from rich.console import Console

from conformance.errors import CacheError, FetchError, HashMismatchError, ToolError, UnknownReleaseError
from conformance.implementations.jvm.coverage import TOOLS
from conformance.implementations.jvm.driver import ASM, COMPILER
from conformance.kafka import jar_fetch as fetch_module
from conformance.kafka.jar_fetch import Cache, Step, cache_directory, class_path, fetch, jars_of_runs
from conformance.kafka.progress import show_progress
from conformance.kafka.releases import GROUPS, RELEASES, Jar, Release, load_release, load_tool
from conformance.kafka.status import fetch_release, list_releases


def content_of(name: str) -> bytes:
    return name.encode() * 1000


def jar(name: str, content: bytes | None = None) -> Jar:
    content = content_of(name) if content is None else content
    artifact = f"org.example:{name}:1.0"
    return Jar(artifact, hashlib.sha256(content).hexdigest(), len(content), frozenset({"index"}))


JARS = [jar(name) for name in ("alpha", "beta", "gamma")]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Cache:
    monkeypatch.setenv("KIDX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("M2_REPO", str(tmp_path / "no-such-repository"))
    monkeypatch.setattr(fetch_module, "PAUSES", (0.0,))
    return Cache()


@pytest.fixture(autouse=True)
def repository(monkeypatch):
    """Replace the remote side by a list of the requests, and a function that writes the response."""

    class Repository:
        def __init__(self):
            self.asked = []
            self.answer = lambda artifact, path: path.write_bytes(content_of(artifact.artifactId))

    remote = Repository()

    def download(resolver, artifact):
        remote.asked.append(artifact.artifactId)
        path = artifact.cached_path
        assert not path.exists()
        path.parent.mkdir(parents=True)
        remote.answer(artifact, path)
        with resolver.progress_callback(artifact.filename, path.stat().st_size) as update:
            update(path.stat().st_size)
        return path

    monkeypatch.setattr(jgo.maven.PythonResolver, "download", download)
    return remote


def files_of(cache: Cache) -> set[str]:
    return {str(path.relative_to(cache.directory)) for path in cache.directory.rglob("*") if path.is_file()}


def one_line(error: pytest.ExceptionInfo[ToolError]) -> str:
    text = str(error.value)
    assert text
    assert "\n" not in text
    return text


def test_missing_jars_are_fetched_in_class_path_order(cache, repository):
    paths = fetch(JARS)
    assert [path.read_bytes() for path in paths] == [content_of(name) for name in ("alpha", "beta", "gamma")]
    assert paths[0] == cache.directory / "jars/org/example/alpha/1.0/alpha-1.0.jar"
    assert sorted(repository.asked) == ["alpha", "beta", "gamma"]
    assert not list((cache.directory / "partial").iterdir())


def test_a_second_start_neither_fetches_nor_hashes(repository, monkeypatch):
    fetch(JARS)
    monkeypatch.setattr(fetch_module, "sha256_of", lambda path: pytest.fail(f"hashed {path}"))
    repository.asked.clear()
    fetch(JARS)
    assert repository.asked == []


@pytest.mark.parametrize("keep_size", [True, False])
def test_a_damaged_jar_in_the_cache_is_fetched_again(repository, keep_size):
    path = fetch(JARS)[0]
    path.write_bytes(b"x" * (path.stat().st_size if keep_size else 3))
    os.utime(path, ns=(1, 1))  # a coarse clock must not hide the change
    repository.asked.clear()
    assert fetch(JARS)[0].read_bytes() == content_of("alpha")
    assert repository.asked == ["alpha"]


def test_a_filled_cache_that_cannot_be_written_still_works(repository, monkeypatch):
    for path in fetch(JARS):
        path.with_name(f"{path.name}.verified").unlink()

    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Cache, "_write_mark", refuse)
    repository.asked.clear()
    assert len(fetch(JARS)) == 3
    assert repository.asked == []


def test_a_wrong_hash_names_the_artifact_and_both_hashes_and_saves_nothing(cache, repository):
    repository.answer = lambda _, path: path.write_bytes(b"something else")
    with pytest.raises(HashMismatchError) as error:
        fetch(JARS[:1])
    message = one_line(error)
    assert "org.example:alpha:1.0" in message
    assert JARS[0].sha256 in message
    assert hashlib.sha256(b"something else").hexdigest() in message
    assert files_of(cache) == {"fetch.lock"}
    assert not list((cache.directory / "partial").iterdir())


def test_files_that_arrived_before_a_failure_remain(cache, repository):
    fetch(JARS[:1])

    def answer(_, path):
        path.write_bytes(b"broken")

    repository.answer = answer
    with pytest.raises(HashMismatchError):
        fetch(JARS)
    assert cache.has(JARS[0])
    assert not cache.has(JARS[1])


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (requests.ConnectionError("a\nlong\nstory"), "no network"),
        (requests.Timeout(), "timed out"),
        (requests.exceptions.ChunkedEncodingError(), "the connection broke"),
    ],
)
def test_no_network_is_one_line_after_a_second_try(cache, repository, raised, said):
    def answer(*_):
        raise raised

    repository.answer = answer
    with pytest.raises(FetchError) as error:
        fetch(JARS[:1])
    assert said in one_line(error)
    assert "org.example:alpha:1.0" in one_line(error)
    assert repository.asked == ["alpha", "alpha"]
    assert files_of(cache) == {"fetch.lock"}


def test_a_connection_that_breaks_once_is_tried_again(repository):
    def answer(artifact, path):
        path.write_bytes(content_of(artifact.artifactId)[:100])
        if len(repository.asked) == 1:
            raise requests.ConnectionError
        path.write_bytes(content_of(artifact.artifactId))

    repository.answer = answer
    assert fetch(JARS[:1])[0].read_bytes() == content_of("alpha")


def test_an_artifact_missing_in_the_repository_is_one_line_without_its_address(repository):
    def answer(*_):
        raise RuntimeError("Artifact not found in {'central': 'address'}")

    repository.answer = answer
    with pytest.raises(FetchError) as error:
        fetch(JARS[:1])
    assert one_line(error) == "cannot fetch org.example:alpha:1.0: the Maven repository did not provide it"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "no space left"),
        (errno.EDQUOT, "no space left"),
        (errno.EROFS, "not writable"),
        (errno.EACCES, "not writable"),
        (errno.EIO, "cannot write"),
    ],
)
def test_a_cache_that_cannot_be_written_is_one_line(cache, repository, number, said):
    def answer(*_):
        raise OSError(number, os.strerror(number))

    repository.answer = answer
    with pytest.raises(CacheError) as error:
        fetch(JARS)
    assert said in one_line(error)
    assert str(cache.directory) in one_line(error)
    assert files_of(cache) == {"fetch.lock"}


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_cache_path_that_is_a_file_is_one_line(tmp_path, monkeypatch, below):
    file = tmp_path / "file"
    file.write_text("mine")
    monkeypatch.setenv("KIDX_CACHE", str(file / below))
    with pytest.raises(CacheError, match="not a directory") as error:
        fetch(JARS)
    assert "KIDX_CACHE" in one_line(error)
    assert file.read_text() == "mine"


def test_without_jgo_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jgo.maven", None)
    with pytest.raises(FetchError) as error:
        fetch(JARS[:1])
    assert "kidx[jvm]" in one_line(error)


def test_the_local_maven_repository_is_used_only_for_matching_hashes(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("M2_REPO", str(tmp_path / "m2"))
    for item, content in ((JARS[0], content_of("alpha")), (JARS[1], b"x" * JARS[1].size), (JARS[2], b"short")):
        path = tmp_path / "m2" / item.path
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    paths = fetch(JARS)
    assert sorted(repository.asked) == ["beta", "gamma"]
    assert [path.read_bytes() for path in paths] == [content_of(name) for name in ("alpha", "beta", "gamma")]


def test_a_configured_mirror_is_used_instead(repository, monkeypatch):
    seen = []

    def answer(artifact, path):
        seen.append(artifact.context.remote_repos)
        path.write_bytes(content_of(artifact.artifactId))

    repository.answer = answer
    monkeypatch.setenv("KIDX_MAVEN_MIRROR", "file-server/maven")
    fetch(JARS[:1])
    assert seen == [{"mirror": "file-server/maven"}]


def test_leftovers_of_killed_processes_are_removed_when_old(cache):
    old, young = cache.directory / "partial/old", cache.directory / "partial/young"
    for leftover in (old, young):
        leftover.mkdir(parents=True)
        (leftover / "half.jar").write_bytes(b"half")
    os.utime(old, (0, 0))
    fetch(JARS[:1])
    assert not old.exists()
    assert young.exists()


def test_a_lock_that_is_never_released_only_delays(cache):
    with cache.locked():
        started = time.monotonic()
        with Cache(cache.directory).locked(timeout=0.2):
            assert time.monotonic() - started >= 0.2


def test_many_processes_may_start_simultaneously(tmp_path):
    items = [jar(f"part{number}", os.urandom(200_000)) for number in range(10)]
    source = tmp_path / "source"
    for item in items:
        (source / item.path).parent.mkdir(parents=True)
    contents = {}
    for item in items:
        contents[item.artifact] = os.urandom(200_000)
        (source / item.path).write_bytes(contents[item.artifact])
    program = tmp_path / "program.py"
    locked = [(name, hashlib.sha256(content).hexdigest(), len(content)) for name, content in contents.items()]
    program.write_text(
        "from conformance.kafka.jar_fetch import fetch\n"
        "from conformance.kafka.releases import Jar\n"
        f"print(sum(path.stat().st_size for path in fetch([Jar(*entry) for entry in {locked!r}])))\n"
    )
    environment = {**os.environ, "M2_REPO": str(source), "KIDX_CACHE": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    running = [
        subprocess.Popen(
            [sys.executable, program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(6)
    ]
    for process in running:
        out, err = process.communicate(timeout=120)
        assert (out.strip(), err) == ("2000000", "")
    assert not list((tmp_path / "cache/partial").iterdir())


def test_progress_ends_with_everything_present():
    steps: list[Step] = []
    fetch(JARS, progress=steps.append)
    total = sum(item.size for item in JARS)
    assert (steps[-1].jars, steps[-1].total_jars) == (3, 3)
    assert (steps[-1].size, steps[-1].total_size) == (total, total)
    assert [step.size for step in steps] == sorted(step.size for step in steps)
    steps.clear()
    fetch(JARS, progress=steps.append)
    assert steps == []


def test_away_from_a_terminal_progress_is_a_few_plain_lines(tmp_path):
    with (tmp_path / "out").open("w+") as file:
        with show_progress("Kafka 1.2.3", Console(file=file)) as progress:
            fetch(JARS, progress=progress)
            fetch(JARS, progress=progress)
        file.seek(0)
        lines = file.read().splitlines()
    assert lines[0].startswith("fetching Kafka 1.2.3: 3 jars")
    assert lines[-1].startswith("fetched Kafka 1.2.3: 3 of 3 jars")
    assert len(lines) <= 5


def test_on_a_terminal_progress_is_a_bar(tmp_path):
    with (tmp_path / "out").open("w+") as file:
        with show_progress("Kafka 1.2.3", Console(file=file, force_terminal=True)) as progress:
            fetch(JARS, progress=progress)
        file.seek(0)
        assert "Kafka 1.2.3: 3/3 jars" in file.read()


def test_the_cache_belongs_to_the_user_unless_configured(monkeypatch):
    monkeypatch.delenv("KIDX_CACHE", raising=False)
    assert cache_directory().name == "kidx"
    monkeypatch.setenv("KIDX_CACHE", "~/elsewhere")
    assert cache_directory() == Path.home() / "elsewhere"


def test_an_unknown_release_lists_the_locked_ones():
    with pytest.raises(UnknownReleaseError) as error:
        class_path("9.9.9")
    assert "9.9.9" in one_line(error)
    assert all(release in one_line(error) for release in RELEASES)


def test_an_unknown_group_is_a_bug_of_the_caller():
    with pytest.raises(ValueError, match="index, segment, log, broker"):
        Release("1.0.0", "log4j2", ()).group("everything")


def test_the_commands_show_what_is_locked_and_cached(cache, monkeypatch):
    release = Release("1.0.0", "log4j2", tuple(JARS))
    for module in ("status", "jar_fetch"):
        monkeypatch.setattr(f"conformance.kafka.{module}.load_release", lambda _: release)
    monkeypatch.setattr("conformance.kafka.status.RELEASES", ("1.0.0",))
    monkeypatch.setattr("conformance.kafka.status.user_releases", dict)  # this machine's user may have locked some
    fetch(JARS[:1])
    (row,) = list_releases()
    assert (row.jars, row.cached_jars, row.cached) == (3, 1, False)
    assert (row.size, row.cached_size) == (sum(item.size for item in JARS), JARS[0].size)
    fetched = fetch_release("1.0.0", "index")
    assert (len(fetched.jars), fetched.new_jars, fetched.directory) == (3, 2, cache.directory)
    assert list_releases()[0].cached


@pytest.mark.parametrize("release", ["2.4.0", "3.6.2", "4.4.0"])
def test_the_jars_of_runs_are_those_of_every_class_path_and_of_the_tools(release):
    """The group of brokers was empty, and a run still needed a network, for the logging."""
    jars = jars_of_runs(load_release(release))
    assert {jar for group in GROUPS for jar in load_release(release).group(group)} <= set(jars)
    assert {load_tool(name) for name in (COMPILER, *ASM, *TOOLS)} <= set(jars)
    if release == "4.4.0":
        assert {load_tool("tiers-4.3.1").name, "kafka-clients-4.3.1.jar"} <= {jar.name for jar in jars}
