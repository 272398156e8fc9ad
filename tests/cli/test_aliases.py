"""Old names of commands and options: each works, is hidden, and costs one line on stderr."""

import json

import pytest
from typer.main import get_command

import conformance.cli
import kidx.cli
from conformance.commands import aliases
from kidx.commands.aliases import ARGUMENT
from kidx.commands.aliases import COMMANDS as KIDX

GROUPS = {
    ("conformance",): (get_command(conformance.cli.app), aliases.COMMANDS),
    ("conformance", "kafka"): (get_command(conformance.cli.app).commands["kafka"], aliases.KAFKA),
    ("kidx",): (get_command(kidx.cli.app), KIDX),
}
COMMANDS = [(group, old, new) for group, (_, names) in GROUPS.items() for old, new in names.commands.items()]
OPTIONS = [
    (group, command, old, new)
    for group, (_, names) in GROUPS.items()
    for command, options in names.options.items()
    for old, new in options.items()
]


def options_of(command):
    return {name for each in command.params for name in each.opts}


@pytest.mark.parametrize(("group", "old", "new"), COMMANDS, ids=lambda each: each if isinstance(each, str) else "")
def test_old_command_runs_the_new_one(group, old, new, in_process, tmp_path):
    was, now = (in_process(*group, name, "--help", work=tmp_path) for name in (old, new))
    assert (was.returncode, was.stdout) == (0, now.stdout)
    assert was.stderr == f"{group[0]}: {old} is now {new}; old names work until 0.3\n"
    assert now.stderr == ""
    assert old not in GROUPS[group][0].commands


@pytest.mark.parametrize(
    ("group", "command", "old", "new"), OPTIONS, ids=lambda each: each if isinstance(each, str) else ""
)
def test_old_option_becomes_the_new_one(group, command, old, new):
    it = GROUPS[group][0].commands[command]
    assert old not in options_of(it)
    assert new == ARGUMENT or new in options_of(it)
    words, notes = GROUPS[group][1].renamed([command, "before", old, "value", f"{old}=value", "--", old])
    renamed = ["value", "value"] if new == ARGUMENT else [new, "value", f"{new}=value"]
    assert words == [command, "before", *renamed, "--", old]
    assert len(notes) == 2


@pytest.mark.parametrize("group", GROUPS, ids=" ".join)
def test_shared_option_exists_under_its_new_name_only(group):
    command, names = GROUPS[group]
    known = set().union(*(options_of(each) for each in command.commands.values()))
    assert set(names.shared.values()) <= known
    assert not set(names.shared) & known


def test_old_command_with_old_option_gives_the_same_result(in_process, tmp_path):
    was = in_process("conformance", "list", "--clause", "OI-7", "--json", work=tmp_path)
    now = in_process("conformance", "clauses", "OI-7", "--json", work=tmp_path)
    assert was.stdout == now.stdout
    assert [each["id"] for each in json.loads(was.stdout)] == ["OI-7"]
    assert was.stderr == ("conformance: list is now clauses, --clause is now an argument; old names work until 0.3\n")


@pytest.mark.parametrize("option", ["--without", "--skip-feature"])
def test_an_error_names_the_new_option(option, in_process, tmp_path):
    done = in_process("conformance", "run", "-i", "mutant:always-resizes", option, "transactions", work=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "conformance: --skip-feature requires -i wire:HOST:PORT"
