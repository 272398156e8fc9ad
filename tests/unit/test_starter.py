"""``conformance init``: each language's adapter builds, is sane, conforms, and nine defects planted in it are found."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from machine_runs import run_machine
from thorough_params import thorough_except, thorough_param

from conformance.errors import ToolError
from conformance.events import Diverged, event_from_json
from conformance.experiments.smoke.checks import smoke
from conformance.experiments.starter import LANGUAGES, RELEASES, readme, write_starter
from conformance.experiments.starter.protocol_page import protocol_page
from conformance.implementations.process.schema import schema
from conformance.implementations.spec import parse_spec
from conformance.machines import MACHINES
from conformance.operations import Operation
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
PLANTED: dict[str, Any] = tomllib.loads((ROOT / "tests" / "adapters" / "starter_defects.toml").read_text("utf-8"))
SOURCES = {"python": "adapter.py", "go": "main.go", "rust": "main.rs", "node": "adapter.mjs", "java": "Adapter.java"}
FEW = ("3.4.1", "3.9.1", "4.2.1", "4.4.0")
"""Releases before and after every change of behaviour in the adapters."""
EVERY = (
    "2.4.0",
    "2.8.2",
    "3.0.0",
    "3.4.1",
    "3.5.0",
    "3.8.1",
    "3.9.1",
    "3.9.2",
    "4.0.0",
    "4.0.1",
    "4.2.0",
    "4.3.1",
    "4.4.0",
)
"""The releases before and after each change of it, and the first and the last."""
EXAMPLES = settings.default.max_examples * 12 // 100


def works(program: str) -> bool:
    """Return True if it is installed and runs: rustup's rustc needs a home with a toolchain."""
    asked = [program, "version" if program == "go" else "--version"]
    return shutil.which(program) is not None and subprocess.run(asked, capture_output=True, check=False).returncode == 0


