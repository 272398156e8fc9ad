"""The class loaders of the one JVM, and the classes of ours in the cache."""

from __future__ import annotations

import gc
import time
from itertools import combinations
from pathlib import Path

import pytest

from conformance.implementations.jvm import JvmIndex, driver
from conformance.implementations.jvm.driver import compile_java
from conformance.implementations.jvm.virtual_machine import release_loader, start_jvm
from conformance.kafka.jar_fetch import cache_directory
from conformance.operations import Operation

MAPS = Path("/proc/self/maps")


@pytest.mark.jvm
def test_a_release_has_one_class_loader_for_any_description_of_its_jars():
    """A second one would hold all of Kafka's classes again, for as long as the process lives."""
    first = release_loader("4.4.0", "index", lambda _: None)
    assert release_loader("4.4.0", "index", lambda _: None) is first
    assert release_loader("4.4.0", progress=None) is first
    assert release_loader("4.4.0", "log") is not first


def test_the_name_depends_on_all_inputs_of_the_classes():
    made_of = [
        ([("A.java", b"class A {}")], "00", "17", 17),
        ([("A.java", b"class A { }")], "00", "17", 17),
        ([("B.java", b"class A {}")], "00", "17", 17),
        ([("A.java", b"class A {}")], "01", "17", 17),
        ([("A.java", b"class A {}")], "00", "21", 17),
        ([("A.java", b"class A {}")], "00", "17", 21),
    ]
    names = [driver._digest(*each) for each in made_of]
    assert driver._digest(*made_of[0]) == names[0]
    assert all(one != other for one, other in combinations(names, 2))


@pytest.mark.jvm
def test_another_java_level_compiles_again(monkeypatch):
    usual = driver._compiled(driver.SOURCES)
    assert usual.parent == cache_directory() / "drivers"
    compiled = []
    monkeypatch.setattr(driver, "compile_java", lambda sources, _, target: compiled.append((len(sources), target)))
    assert driver._compiled(driver.SOURCES) == usual
    assert not compiled
    monkeypatch.setattr(driver, "JAVA_LEVEL", "18")
    other = driver._compiled(driver.SOURCES)
    assert other != usual
    assert len(compiled) == 1
    other.rmdir()


@pytest.mark.jvm
def test_neither_collector_sets_off_the_other_ones():
    start_jvm()
    assert not [hook for hook in gc.callbacks if getattr(hook, "__module__", None) == "_jpype"]


@pytest.mark.jvm
@pytest.mark.skipif(not MAPS.exists(), reason="there is no list of maps")
@pytest.mark.thorough
def test_maps_that_a_release_leaves_to_the_collector_are_collected(tmp_path):
    """3.9.1 leaves one with each resize, and no collection starts automatically.

    Other tests of this process may have left some too, so that a collection can come early. The number never exceeds
    9,216 by much, because the driver then starts one.
    """
    index = JvmIndex("3.9.1")
    index.begin(tmp_path)
    index.perform(Operation("open", ("offset", "0.index", 0, 800, True)))
    for number in range(20_000):
        index.perform(Operation("resize", (800 if number % 2 else 400,)))
    deadline = time.monotonic() + 60
    while (left := MAPS.read_text().count(str(tmp_path))) > 10_000:
        assert time.monotonic() < deadline, f"{left} are still there"
        time.sleep(0.05)
    index.end()


@pytest.mark.thorough
@pytest.mark.jvm
def test_a_second_compilation_loads_no_second_compiler(tmp_path):
    """Each compiler keeps 8 MB, which are never released; many of them filled the heap."""
    (tmp_path / "Hello.java").write_text("class Hello {}\n", "utf-8")
    loading = start_jvm().JClass("java.lang.management.ManagementFactory").getClassLoadingMXBean()
    loaded = []
    for name in ("first", "second"):
        before = loading.getTotalLoadedClassCount()
        compile_java([tmp_path / "Hello.java"], [], tmp_path / name)
        assert (tmp_path / name / "Hello.class").is_file()
        loaded.append(loading.getTotalLoadedClassCount() - before)
    assert loaded[1] < 50
