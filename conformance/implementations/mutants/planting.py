"""Defects in one fragment of a function of kidx, which is changed in a copy of the function.

Fragments are compared as syntax trees, so the layout and the comments of the source do not matter.
Some defects need changes of an index file that bypass the index.
"""

from __future__ import annotations

import ast
import inspect
from itertools import chain
from textwrap import dedent
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

Node = TypeVar("Node", bound=ast.AST)
_NAME: Final = "<planted>"


class FragmentError(Exception):
    """Fragment that does not occur exactly once in its function."""


def planted(holder: Any, path: Sequence[str], before: str, after: str) -> Any:
    """Return a class or a function with a changed fragment in one of its functions.

    Args:
        holder: class or function, which is not changed itself.
        path: names that lead from the holder to the function: attributes of classes, and global names of functions.
        before: expression or statements of the function; empty to insert at its beginning.
        after: replacement, which may use the same names.

    Raises:
        FragmentError: the function does not exist, or it does not have the fragment exactly once.
    """
    if not path:
        return _changed(holder, before, after)
    name, *rest = path
    try:
        part = inspect.getattr_static(holder, name) if isinstance(holder, type) else holder.__globals__[name]
    except (AttributeError, KeyError):
        raise FragmentError(f"{holder.__qualname__} has no {name}") from None
    if isinstance(part, staticmethod):
        part = staticmethod(planted(part.__func__, rest, before, after))
    elif isinstance(part, property):
        part = part.getter(planted(part.fget, rest, before, after))
    else:
        part = planted(part, rest, before, after)
    if isinstance(holder, type):
        return type(holder)(holder.__name__, (holder,), {name: part})
    return _function(holder, holder.__code__, {**holder.__globals__, name: part})


def _changed(function: FunctionType, before: str, after: str) -> FunctionType:
    """Return a copy of a function with ``after`` instead of the fragment ``before``."""
    lines, first = inspect.getsourcelines(function)
    tree = ast.increment_lineno(ast.parse(dedent("".join(lines))), first - 1)
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    old, new = ast.parse(before).body, ast.parse(after).body
    if not old:
        definition.body[:0] = _located(new, definition)
    elif (occurrences := _substitute(definition, old, new)) != 1:
        raise FragmentError(f"{function.__qualname__} has {before!r} {occurrences} times, not once")
    return _function(function, _compiled(definition, function), function.__globals__)


def _compiled(definition: ast.FunctionDef, function: FunctionType) -> CodeType:
    """Return the code of a definition, without executing it."""
    # A method may call a global function with the same name, which its definition must not hide.
    definition.name = _NAME
    # Variables of enclosing scopes, such as the class that super() needs, are parameters of a function around it.
    around = ast.parse(f"def around({', '.join(function.__code__.co_freevars)}): pass")
    around.body[0].body = [definition]  # type: ignore[attr-defined]
    code = next(_codes(compile(around, function.__code__.co_filename, "exec")))
    return code.replace(co_name=function.__name__, co_qualname=function.__qualname__)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects with the name :data:`_NAME` inside a code object."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == _NAME:
                yield constant
            yield from _codes(constant)


def _substitute(tree: ast.AST, before: list[ast.stmt], after: list[ast.stmt]) -> int:
    """Replace a fragment, and return the number of its occurrences."""
    old, new = _nodes(before, after), _nodes(after, before)
    places = [
        (node, field, value, at)
        for node in ast.walk(tree)
        for field, value in ast.iter_fields(node)
        for items in [value if isinstance(value, list) else [value]]
        for at in range(len(items) - len(old) + 1)
        if all(map(_is_equal, items[at:], old))
    ]
    for node, field, value, at in places:
        if isinstance(value, list):
            value[at : at + len(old)] = _located(new, value[at])
        else:
            setattr(node, field, *_located(new, value))
    return len(places)


def _nodes(fragment: list[ast.stmt], other: list[ast.stmt]) -> Sequence[ast.AST]:
    """Return the statements of a fragment, or its expression if both fragments are expressions."""
    expressions = [each.value for each in (*fragment, *other) if isinstance(each, ast.Expr)]
    return expressions[:1] if len(expressions) == len(fragment) + len(other) == 2 else fragment


def _located(nodes: Sequence[Node], place: ast.AST) -> Sequence[Node]:
    """Return the nodes, each with the line and column of ``place``."""
    for part in chain.from_iterable(map(ast.walk, nodes)):
        ast.copy_location(part, place)
    return nodes


def _is_equal(node: Any, other: ast.AST) -> bool:
    return type(node) is type(other) and ast.dump(node) == ast.dump(other)


def _function(function: FunctionType, code: CodeType, variables: dict[str, Any]) -> FunctionType:
    """Return a function with other code and other global variables, but the same defaults and enclosing scopes."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, variables, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


class HasPath(Protocol):
    """Index with the path of its file."""

    @property
    def path(self) -> Path:
        """Path of the file."""


def overwrite_bytes(index: HasPath, at: int, change: Callable[[bytes], bytes]) -> None:
    """Replace four bytes of the index's file, from position ``at`` on, by the result of ``change``."""
    with index.path.open("r+b") as file:
        file.seek(at)
        data = file.read(4)
        file.seek(at)
        file.write(change(data))
