"""Programs with the line protocol: those in ``tests/adapters``, and variants of them that a test writes."""

from __future__ import annotations

import json
import shlex
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema

ADAPTERS = Path(__file__).parents[1] / "adapters"

PROTOCOL = json.loads((files("conformance") / "schemas" / "protocol.json").read_text())
# JSON Schema takes 7.0 for an integer; the protocol does not.
_STRICT = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=_STRICT)

# Names of the checks of ``conformance smoke``.
SCENARIO = "offset: opens, appends, looks up and closes"
START = "answers start with protocol 1"
FILE = "offset: writes its bytes to the file at the given path"
LONGS = "offset: keeps integers of 64 bits"
REFUSAL = "offset: continues after an error"
CORRUPT = "offset: reports a corrupt file, and continues"
EVERY = "offset: answers every operation, or declares it unsupported"
KILLED = "offset: opens its file again after it was killed"
UNKNOWN = "declares an operation that it does not know as unsupported"
STOP = "ends on stop, and says nothing more"
EOF = "ends when its input ends"


def command(name: str) -> list[str]:
    """Return the command that starts an adapter: a program, or ``PROGRAM/NAME``."""
    program, *names = name.split("/")
    return [sys.executable, str(ADAPTERS / f"{program}.py"), *names]


def written(code: str, base: str = "line_log") -> list[str]:
    """Return the command of a program that imports an adapter."""
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ADAPTERS)!r})\nfrom {base} import *\n{code}"]


def variant(change: str) -> list[str]:
    """Return the command of an offset index with a statement that changes ``reply``, the reply to ``op``."""
    return written(
        "from pathlib import Path\nclass Bad(Adapter):\n  kinds = ('offset',)\n"
        "  def reply_to(self, request):\n    reply, op = super().reply_to(request), request['op']\n"
        f"    {change}\n    return reply\nBad().run()",
        "line_index",
    )


def spec(words: list[str]) -> str:
    """Return the value of ``-i`` for a command."""
    return f"exec:{shlex.join(words)}"


def valid(definition: str, document: object) -> bool:
    """Return True if a document matches a definition of the protocol."""
    return Validator({"$ref": f"#/$defs/{definition}", "$defs": PROTOCOL["$defs"]}).is_valid(document)
