"""Every lock file is complete: it parses, its groups make sense, and what it names can be had and runs."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from thorough_params import thorough_except

from conformance.kafka import lock_file
from conformance.kafka.jar_fetch import Cache, class_path, fetch, tool_jar
from conformance.kafka.releases import GROUPS, RELEASES, load_release, load_tool, newest
from kidx.dialect import dialect_of
from kidx.java import find_java

# The newest patch of every minor from 2.4 on, and the patches that changed behaviour inside a minor.
EXPECTED = [
    "2.4.0",
    "2.4.1",
    "2.5.1",
    "2.6.3",
    "2.7.2",
    "2.8.2",
    "3.0.2",
    "3.1.2",
    "3.2.3",
    "3.3.2",
    "3.4.1",
    "3.5.2",
    "3.6.2",
    "3.7.2",
    "3.8.1",
    "3.9.0",
    "3.9.1",
    "3.9.2",
    "4.0.0",
    "4.0.1",
    "4.0.2",
    "4.1.0",
    "4.1.2",
    "4.2.1",
    "4.2.2",
    "4.3.1",
    "4.4.0",
]


def test_all_27_releases_are_locked_in_order():
    assert list(RELEASES) == EXPECTED
    assert newest() == "4.4.0"


@pytest.mark.parametrize("name", RELEASES)
def test_a_lock_file_is_well_formed(name):
    release = load_release(name)
    assert release.name == name
    assert release.logging == ("log4j2" if dialect_of(name).logs_with_log4j2 else "reload4j")
    names = [jar.artifact.rpartition(":")[0] for jar in release.jars]
    assert len(set(names)) == len(names), "one version of everything"
    for jar in release.jars:
        assert re.fullmatch(r"[0-9a-f]{64}", jar.sha256), jar
        assert jar.size > 0
        assert jar.groups, f"{jar.artifact} belongs to no group"
        assert jar.groups <= set(GROUPS)
    kafka = [jar.artifact for jar in release.jars if jar.artifact.startswith("org.apache.kafka:")]
    assert f"org.apache.kafka:kafka_2.13:{name}" in kafka
    assert all(artifact.endswith(f":{name}") for artifact in kafka)


@pytest.mark.parametrize("name", RELEASES)
def test_exactly_one_logging_binding_is_on_every_class_path(name):
    bindings = {"slf4j-nop", "slf4j-reload4j", "log4j-slf4j-impl"}
    release = load_release(name)
    for group in GROUPS:
        found = {jar.artifact.split(":")[1] for jar in release.group(group)} & bindings
        assert len(found) == 1, group
        assert ("slf4j-nop" in found) == (group != "broker"), "in-process use is silent, a broker logs"


def test_a_jar_that_releases_share_is_locked_with_one_hash():
    locked: dict[str, str] = {}
    for name in RELEASES:
        for jar in load_release(name).jars:
            assert locked.setdefault(jar.artifact, jar.sha256) == jar.sha256, jar.artifact


@pytest.mark.parametrize("name", RELEASES)
def test_the_lock_file_equals_the_output_of_the_lock_command_for_its_jars(name):
    release = load_release(name)
    artifacts = [jar.artifact for jar in release.jars]
    logging, added = lock_file.backend(name, artifacts)
    assert logging == release.logging
    assert {*added, lock_file.SILENT} <= set(artifacts)
    for jar in release.jars:
        assert jar.groups == set(lock_file.groups_of(name, jar.artifact)), jar.artifact


@pytest.mark.jvm
@pytest.mark.thorough
def test_the_lock_command_makes_the_same_file_again(tmp_path, monkeypatch):
    before = (lock_file.LOCKS / "tools.toml").read_bytes()
    monkeypatch.setattr(lock_file, "LOCKS", tmp_path)
    assert lock_file.main(["tools", "--work", str(tmp_path / "work")]) == 0
    assert (tmp_path / "tools.toml").read_bytes() == before


@pytest.mark.jvm
def test_a_small_jar_really_arrives(tmp_path, monkeypatch):
    monkeypatch.setenv("M2_REPO", str(tmp_path / "none"))
    jar = next(jar for jar in load_release(newest()).jars if jar.artifact.startswith("org.slf4j:slf4j-nop:"))
    cache = Cache(tmp_path / "cache")
    (path,) = fetch([jar], cache=cache)
    assert path.stat().st_size == jar.size
    assert cache.has(jar)


@pytest.mark.jvm
@pytest.mark.parametrize("name", thorough_except(["2.4.1"], ["2.4.1", "3.9.2", "4.3.1", "4.4.0"]))
def test_the_broker_class_path_reaches_the_brokers_usage(name):
    path = os.pathsep.join(map(str, class_path(name)))
    ran = subprocess.run(
        [find_java().executable, "-cp", path, "kafka.Kafka"], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 1
    assert "USAGE: java [options]" in ran.stdout + ran.stderr


@pytest.mark.jvm
@pytest.mark.thorough
def test_the_locked_compiler_compiles(tmp_path):
    source = tmp_path / "Hello.java"
    source.write_text('class Hello { String hello() { return "hello"; } }\n')
    command = [find_java().executable, "-jar", tool_jar("ecj"), "--release", "17", "-d", tmp_path / "out", source]
    subprocess.run(command, check=True, timeout=60)
    assert (tmp_path / "out/Hello.class").read_bytes()[:4] == bytes.fromhex("cafebabe")
    assert load_tool("ecj").artifact == "org.eclipse.jdt:ecj:3.33.0"
