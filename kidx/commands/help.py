"""Help of both command lines, in the words of a user: typer's own names types and limits, which nobody types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import typer

Panels = Mapping[str, Mapping[str, Callable[..., Any]]]
"""Functions of commands by name, in the panels of the help."""
_NUMBERS: Final = ("<int", "<float")


def add_commands(app: typer.Typer, panels: Panels) -> None:
    """Add commands in the order of the help."""
    for panel, functions in panels.items():
        for name, function in functions.items():
            app.command(name, rich_help_panel=panel)(function)


def simplify(command: Any) -> None:
    """Remove the types of flags and arguments, and the limits of numbers, from the help of a command and those below.

    Args:
        command: command object of typer.
    """
    for each in getattr(command, "commands", {}).values():
        simplify(each)
    parameters = command.get_params

    def simplified(context: Any) -> list[Any]:
        found: list[Any] = parameters(context)
        for each in found:
            shown = _type(each, context)
            vars(each).update(display_type_rich=lambda ctx, shown=shown: shown, _get_number_range_help_str=lambda: None)  # noqa: ARG005
        return found

    command.get_params = simplified


def _type(parameter: Any, context: Any) -> str | None:
    """Return what follows the name of a parameter in the help; None for nothing."""
    if parameter.metavar is not None:
        return str(parameter.metavar) if parameter.param_type_name == "option" else None
    if parameter.param_type_name == "argument" or getattr(parameter, "is_flag", False):
        return None
    shown = type(parameter).display_type_rich(parameter, context) if hasattr(parameter, "display_type_rich") else None
    return "N" if shown and shown.startswith(_NUMBERS) else shown