def there(language: str) -> str:
    """Return the language; skip with a reason if it is missing."""
    needs = LANGUAGES[language].needs
    if not works(needs):
        reason = f"NOT TESTED: the adapter in {language}, because there is no {needs} that answers"
        if language in os.environ.get("KIDX_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    return language


def paste(work: Path, lines: Sequence[str], state: Path, *, seconds: float = 280) -> subprocess.CompletedProcess[str]:
    """Run lines in one shell, as if they were pasted."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    go = {"GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
    environment = {**os.environ, **go, "PATH": path, "XDG_STATE_HOME": str(state), "COLUMNS": "200"}
    return subprocess.run(
        ["bash", "-e"],
        input="\n".join(lines),
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


def commands(page: str) -> list[str]:
    return [line for block in page.split("```sh\n")[1:] for line in block.split("\n```")[0].splitlines()]


def within(page: str, directory: Path) -> str:
    """Return the command that starts the adapter from any directory."""
    start = re.search(r'smoke -i "(exec:.*)"', page)
    assert start
    return start[1].replace("my-index", str(directory))


@pytest.fixture(scope="module", params=thorough_except(("python",), LANGUAGES))
def written(request, tmp_path_factory) -> tuple[str, Path]:
    """Return a language, and the directory in which ``conformance init`` has made ``my-index``."""
    work = tmp_path_factory.mktemp("starter")
    done = paste(work, [f"conformance init --lang {there(request.param)} my-index"], work / "state")
    assert done.returncode == 0, done.stderr
    return request.param, work


@pytest.fixture(scope="module")
def adapter(written) -> str:
    """Return the adapter's specification; its README has been pasted into one shell, its run made short."""
    language, work = written
    page = (work / "my-index" / "README.md").read_text("utf-8")
    typed = commands(page)
    assert [line.split()[0] for line in typed[-2:]] == ["conformance", "conformance"]
    assert len(typed) == 2 + bool(LANGUAGES[language].build)
    typed[-1] += " --machine offset --machine time --max-examples 2"
    done = paste(work, typed, work / "state")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "conforms" in done.stdout.splitlines()[-1]
    return within(page, work / "my-index")


@pytest.mark.thorough
def test_it_is_sane(adapter):
    report = smoke(adapter)
    assert report.sane, "\n".join(report.lines())
    failed = [check.name for check in report.checks if check.verdict != "passed"]
    assert failed == [
        "offset: reports a corrupt file, and continues",  # it has no sanity check
        "time: reports a corrupt file, and continues",
        "log: writes its batches to the files in the given directory",  # nor Kafka's segments
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("machine", "releases", "examples"),
    [
        ("offset", FEW, EXAMPLES),
        ("time", FEW, EXAMPLES),
        ("log", FEW, EXAMPLES),
        thorough_param("offset", EVERY, 4),
        thorough_param("time", EVERY, 4),
        thorough_param("log", EVERY, 4),
    ],
    ids=lambda value: value if isinstance(value, str) else str(len(value)) if isinstance(value, tuple) else "",
)
def test_it_conforms(adapter, machine, releases, examples, tmp_path):
    """No difference, in what is observed of Kafka neither."""
    if releases == EVERY and "adapter.py" not in adapter:
        pytest.skip("every way is for the fastest to start")
    kind = MACHINES[machine]
    assert parse_spec(adapter).form == "exec"
    subjects = [kind.subject(adapter, release) for release in releases]
    lockstep = kind.new_lockstep(subjects, tmp_path)
    run_machine(kind, lockstep, examples, seed=1)
    assert lockstep.statistics.steps > 2 * examples
    for subject in subjects:
        assert not subject.failures_between_examples
        subject.close()


def test_it_cuts_its_file_where_its_release_does(adapter, tmp_path):
    """A release that is named has an effect, so that the claim about all of them is not about one."""
    for release in ("4.3.1", "4.4.0"):
        subject = MACHINES["offset"].subject(adapter, release)
        subject.begin(tmp_path)
        subject.perform(Operation("open", ("offset", release, 0, 80, True)))
        assert subject.perform(Operation("close", ())).outcome.error is None
        subject.end()
        subject.close()
    assert [(tmp_path / release).stat().st_size for release in ("4.3.1", "4.4.0")] == [0, 80]


def plant(language: str, directory: Path) -> None:
    """Add all nine defects to an adapter; the environment variable PLANTED chooses one."""
    source = directory / SOURCES[language]
    text = source.read_text("utf-8")
    place, function = PLANTED["planted"][language]
    for old, new in [(place, function + place), *(defect[language] for defect in PLANTED["defect"])]:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    source.write_text(text, "utf-8")


def planted_start(name: str, page: str) -> str:
    start = re.search(r'smoke -i "exec:(.*)"', page)
    assert start
    return f"exec:env PLANTED={name} {start[1]}"


@pytest.mark.in_turn(3)
@pytest.mark.thorough
@pytest.mark.timeout(960)  # nine implementations times three machines, on a machine that does other things as well
def test_nine_planted_defects_are_nine_differences(written, tmp_path):
    """Each is found at level must, once, and named by the clause that its maintainer would name."""
    language, work = written
    shutil.copytree(work / "my-index", tmp_path / "my-index")
    plant(language, tmp_path / "my-index")
    page = (work / "my-index" / "README.md").read_text("utf-8")
    implementations = {planted_start(defect["name"], page): defect for defect in PLANTED["defect"]}
    assert len(implementations) == 9
    asked = " ".join(f"-i '{implementation}'" for implementation in implementations)
    machines = "--machine offset --machine time --machine log"
    run = f"conformance run {asked} {machines} --level must --max-examples 10 --report out || test $? = 1"
    done = paste(tmp_path, [*commands(page)[:-2], run], tmp_path / "state", seconds=900)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out" / "events.ndjson").read_text("utf-8").splitlines()
    found = [event for event in map(event_from_json, map(json.loads, lines)) if isinstance(event, Diverged)]
    assert sorted(event.implementation for event in found) == sorted(implementations)
    for event in found:
        defect = implementations[event.implementation]
        assert event.machine == defect["machine"], defect["name"]
        assert event.clause in defect["clauses"], defect["name"]


@pytest.mark.thorough
def test_suggested_expectations_apply_and_match(tmp_path):
    """In a repository: the run diverges, git applies what it suggests, a person says why, the next run is green."""
    write_starter("python", tmp_path / "my-index")
    plant("python", tmp_path / "my-index")
    start = planted_start("lookup-off-by-one", readme("python", Path("my-index")))
    run = f"conformance run -i '{start}' --machine offset --max-examples 3 --expectations known"
    lines = [
        "git init -q; mkdir known",
        f"if {run} --suggest-expectations > said; then exit 9; fi",
        "git apply said",
        """sed -i 's/^reason = ""/reason = "known"/; s/^link = ""/link = "https:..example.org"/' known/*.toml""",
        run,
    ]
    done = paste(tmp_path, lines, tmp_path / "state")
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = (tmp_path / "known").iterdir()
    assert 'clause = "OI-7"' in file.read_text("utf-8")


@pytest.mark.thorough
def test_the_adapter_in_rust_is_a_program_of_a_crate(tmp_path):
    """Its two files belong into `src/bin/adapter`, as the page on testing says."""
    there("rust")
    if not works("cargo"):
        pytest.skip("NOT TESTED: the adapter in a crate, because there is no cargo that answers")
    write_starter("rust", adapter := tmp_path / "src" / "bin" / "adapter")
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "mine"\nversion = "0.1.0"\nedition = "2021"\n')
    build = ["cargo", "build", "--offline", "--quiet", "--target-dir", tmp_path / "target"]
    subprocess.run(build, cwd=tmp_path, check=True)
    (built,) = (tmp_path / "target" / "debug").glob(adapter.name)
    done = subprocess.run([built, "4.4.0"], input='{"op": "stop"}\n', capture_output=True, text=True, check=True)
    assert done.stdout == '{"ok":null}\n'


def test_every_language_has_its_files_and_its_lines(tmp_path):
    for language, chosen in LANGUAGES.items():
        written = write_starter(language, tmp_path / language)
        assert {path.name for path in written} >= {"README.md", "PROTOCOL.md", SOURCES[language]}
        text = readme(language, tmp_path)
        assert "@" not in text
        assert chosen.build.replace("{dir}", str(tmp_path)) in text
        assert ("Build it" in text) == bool(chosen.build)


def test_the_commands_name_a_directory_that_needs_quotes():
    assert "\"exec:python3 'my index'/adapter.py {release}\"" in readme("python", Path("my index"))


def test_the_readme_names_the_tested_releases():
    text = readme("go", Path("my-index"))
    assert f"conforms to Kafka {RELEASES[0]} to {RELEASES[-1]}" in text
    assert all(dialect_of(release) for release in RELEASES)


def test_the_protocol_page_matches_the_schema():
    """``docs/protocol.md`` is the page of ``init``; it has every request, capability and kind of error."""
    page = protocol_page()
    assert (ROOT / "docs" / "protocol.md").read_text("utf-8") == page, (
        "write it again: conformance init creates PROTOCOL.md"
    )
    known = schema()["$defs"]
    names = {name.removeprefix("log_").removesuffix("_request") for name in known if name.endswith("_request")}
    kinds = {*known["error_kind"]["enum"], *known["log_error_kind"]["enum"], *known["capabilities"]["enum"]}
    assert {name for name in names | kinds if f"`{name}`" not in page} == set()
    assert "@" not in page
    assert not any(line.count("|") == 1 for line in page.splitlines()), "a row of a table continues on the next line"


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(ToolError, match=r"already has README.md"):
        write_starter("python", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_an_unknown_language_is_rejected(tmp_path):
    with pytest.raises(ToolError, match="unknown language 'cobol'; choose from python, go"):
        write_starter("cobol", tmp_path)
