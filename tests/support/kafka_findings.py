"""Findings in Kafka: their declarations, and runs of their JUnit tests on a release, with or without the fixes.

Tests and fixes are compiled against the locked jars of the release on which they run. A fix consists of a small class
that precedes the jars on the class path, and of a few calls in Kafka's class files that are redirected to it. The
sources of Kafka are not needed.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from kafka_diffs import RELEASE as DIFF_RELEASE
from kafka_diffs import Edit, addition, diff, licence, write

from conformance.clauses.release_ranges import parse_range
from conformance.implementations.jvm.bytecode import (
    INVOKE_STATIC,
    asm_class,
    class_file,
    jars_of,
    kafkas_classes,
    read_class,
    write_class,
)
from conformance.implementations.jvm.driver import compile_java
from conformance.kafka.jar_fetch import tool_jar
from conformance.kafka.releases import RELEASES
from conformance.studies.mutants.kafka_tests import LIBRARIES, test_jars
from kidx.java import find_java

ROOT: Final = Path(__file__).parents[2] / "findings"
ADDED: Final = ROOT / "kafka"
"""Tests that the diffs add, at their places in Kafka's tree."""
_JAVA: Final = ROOT / "java"
_CALL, _LOAD_INT, _RETURN_INT = 5, 21, 172
_STATIC: Final = 8


@dataclass(frozen=True)
class Patch:
    """Change of a method of one of Kafka's classes.

    Attributes:
        within: class and method, e.g. ``org/apache/kafka/storage/internals/log/LogSegment.recover``.
        by: static method of the fix, e.g. ``fixes/FullIndex.append``; its first argument is the receiver of the
            replaced call.
        call: call that is replaced, e.g. ``java/nio/file/Files.exists``; empty to replace the whole body of the method.
    """

    within: str
    by: str
    call: str = ""


@dataclass(frozen=True)
class Finding:
    """Entry of ``findings.toml``.

    Attributes:
        number: number of its page.
        name: name of its page.
        title: title, as of a ticket.
        component: component of Kafka's tracker.
        clauses: ids of the clauses that describe the behaviour of Kafka.
        cost: consequence for a user, in one sentence.
        rank: rank by consequence, 1 for the worst.
        tests: JUnit tests, ``Class.method``.
        affected: range of releases on which the tests fail.
        says: message of the first test on the newest release, in which … is any text.
        unaffected: range of releases on which they pass; empty if no release does.
        elsewhere: reason why they do not run on the other releases.
        curiosity: True if the finding has no consequence for anybody.
        hostile: True if it needs a client that sends what no official client sends.
        fixed: release to whose class files the fix is applied; empty if there is no fix.
        patches: the fix.
        edits: the fix in the source of a release.
        added: tests on the helpers of Kafka's own tests, ``Class.method``, which the diff adds.
        kept: the tests in ``added`` that pass without the fix, too.
    """

    number: int
    name: str
    title: str
    component: str
    clauses: tuple[str, ...]
    cost: str
    rank: int
    tests: tuple[str, ...]
    affected: str
    says: str
    unaffected: str = ""
    elsewhere: str = "they lack the feature"
    curiosity: bool = False
    hostile: bool = False
    fixed: str = ""
    patches: tuple[Patch, ...] = ()
    edits: tuple[Edit, ...] = ()
    added: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def page(self) -> Path:
        """Path of the finding's page."""
        return ROOT / f"{self.number:02}-{self.name}.md"

    @property
    def added_files(self) -> list[Path]:
        """Paths of the test classes that the diff adds, below `findings/kafka` as in Kafka's tree."""
        classes = dict.fromkeys(test.partition(".")[0] for test in self.added)
        return [next(ADDED.rglob(f"{each}.java")) for each in classes]

    def fails_on(self, release: str) -> bool:
        """Return True if the finding's tests must fail on a release."""
        return release in parse_range(self.affected)

    def passes_on(self, release: str) -> bool:
        """Return True if the finding's tests must pass on a release."""
        return bool(self.unaffected) and release in parse_range(self.unaffected)


@cache
def findings() -> tuple[Finding, ...]:
    """Return all findings, by number."""
    rows = tomllib.loads((ROOT / "findings.toml").read_text("utf-8"))["finding"]
    return tuple(_finding(row) for row in sorted(rows, key=lambda row: row["number"]))


