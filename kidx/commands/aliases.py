"""Old names of commands and options: accepted and hidden, with one line on stderr that gives the new name.

An old name works for two minor versions. Arguments are rewritten before they are parsed, so that help, completion and
man pages have the new names only.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from typer.core import TyperGroup

ARGUMENT: Final = ""
"""The new name of an option whose value has become an argument."""


@dataclass(frozen=True)
class Aliases:
    """Old names within a group of commands.

    Attributes:
        until: The version that removes them.
        commands: The new name of each old command.
        options: By the new name of a command, the new name of each old option.
        shared: The new name of each option that is old in every command.
    """

    until: str
    commands: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)

    def renamed(self, words: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the words with new names, and a note for each old name among them.

        Args:
            words: The command, its options and its arguments.
        """
        command, *rest = words
        notes = []
        if command in self.commands:
            notes.append(f"{command} is now {self.commands[command]}")
            command = self.commands[command]
        options = {**self.shared, **self.options.get(command, {})}
        end = rest.index("--") if "--" in rest else len(rest)
        found = [command]
        for word in rest[:end]:
            old, equals, value = word.partition("=")
            if old not in options:
                found.append(word)
                continue
            new = options[old]
            notes.append(f"{old} is now {new or 'an argument'}")
            found += [new + equals + value] if new else [value] if equals else []
        return [*found, *rest[end:]], notes


COMMANDS: Final = Aliases("0.3", {"trends": "compare"}, shared={"--processes": "--jobs"})


def accepting(aliases: Aliases) -> type[TyperGroup]:
    """Return a class of command groups that accepts old names."""

    class Group(TyperGroup):
        """Commands with their old names."""

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            words, notes = aliases.renamed(args)
            if notes and not ctx.resilient_parsing:
                program = ctx.find_root().command.name
                print(f"{program}: {', '.join(notes)}; old names work until {aliases.until}", file=sys.stderr)  # noqa: T201
            return super().resolve_command(ctx, words)

    return Group
