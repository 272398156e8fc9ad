"""``conformance init``: each language's adapter builds, is sane, and conforms in what it has."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from in_ci import all_but

from conformance.errors import ToolError
from conformance.experiments.smoke.checks import smoke
from conformance.experiments.starter import LANGUAGES, readme, write_starter
from conformance.implementations.spec import parse_spec
from conformance.machines import MACHINES

if TYPE_CHECKING:
    from conformance.lockstep.divergence import Divergence

EXAMPLES = settings.default.max_examples * 30 // 100
RELEASE = "4.4.0"


def works(program: str) -> bool:
    """Whether it is there and answers: rustup's rustc needs a home with a toolchain."""
    asked = [program, "version" if program == "go" else "--version"]
    return shutil.which(program) is not None and subprocess.run(asked, capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module", params=all_but(("python",), LANGUAGES))
def adapter(request, tmp_path_factory) -> str:
    """The adapter of a language as a specification, built; skipped loudly where the language is missing."""
    language = LANGUAGES[request.param]
    if not works(language.needs):
        reason = f"NOT TESTED: the adapter in {request.param}, because there is no {language.needs} that answers"
        if request.param in os.environ.get("KIDX_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("starter") / "adapter"
    write_starter(request.param, directory)
    text = (directory / "README.md").read_text("utf-8")
    build, check, _ = (block.split("\n```")[0] for block in text.split("```sh\n")[1:])
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
    subprocess.run(["sh", "-c", build], env=environment, check=True, timeout=200)
    return check.partition('"')[2].rstrip('"')


def test_it_is_sane(adapter):
    report = smoke(adapter)
    assert report.sane, "\n".join(report.lines())
    failed = [check.name for check in report.checks if check.verdict != "passed"]
    assert failed == [
        "offset: says corrupt of a damaged file, and goes on",  # it has no sanity check
        "time: says corrupt of a damaged file, and goes on",
        "log: has its files where it was told, and its batches in them",  # nor Kafka's segments
    ]


@pytest.mark.parametrize("machine", ["offset", "time", "log"])
def test_it_conforms(adapter, machine, tmp_path):
    """No difference but in what no implementation has to copy."""
    kind = MACHINES[machine]
    assert parse_spec(adapter).form == "exec"
    subject = kind.subject(adapter, RELEASE)

    def is_accident(divergence: Divergence) -> bool:
        return divergence.observed_only and not divergence.is_failure

    lockstep = kind.new_lockstep([subject], tmp_path, excuse=is_accident)
    run_state_machine_as_test(
        seed(1)(kind.bind(lockstep)),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=20,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert lockstep.statistics.steps > 5 * EXAMPLES
    assert not subject.failures_between_examples
    subject.close()


def test_every_language_has_its_files_and_its_lines(tmp_path):
    for language, chosen in LANGUAGES.items():
        written = write_starter(language, tmp_path / language)
        assert len(written) >= 2
        text = readme(language, tmp_path)
        assert "@" not in text
        assert chosen.build in text


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(ToolError, match=r"has README.md already"):
        write_starter("python", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_a_language_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ToolError, match="there is no adapter in 'cobol'; there are python, go"):
        write_starter("cobol", tmp_path)
