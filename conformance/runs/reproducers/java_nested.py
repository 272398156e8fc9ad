"""Java classes of the harness as nested classes of an exported JUnit test, which is then a single file.

They are the classes in ``conformance/implementations/jvm/java``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from conformance.errors import ToolError
from conformance.implementations.jvm.driver import BESIDE_KAFKA, SOURCES

_PACKAGE: Final = re.compile(r"^package ([\w.]+);\n", re.MULTILINE)
_IMPORT: Final = re.compile(r"^import [\w.]+;$", re.MULTILINE)
_IMPORTS: Final = re.compile(r"(?:^import (?!static)[\w.]+;\n)+", re.MULTILINE)
_TOP_LEVEL: Final = re.compile(r"^(?:public )?((?:final |abstract )?class)", re.MULTILINE)
_NOT_CODE: Final = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_WORD: Final = re.compile(r"\b[A-Z]\w+\b")


def source_of(name: str) -> str:
    """Return the source of a class of the harness, or of one that is loaded with Kafka's classes."""
    return next(
        source.read_text("utf-8") for each in (SOURCES, BESIDE_KAFKA) if (source := each / f"{name}.java").is_file()
    )


def template_of(file: str, test: str, names: Sequence[str], public: Iterable[str] = ()) -> tuple[str, str]:
    """Return a template of a test with the imports that classes of the harness need, and the classes as nested ones.

    Args:
        file: The file of the template.
        test: The name of the test class.
        names: The classes of the harness.
        public: Those that classes of other packages use.

    Raises:
        ToolError: Another class in the test has the name of the test class.
    """
    imports, classes = _nested(names, public)
    template = (files(__package__) / "templates" / file).read_text("utf-8")
    if re.search(rf"\b(class|interface|record) {test}\b|\.{test};", "\n".join((template, classes, *imports))):
        raise ToolError(f"cannot write {test}.java: the test needs another class {test}; choose another file name")
    return _with_imports(template, imports), classes


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a template with a value for each ``@name@``."""
    return re.sub(r"@(\w+)@", lambda found: values[found[1]], template)


def _nested(names: Sequence[str], public: Iterable[str]) -> tuple[list[str], str]:
    """Return the imports of classes of the harness, and the classes as nested ones.

    The name of a class that Kafka loads is replaced by the name of its nested class.
    """
    imports: set[str] = set()
    classes = []
    sources = {name: source_of(name) for name in names}
    full = {f'"{_PACKAGE.findall(source)[0]}.{name}"': name for name, source in sources.items()}
    for name, source in sources.items():
        imports.update(_IMPORT.findall(source))
        body = _PACKAGE.sub("", _IMPORT.sub("", source), count=1).strip()
        access = "public" if name in public else "private"
        inner = _TOP_LEVEL.sub(rf"{access} static \1", body, count=1)
        for literal, loaded in full.items():
            inner = inner.replace(literal, f"{loaded}.class.getName()")
        classes.append("\n".join(f"    {line}" if line else "" for line in inner.split("\n")))
    return sorted(imports), "\n\n".join(classes)


def _with_imports(text: str, imports: Iterable[str]) -> str:
    """Return a template with the imports of nested classes among its own, sorted."""
    found = _IMPORTS.search(text)
    lines = sorted({*imports, *(found[0].splitlines() if found else ())})
    return _IMPORTS.sub("".join(f"{line}\n" for line in lines), text, count=1)


def needed(*names: str) -> list[str]:
    """Return classes of the harness and all others that their code names, in alphabetical order."""
    found, left = set[str](), list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += _WORD.findall(_NOT_CODE.sub("", source_of(name)))
            left = [each for each in left if each in _sources()]
    return sorted(found)


@cache
def _sources() -> frozenset[str]:
    return frozenset(source.name.removesuffix(".java") for source in SOURCES.iterdir())
