"""The ``man`` command of ``kidx`` and ``conformance``, which writes their help as man pages, one per command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from kidx.commands.line import say
from kidx.errors import ToolError
from kidx.printable import counted

_EMPHASIS = re.compile(r"\*(\w[^*]*)\*")
_TYPE = re.compile(r" <[^<>]*>$")
_EXIT = "0: all conforms or is sound; 1: a difference or a fault was found; 2: the work could not be done."


def man_command(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where man looks for pages, such as ~/.local/share/man.")
    ],
) -> None:
    """Write the man pages of this program to DIR/man1.

    Example: kidx man ~/.local/share/man
    """
    root: Any = context.find_root()
    pages = dict(man_pages(root.command, [root.command.name]))
    section = directory.expanduser() / "man1"
    try:
        section.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (section / f"{name}.1").write_text(text, "utf-8")
    except OSError as error:
        raise ToolError(f"cannot write {section}: {error.strerror}") from error
    say(f"{counted(len(pages), 'page')} in {section}; read them with: MANPATH={directory} man {root.command.name}")


def man_pages(command: Any, names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield name and text of the page of a command, and of each command below it.

    Args:
        command: command object of typer.
        names: the words of the command line that run it.
    """
    context = command.context_class(command, info_name=" ".join(names))
    below = {name: each for name, each in getattr(command, "commands", {}).items() if not each.hidden}
    page = "-".join(names)
    paragraphs = [" ".join(each.split()) for each in (command.help or "").split("\n\n")]
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH "{_roff(page.upper())}" 1 "" "kidx {version("kidx")}" "{names[0]}"',
        *(".SH NAME", f"{_roff(page)} \\- {_roff(paragraphs[0])}"),
        *(".SH SYNOPSIS", f"\\fB{_roff(' '.join(names))}\\fR {_roff(usage)}"),
        *(".SH DESCRIPTION", *(line for each in paragraphs for line in (".PP", _roff(each)))),
        *_list("OPTIONS", [record for each in command.params if (record := _record(each, context))]),
        *_list("COMMANDS", [(name, (each.help or "").split("\n\n")[0]) for name, each in below.items()]),
        *(".SH EXIT STATUS", _roff(_EXIT)),
    ]
    if len(names) > 1:
        lines += [".SH SEE ALSO", f"{_roff('-'.join(names[:-1]))}(1)"]
    yield page, "\n".join(lines) + "\n"
    for name, each in below.items():
        yield from man_pages(each, [*names, name])


def _record(parameter: Any, context: Any) -> tuple[str, str] | None:
    """Return the help of an option or an argument; None for a hidden one."""
    if getattr(parameter, "hidden", False):
        return None
    record: tuple[str, str] | None = parameter.get_help_record(context)
    return record and (_TYPE.sub("", record[0]), record[1])


def _list(title: str, records: list[tuple[str, str]]) -> list[str]:
    lines = [line for name, text in records for line in (".TP", f"\\fB{_roff(name)}\\fR", _roff(text))]
    return [f".SH {title}", *lines] if lines else []


def _roff(text: str) -> str:
    """Return a text escaped for roff, with Markdown's emphasis as italics."""
    line = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    line = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in line)
    line = _EMPHASIS.sub(r"\\fI\1\\fR", line)
    return f"\\&{line}" if line.startswith((".", "'")) else line
