"""Help and manual pages, and imports that only one command needs, which no other command loads."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import typer

from conformance.clauses import LEVELS
from conformance.clauses.machines import FILE_MACHINES
from conformance.cli import app
from conformance.cli import app as conformance
from conformance.implementations.wire.broker import NEEDED
from conformance.kafka.releases import newest
from conformance.runs.profiles import PROFILES
from kidx.cli import app as kidx

# -- Output of ``--help``: each option with its default and its choices, in groups ---------------------------------


ROOT = Path(__file__).parents[2]
COMMANDS = typer.main.get_command(app).commands


def options(command):
    return {name: each for each in COMMANDS[command].params for name in each.opts}


def help_of(command, option):
    found = options(command)[option]
    context = COMMANDS[command].context_class(COMMANDS[command], info_name=command)
    return " ".join(found.get_help_record(context)[1].split())


def test_run_shows_defaults_and_choices():
    assert f"[default: ({newest()})]" in help_of("run", "--kafka")
    assert "[default: (jvm)]" in help_of("run", "-i")
    assert all(name in help_of("run", "--machine") for name in (*FILE_MACHINES, "broker", "wire"))
    profiles = help_of("run", "--profile")
    assert all(f"{each.name} {each.examples:,} of up to {each.steps}" in profiles for each in PROFILES.values())
    assert "jvm, broker" in help_of("run", "--require")
    assert all(name in help_of("run", "--skip-feature") for name in NEEDED)
    assert "(exec:) has 10 s for each reply" in help_of("run", "--step-timeout")


def test_the_options_of_run_stand_in_groups():
    panels = {name: getattr(each, "rich_help_panel", None) for name, each in options("run").items() if name != "--help"}
    assert len(set(panels.values())) >= 5
    assert None not in panels.values()
    assert panels["--bootstrap-server"] == panels["--kill-cycles"] == panels["--broker"]
    assert panels["--skip-feature"] == panels["--command-config"]


@pytest.mark.parametrize("command", ["fuzz", "exhaustive"])
def test_commands_on_files_have_no_server_option(command):
    said = help_of(command, "-i")
    assert "exec:COMMAND" in said
    assert not any(word in said for word in ("wire:", "broker", "subject:"))


def every_command():
    """Yield the words and the object of each command of both programs."""
    from kidx.cli import app as kidx

    waiting = [(["conformance"], typer.main.get_command(app)), (["kidx"], typer.main.get_command(kidx))]
    while waiting:
        words, command = waiting.pop()
        below = getattr(command, "commands", {})
        waiting += [([*words, name], each) for name, each in below.items()]
        if not below:
            yield words, command


def examples():
    """Return the examples of the help, each with the command that shows it."""
    found = [
        (words, command, shlex.split(line))
        for words, command in every_command()
        for line in re.findall(r"Example: `?([^`]*)`?$", command.help)
    ]
    assert {"replay", "run"} <= {words[1] for words, _, _ in found}
    return found


def test_each_command_has_an_example_of_itself_with_options_that_exist():
    shown = {" ".join(words) for words, _, _ in examples()}
    assert [" ".join(words) for words, _ in every_command() if " ".join(words) not in shown] == []
    for words, command, example in examples():
        assert example[: len(words)] == words
        known = {name for each in command.params for name in each.opts}
        assert {each for each in example[len(words) :] if each[:1] == "-"} <= known
        arguments = list(example[len(words) :])
        assert command.make_context(words[-1], arguments, resilient_parsing=True) is not None


STARTED = (
    Path("/var/lib/kafka/data/orders-0"),
    Path("/data/orders-0"),
    Path("/broker-1/orders-0"),
    Path("/broker-2/orders-0"),
)


@pytest.mark.parametrize(
    "example",
    [each for words, _, each in examples() if words[0] == "kidx" and words[1] != "compare"],
    ids=lambda each: each[1],
)
def test_an_example_of_kidx_works(example, in_process, tmp_path, monkeypatch):
    partition = ROOT / "tests" / "golden" / "3.9.2" / "create-time-0"
    shutil.copytree(partition, tmp_path / "data" / "orders-0")
    places = {
        **dict.fromkeys(map(str, STARTED), "data/orders-0"),
        "/var/lib/kafka/data": "data",
        "/tmp/rebuilt": "rebuilt",  # noqa: S108
    }
    words = [re.sub("|".join(places), lambda found: places[found[0]], word) for word in example]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    done = in_process(*words, work=tmp_path, environment={"HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("clauses", "TI", "--kafka"),
        pytest.param(("replay",), marks=[pytest.mark.jvm, pytest.mark.thorough]),
    ],
    ids=lambda words: words[0],
)
def test_an_example_of_conformance_works(words, in_process, tmp_path):
    (example,) = [each for _, _, each in examples() if each[1 : 1 + len(words)] == [*words]]
    done = in_process(*example, work=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_help_names_no_types_and_no_limits(in_process, tmp_path):
    for words in (("kidx", "verify"), ("kidx", "lookup"), ("conformance", "run"), ("conformance",)):
        text = in_process(*words, "--help", work=tmp_path, environment={"COLUMNS": "160"}).stdout
        assert re.findall(r"<(?:bool|int|float|str|list|Path)\b|<=x", text) == []


def test_the_commands_stand_in_panels_by_purpose(in_process, tmp_path):
    for name, panels in {
        "kidx": ["Find out", "Repair", "More"],
        "conformance": ["Test yours", "Kafka's releases", "Evidence", "Pages"],
    }.items():
        text = in_process(name, "--help", work=tmp_path).stdout
        assert re.findall(r"^╭─ (.+?) ─", text, re.MULTILINE) == ["Options", *panels]


def test_ambiguous_options_are_explained():
    assert "source, evidence, guarantee" in help_of("clauses", "--verbose")
    assert all(level.lower() in help_of("clauses", "--level") for level in LEVELS)
    assert "jvm" in help_of("smoke", "-i")
    assert "including the first one" in help_of("smoke", "--deadline")
    assert "after a hang" in help_of("mutate", "--max-shrink-time")
    assert "the trace's release" in help_of("replay", "--kafka")
    assert "Example: conformance man " in COMMANDS["man"].help
    assert "kidx man" not in COMMANDS["man"].help


def test_the_level_filters_the_clauses(in_process, tmp_path):
    levels = {
        level: in_process("conformance", "clauses", "TI", "--level", level.lower(), work=tmp_path).stdout
        for level in LEVELS
    }
    everything = in_process("conformance", "clauses", "TI", work=tmp_path).stdout
    assert " OBSERVED " not in levels["MUST"]
    assert " MUST " not in levels["OBSERVED"]
    heading, *lines = everything.splitlines()
    assert heading == "TimeIndex"
    assert sorted(line for text in levels.values() for line in text.splitlines()[1:]) == sorted(lines)
    wrong = in_process("conformance", "clauses", "--level", "should", work=tmp_path)
    names = ", ".join(level.lower() for level in LEVELS)
    assert (wrong.returncode, wrong.stderr) == (2, f"conformance: unknown level 'should'; choose from {names}\n")
    none = in_process("conformance", "clauses", "TI-20a", "--level", "must", work=tmp_path)
    assert none.stderr == "conformance: no clause matches 'TI-20a' and has level MUST\n"


def test_the_deadline_of_smoke_holds_for_its_first_reply(in_process, tmp_path):
    done = in_process("conformance", "smoke", "-i", "exec:sleep 30", "--deadline", "0.3", work=tmp_path)
    assert done.returncode == 2
    assert "gave no reply within 0.3 s" in done.stdout
    assert done.stderr == "conformance: exec:sleep 30 was started and did not reply: see the first check\n"


# -- Man pages of both command lines: one per command, with all of its help, and without misread roff --------------


@pytest.mark.parametrize("name", ["kidx", "conformance"])
def test_each_command_has_a_page(name, in_process, tmp_path):
    done = in_process(name, "man", tmp_path, work=tmp_path)
    assert done.returncode == 0, done.stderr
    pages = {path.stem: path.read_text("ascii") for path in (tmp_path / "man1").iterdir()}
    root = typer.main.get_command({"kidx": kidx, "conformance": conformance}[name])
    wanted = {f"{name}-{each}": command for each, command in root.commands.items() if not command.hidden}
    assert {page for page in pages if page.count("-") == 1 or page in wanted} == set(wanted)
    for page, command in wanted.items():
        assert f".SH NAME\n{page.replace('-', chr(92) + '-')} " in pages[page]
        for option in (each for each in command.params if each.param_type_name == "option" and not each.hidden):
            assert option.opts[0].replace("-", "\\-") in pages[page]
    lines = [line for text in pages.values() for line in text.splitlines()]
    assert {line.split(" ")[0] for line in lines if line.startswith((".", "'"))} == {".TH", ".SH", ".PP", ".TP"}


def test_roff_formats_a_page_without_a_warning(in_process, tmp_path):
    if shutil.which("groff") is None:
        pytest.skip("no groff here")
    in_process("kidx", "man", tmp_path, work=tmp_path)
    page = tmp_path / "man1" / "kidx-verify.1"
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "index.interval.bytes" in done.stdout


def test_an_unwritable_directory_is_one_line(in_process, tmp_path):
    (tmp_path / "file").write_text("")
    done = in_process("kidx", "man", tmp_path / "file", work=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cannot write " in done.stderr


# -- Imports that only one command needs ----------------------------------------------------------------------------

HEAVY = ("numpy", "numba", "pyarrow", "pyspark", "jpype", "testcontainers", "kafka")


@pytest.mark.thorough
@pytest.mark.parametrize("module", ["kidx.cli", "conformance.cli"])
def test_help_loads_no_heavy_module(module):
    said = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_index_is_opened_without_the_log_and_all_exports_exist():
    said = "import sys, kidx; kidx.OffsetIndex; print([name for name in sys.modules if name.startswith('kidx.log')])"
    said += "; print([name for name in kidx.__all__ if not hasattr(kidx, name) or name not in dir(kidx)])"
    said += "; print(hasattr(kidx, 'Nothing'))"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\nFalse\n"