def _finding(row: Mapping[str, Any]) -> Finding:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    values["patches"] = tuple(Patch(**patch) for patch in row.get("patches", ()))
    values["edits"] = tuple(Edit(**edit) for edit in row.get("edits", ()))
    return Finding(**values)


def results(release: str, directory: Path, *, fixed: bool = False) -> dict[str, str]:
    """Run the tests for a release. Return the result of each: an empty text if it passed, otherwise the error.

    Args:
        release: release whose jars are used.
        directory: an empty directory.
        fixed: True to run only the tests of findings with a fix for this release, with the fixes applied.
    """
    chosen = [
        each
        for each in findings()
        if (each.fixed == release if fixed else each.fails_on(release) or each.passes_on(release))
    ]
    jars = [*jars_of(release), tool_jar("junit")]
    return _results(chosen, _patched(jars, chosen, directory / "fixes") if fixed else jars, directory)


def patch(chosen: Iterable[Finding]) -> str:
    """Return the diff of findings, as ``git apply`` takes it: the fixes, and the tests on Kafka's own helpers."""
    chosen = list(chosen)
    edits = [edit for each in chosen for edit in each.edits]
    files = dict.fromkeys(file for each in chosen for file in each.added_files)
    header = licence(edits[0]) if edits else ""
    return diff(edits) + "".join(
        addition(file.relative_to(ADDED).as_posix(), header + file.read_text("utf-8")) for file in files
    )


def results_with_edits(directory: Path) -> dict[str, str]:
    """Run the tests of the findings with edits on the release whose source is edited, with the edited classes."""
    return _results(findings(), _edited([*jars_of(DIFF_RELEASE), tool_jar("junit")], directory), directory)


def results_of_added(directory: Path, *, edited: bool) -> dict[str, str]:
    """Run the tests that the diffs add, on the release whose source is edited, with the jars of Kafka's own tests.

    Args:
        directory: an empty directory.
        edited: True to run them with the edited classes.
    """
    jars = _with_kafkas_tests(directory, edited=edited)
    compile_java({file for each in findings() for file in each.added_files}, jars, directory / "classes")
    return run_tests([directory / "classes", *jars], directory / "classes", directory)


def results_of_kafkas_tests(names: Iterable[str], directory: Path, *, edited: bool) -> dict[str, str]:
    """Run test classes of Kafka, or their methods, with or without the edits of all findings."""
    return run_tests(_with_kafkas_tests(directory, edited=edited), names, directory)


def _with_kafkas_tests(directory: Path, *, edited: bool) -> list[Path]:
    others = map(tool_jar, (f"kafka-storage-api-tests-{DIFF_RELEASE}", *LIBRARIES))
    jars = [*jars_of(DIFF_RELEASE), *test_jars(DIFF_RELEASE), *others]
    return _edited(jars, directory) if edited else jars


def _edited(jars: list[Path], directory: Path) -> list[Path]:
    """Return a class path with the edits of all findings."""
    sources = write((edit for each in findings() for edit in each.edits), directory / "source")
    compile_java(sources, jars, directory / "edited")
    return [directory / "edited", *jars]


def _results(chosen: Iterable[Finding], jars: list[Path], directory: Path) -> dict[str, str]:
    """Compile the tests of findings against a class path, and run them on it."""
    names = {test.split(".")[0] for each in chosen for test in each.tests}
    classes = directory / "classes"
    tests = [path for path in _JAVA.rglob("*Test.java") if path.stem in names]
    texts = "".join(path.read_text("utf-8") for path in tests)
    helpers = [path for path in _JAVA.glob("findings/*.java") if f"findings.{path.stem};" in texts]
    compile_java([*helpers, *tests], jars, classes)
    return run_tests([classes, *jars], classes, directory)


def patched_jars(release: str, numbers: Iterable[int], directory: Path) -> list[Path]:
    """Return the class path of a release, with class files to which the fixes of some findings are applied.

    Args:
        release: the release.
        numbers: numbers of the findings.
        directory: an empty directory for the class files.
    """
    chosen = [each for each in findings() if each.number in set(numbers)]
    return _patched(jars_of(release), chosen, directory / "fixes")


def _patched(jars: list[Path], chosen: Iterable[Finding], before: Path) -> list[Path]:
    compile_java(_JAVA.glob("fixes/**/*.java"), [*jars, tool_jar("junit")], before)
    apply(dict.fromkeys(patch for each in chosen for patch in each.patches), jars, before)
    return [before, *jars]


