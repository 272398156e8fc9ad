"""Export of a trace as a Python program that needs only ``kidx[jvm]``."""

from __future__ import annotations

import ast
import pprint
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.operations import FILE_OPERATIONS, KINDS
from conformance.runs.reproducers.expected import expected_steps, without_zeros
from kidx.printable import printable

if TYPE_CHECKING:
    from conformance.operations.trace import Trace
    from conformance.runs.reproducers.expected import Step

_HEAD: Final = '''\
"""{title}

Kafka {release}, {machine} machine, {count} steps; what is expected is what the reference, kidx {version}, does.
Needs: pip install 'kidx[jvm]'. Run: python {name}.py [IMPLEMENTATION]
"""
'''
# The rest of a program about an index file, with the expected result of each step.
_INDEX: Final = """
import sys
import tempfile
from pathlib import Path

from conformance.implementations.spec import implementation_factory
from conformance.operations import Operation

IMPLEMENTATION = sys.argv[1] if len(sys.argv) > 1 else {implementation!r}
RELEASE = {release!r}
NO_FILE = None  # the file does not exist after this step
SAME = object()  # any state
STEPS = [
    # operation, arguments, (error, value), state, path and content of the file afterwards
{steps}
]


def show(value):
    return value.hex() if isinstance(value, bytes) else value


def main():
    subject = implementation_factory(IMPLEMENTATION)(RELEASE, None)
    with tempfile.TemporaryDirectory() as directory:
        subject.begin(Path(directory))
        for number, (name, arguments, outcome, state, path, content) in enumerate(STEPS, start=1):
            file = Path(directory, path)
            print(f"{{number:3}}  {{name}}{{arguments}}")
            if outcome is None:  # corruption of the closed file
                file.write_bytes(content) if content is not None else file.unlink(missing_ok=True)
                continue
            seen = subject.perform(Operation(name, arguments))
            actual = file.read_bytes() if file.is_file() else None
            pairs = [("outcome", outcome, tuple(seen.outcome[:2])), ("file", content, actual)]
            if state is not SAME and seen.state is not None:
                pairs.append(("state", state, tuple(seen.state)))
            for what, expected, got in pairs:
                assert got == expected, f"step {{number}}, {{what}}: expected {{show(expected)}}, actual {{show(got)}}"
        subject.end()
    print("FIXED")


if __name__ == "__main__":
    main()
"""
# The rest of any other program, which replays the trace.
_WHOLE: Final = """
import json
import sys
import tempfile
from pathlib import Path

from conformance.runs.replay import replay
from conformance.operations.trace import Trace

IMPLEMENTATION = sys.argv[1] if len(sys.argv) > 1 else {implementation!r}
RELEASE = {release!r}
TRACE = {trace}


def show(number, step, seen, difference):
    print(f"{{number + 1:3}}  {{step}}  ->  {{seen.outcome if seen else ''}}")
    who = "" if difference is None else difference.participant
    assert difference is None, f"expected {{difference.expected}}, actual {{difference.actual}} ({{who}})"


def main():
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "trace.json")
        file.write_text(json.dumps(TRACE), "utf-8")
        trace = Trace.load(file)
    print(replay(trace, [RELEASE], [IMPLEMENTATION], show).verdict)


if __name__ == "__main__":
    main()
"""


def python_reproducer(trace: Trace, release: str, implementation: str, name: str) -> str:
    """Return the program, which prints ``FIXED`` or ends with an AssertionError at the step that differs.

    Raises:
        ToolError: The trace contains an invalid number, such as an infinite one, or cannot be executed.
    """
    head = _HEAD.format(
        title=_in_docstring(trace.title or f"Trace {trace.id}"),
        release=release,
        machine=_in_docstring(trace.machine),
        count=len(trace.operations),
        version=version("kidx"),
        name=_in_docstring(name),
    )
    if (
        trace.machine not in KINDS
        or trace.provenance.get("level") in ("must", "api")
        or trace.provenance.get("edition")
    ):
        # Only a replay checks at the level and the edition of the trace; a program with results requires equality.
        literal = pprint.pformat({**trace.to_json(), "failure": None}, width=110, sort_dicts=False)
        _check_data(literal)
        return head + _WHOLE.format(implementation=implementation, release=release, trace=literal)
    steps = "\n".join(map(_step, expected_steps(trace, release)))
    return head + _INDEX.format(implementation=implementation, release=release, steps=steps)


def _in_docstring(text: str) -> str:
    """Return text for one line of a docstring, which cannot end the docstring and contains no escape."""
    return printable(text).replace("\\", "\\\\").replace('"', "'")


def _check_data(literal: str) -> None:
    """Check that Python reads the literal as the same data.

    Raises:
        ToolError: The literal contains anything other than texts, integers, finite numbers, true, false and null.
    """
    try:
        ast.literal_eval(literal)
    except (ValueError, RecursionError, MemoryError) as error:
        raise ToolError(f"cannot export this trace to Python: {error}") from error


def _step(step: Step) -> str:
    operation, observation, path, content = step
    state = "SAME" if observation.state is None else repr(tuple(observation.state))
    error, value, _ = observation.outcome
    outcome = None if operation.name in FILE_OPERATIONS else (error, _plain(value))
    return f"    ({operation.name!r}, {operation.args!r}, {outcome!r}, {state}, {path!r}, {_content(content)}),"


def _plain(value: Any) -> Any:
    """Return the value with named tuples as plain tuples."""
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


def _content(content: bytes | None) -> str:
    if content is None:
        return "NO_FILE"
    used, zeros = without_zeros(content)
    parts = [f'bytes.fromhex("{used}")'] if used or not zeros else []
    return " + ".join([*parts, *([f"bytes({zeros})"] if zeros else [])])