def run_tests(path: list[Path], tests: Path | Iterable[str], directory: Path) -> dict[str, str]:
    """Run JUnit tests. Return the error of each test; empty if it passed.

    Args:
        path: class path.
        tests: directory of the compiled tests, or names of classes, with # of methods.
        directory: working directory, which gets the reports.
    """
    silent = directory / "log4j2.properties"
    silent.write_text("rootLogger.level = off\n")
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={silent}"]
    java = [Path(find_java().home) / "bin" / "java", *options]
    by_directory = isinstance(tests, Path)
    chosen = ["--scan-class-path", tests] if by_directory else [_selection(each) for each in tests]
    junit = ["-jar", tool_jar("junit"), "execute", *chosen, "--disable-banner", "--details=none"]
    joined = os.pathsep.join(map(str, path))
    reports = directory / "reports"
    done = subprocess.run(
        [*java, *junit, "-cp", joined, "--reports-dir", reports],
        cwd=directory,
        env={**os.environ, "LC_ALL": "C.UTF-8"},  # Java cannot open a file whose name its locale cannot encode
        capture_output=True,
        text=True,
        check=False,
    )
    report = reports / "TEST-junit-jupiter.xml"
    assert report.exists(), done.stdout + done.stderr
    said = {}
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 -- JUnit's own
        problem = next((case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None), None)
        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name', '').removesuffix('()')}"
        said[name] = "" if problem is None else f"{problem.get('type')}: {problem.get('message')}\n{problem.text}"
    return said


def _selection(name: str) -> str:
    return f"--select-{'method' if '#' in name else 'class'}={name}"


def apply(patches: Iterable[Patch], jars: Iterable[Path], target: Path) -> None:
    """Write Kafka's class files, with patches applied, below a directory."""
    by_class: dict[str, list[Patch]] = {}
    for patch in patches:
        by_class.setdefault(patch.within.rpartition(".")[0], []).append(patch)
    wanted = re.compile("|".join(rf"{re.escape(name)}\.class" for name in by_class) or "(?!)")
    for name, data in kafkas_classes(list(jars), wanted):
        node = read_class(data)
        for patch in by_class.pop(name.removesuffix(".class")):
            changed = sum(_change(node, method, patch) for method in list(node.methods))
            assert changed, f"{patch} changes nothing"
        write_class(target, name, class_file(node))
    assert not by_class, f"there is no class {list(by_class)}"


def _change(node: Any, method: Any, patch: Patch) -> int:
    """Apply a patch to a method; return the number of changed places."""
    if str(method.name) != patch.within.rpartition(".")[2]:
        return 0
    owner, _, ours = patch.by.rpartition(".")
    if patch.call:
        places = [each for each in method.instructions.toArray() if _is_call(each, patch.call)]
        for place in places:
            static = int(place.getOpcode()) == INVOKE_STATIC
            receiver = "" if static else f"L{place.owner};"
            place.desc = f"({receiver}{str(place.desc)[1:]}"
            place.owner, place.name, place.itf = owner, ours, False
            place.setOpcode(INVOKE_STATIC)
        return len(places)
    return _replace_body(node, method, owner, ours)


def _is_call(instruction: Any, call: str) -> bool:
    owner, _, name = call.rpartition(".")
    return int(instruction.getType()) == _CALL and (str(instruction.owner), str(instruction.name)) == (owner, name)


def _replace_body(node: Any, method: Any, owner: str, ours: str) -> int:
    """Replace a method by one that calls the fix; rename the old one to ``…$unfixed``."""
    types, new = asm_class("Type"), asm_class("tree.MethodNode")
    call, load, plain = (asm_class(f"tree.{name}InsnNode") for name in ("Method", "Var", ""))
    added = new(method.access, method.name, method.desc, method.signature, None)
    receiver = "" if int(method.access) & _STATIC else f"L{node.name};"
    description = f"({receiver}{str(method.desc)[1:]}"
    slot = 0
    for each in types.getArgumentTypes(description):
        added.instructions.add(load(int(each.getOpcode(_LOAD_INT)), slot))
        slot += int(each.getSize())
    added.instructions.add(call(INVOKE_STATIC, owner, ours, description, False))
    added.instructions.add(plain(int(types.getReturnType(description).getOpcode(_RETURN_INT))))
    method.name = f"{method.name}$unfixed"
    node.methods.add(added)
    return 1


def locked(text: str) -> list[str]:
    """Return the locked releases in a range."""
    return [release for release in RELEASES if text and release in parse_range(text)]
