"""Is an adapter sane? Asked before an implementation is blamed (``conformance smoke -i IMPL``).

A check never judges whether an answer is *right* by Kafka's rules: that is what a run is for. It judges whether answers
come, in time, in the protocol's shape, about the file that was named, and whether numbers survive the way there and
back. An adapter that passes here and diverges in a run is a wrong implementation; one that fails here is a broken
adapter, and what a run says of it means nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from conformance.experiments.smoke.session import ObjectTalk, ProcessTalk, Talk
from conformance.implementations.probe import SIZE, TRY_OUT
from conformance.implementations.process import DEADLINE, START_DEADLINE, STOP
from conformance.implementations.process.line_process import PeerError
from conformance.implementations.replies import about_from
from conformance.implementations.spec import implementation_factory, parse_spec
from conformance.operations import KINDS, Outcome, State
from kidx.dialect import NEWEST
from kidx.java_numbers import LONG_MAX

if TYPE_CHECKING:
    from conformance.implementations.process.line_process import Reason
    from conformance.operations import Json

Verdict = Literal["passed", "failed", "not-run"]

_HINTS: Final[dict[Reason, str]] = {
    "late": "Flush standard output after every reply, and answer as soon as a line has been read: a program that waits"
    " for a full buffer, or for the end of its input, never answers.",
    "deaf": "Read standard input line by line until it ends.",
    "ended": "The program ended where it should have answered; its standard error and exit status say why.",
    "noisy": "Write exactly one line for every request; logs and prompts belong on standard error.",
    "malformed": "Standard output is for replies only, one line for each request; logs belong on standard error. The"
    " shapes are in the package's schemas/protocol.json, in the definitions that end in _reply. A reply that belongs to"
    " another operation may be a second one to the request before.",
}
_BUG: Final = "The Python code raised something that is no refusal, or returned something of another shape."
_POSITION: Final = 120


class Check(NamedTuple):
    """One thing that was looked at.

    Attributes:
        name: what must hold, as a sentence without a subject.
        verdict: ``"not-run"`` if something before it failed, or if there is nothing to judge by.
        sent: the last request, and ``came``: what came back; empty if it passed.
        hint: what to look at; empty if it passed.
    """

    name: str
    verdict: Verdict
    sent: str = ""
    came: str = ""
    hint: str = ""


@dataclass
class SmokeReport:
    """What came of all checks.

    Attributes:
        implementation: the IMPL.
        release: the release it was told to be.
        about: what it says of itself.
        checks: in the order in which they were made.
        started: whether there was anybody to talk to.
    """

    implementation: str
    release: str
    about: str = ""
    checks: list[Check] = field(default_factory=list)
    started: bool = True

    @property
    def sane(self) -> bool:
        """Whether nothing failed."""
        return self.started and not any(check.verdict == "failed" for check in self.checks)

    @property
    def exit_code(self) -> int:
        """0 sane, 1 not sane, 2 could not be started."""
        if not self.started:
            return 2
        return 0 if self.sane else 1

    def to_json(self) -> Json:
        """The document of ``--json``."""
        return {
            "implementation": self.implementation,
            "release": self.release,
            "about": self.about,
            "verdict": "sane" if self.sane else "broken" if self.started else "not-started",
            "checks": [check._asdict() for check in self.checks],
        }

    def lines(self) -> Iterator[str]:
        """The report as text."""
        for check in self.checks:
            yield f"{_MARKS[check.verdict]} {check.name}"
            for label in ("sent", "came", "hint"):
                if text := getattr(check, label):
                    yield from _indented(f"{label}: ", text)


_MARKS: Final[dict[Verdict, str]] = {"passed": "ok     ", "failed": "FAILED ", "not-run": "not run"}


def _indented(label: str, text: str) -> Iterator[str]:
    first, *more = text.splitlines() or [""]
    yield f"          {label}{first}"
    for line in more:
        yield " " * (10 + len(label)) + line


def smoke(
    text: str, *, release: str = NEWEST, deadline: float = DEADLINE, start_deadline: float = START_DEADLINE
) -> SmokeReport:
    """Looks at an adapter.

    Args:
        text: the IMPL.
        release: what ``{release}`` stands for.
        deadline: seconds for each reply.
        start_deadline: seconds for the reply to ``start``.

    Returns:
        A report; one whose exit code is 2 if the program runs but never says anything.

    Raises:
        ToolError: there is nobody to look at: a bad IMPL, no such program, a module that cannot be imported, no Java.
    """
    spec = parse_spec(text)
    report = SmokeReport(text, release)
    with tempfile.TemporaryDirectory(prefix="conformance-smoke-") as directory:
        if spec.form == "exec":
            command = [word.replace("{release}", release) for word in spec.words]
            talk = ProcessTalk(command, deadline, start_deadline)
            try:
                _Smoke(report, Path(directory)).of_process(talk)
            finally:
                talk.kill()
        else:
            _Smoke(report, Path(directory)).of_object(ObjectTalk(implementation_factory(text)(release, None)))
    return report


class _Failed(Exception):  # noqa: N818 -- a verdict, caught in one place
    """The check fails; the message is the hint."""


class _NotJudged(Exception):  # noqa: N818 -- as above
    """There is nothing to judge by; the message says why."""


class _NoSuchKind(_NotJudged):
    """An index of this kind cannot be opened because there is none."""


class _Kind(NamedTuple):
    """How to put a number into an index of one kind, and to get it back."""

    suffix: str
    append: Callable[[int], tuple[Any, ...]]
    read: Callable[[int], tuple[Any, ...]]
    base_of: Callable[[int], int]
    provocations: tuple[tuple[Any, ...], ...]


_KINDS: Final = {
    "offset": _Kind(
        ".index",
        lambda key: ("append", key, _POSITION),
        lambda key: ("lookup", key),
        lambda key: max(0, key - 100),
        (("append", 0, 0), ("entry", 1_000_000)),
    ),
    "time": _Kind(
        ".timeindex",
        lambda key: ("maybe_append", key, 7, False),
        lambda key: ("lookup", key),
        lambda _: 0,
        (("maybe_append", 1, 0, False), ("entry", 1_000_000)),
    ),
    "transaction": _Kind(
        ".txnindex",
        lambda key: ("append_aborted", 1, 0, key, key),
        lambda _: ("collect_aborted", 0, LONG_MAX),
        lambda _: 0,
        (("append_aborted", 1, 0, 0, 0), ("open", "transaction", "missing/0.txnindex", 0, -1, True)),
    ),
}


class _Smoke:
    """The checks, each in a directory of its own."""

    def __init__(self, report: SmokeReport, directory: Path) -> None:
        self.report = report
        self.directory = directory
        self._number = 0

    def of_process(self, talk: ProcessTalk) -> None:
        """All checks of a program behind the line protocol."""
        if not self._introduction(talk):
            return
        usable = [kind for kind in talk.kinds if self._of_kind(talk, kind, _OF_PROCESSES)]
        unknown = "declares an operation that it does not know as unsupported"
        if usable:
            self._check(talk, unknown, partial(_unknown, usable[0]))
        else:
            self.report.checks.append(Check(unknown, "not-run", hint=_BEFORE))
        self._check(talk, "ends on stop, and says nothing more", partial(_ends, STOP))
        self._check(talk, "ends when its input ends", partial(_ends, None))

    def of_object(self, talk: ObjectTalk) -> None:
        """The checks that make sense without a process."""
        self.report.about = talk.implementation.name
        for kind in talk.kinds:
            self._of_kind(talk, kind, ())
        if not any(check.verdict == "passed" for check in self.report.checks):
            hint = "The factory refused or did not have any of: " + ", ".join(KINDS) + "."
            self.report.checks.append(Check("has at least one kind of index", "failed", hint=hint))

    def _introduction(self, talk: ProcessTalk) -> bool:
        name = "answers start with protocol 1"
        try:
            line = talk.start()
        except PeerError as error:
            self.report.started = error.reason in ("noisy", "malformed")
            self.report.checks.append(Check(name, "failed", talk.sent, str(error), _HINTS[error.reason]))
            return False

        def introduces_itself(*_: object) -> None:
            with talk.well_formed():
                about = about_from(json.loads(line))
            self.report.about = f"{about.name} {about.version} ({about.language})"
            talk.kinds = tuple(dict.fromkeys(about.kinds))

        return self._check(talk, name, introduces_itself) == "passed"

    def _of_kind(self, talk: Talk, kind: str, more: tuple[tuple[str, _KindCheck], ...]) -> bool:
        """The checks of one kind of index; False if not even the first one passes, so that the rest makes no sense."""
        (first, life), *others = *_OF_ALL, *more
        try:
            verdict = self._check(talk, f"{kind}: {first}", partial(life, kind))
        except _NoSuchKind as reason:
            self.report.checks.append(Check(f"{kind}: {first}", "not-run", hint=str(reason)))
            return False
        if verdict == "failed":
            self.report.checks += [Check(f"{kind}: {name}", "not-run", hint=_BEFORE) for name, _ in others]
            return False
        for name, function in others:
            self._check(talk, f"{kind}: {name}", partial(function, kind))
        return True

    def _check(self, talk: Talk, name: str, function: Callable[[Talk, Path], None]) -> Verdict:
        self._number += 1
        directory = self.directory / str(self._number)
        directory.mkdir()
        verdict: Verdict = "failed"
        came = hint = ""
        try:
            talk.begin(directory)
            function(talk, directory)
            verdict = "passed"
        except _Failed as failure:
            came, hint = talk.came, str(failure)
        except _NoSuchKind:
            raise
        except _NotJudged as reason:
            verdict, hint = "not-run", str(reason)
        except PeerError as error:
            # A reply of the wrong shape is worth seeing; otherwise the message says what there is to say.
            came = f"{talk.came}\n{error}" if talk.came else str(error)
            hint = _HINTS[error.reason] if isinstance(talk, ProcessTalk) else _BUG
        self.report.checks.append(Check(name, verdict, talk.sent if verdict == "failed" else "", came, hint))
        return verdict


def _open(talk: Talk, kind: str, name: str = "0", base_offset: int = 0) -> str:
    """Opens a new index; the name of its file."""
    name += _KINDS[kind].suffix
    outcome = talk.ask("open", kind, name, base_offset, SIZE, True)
    if outcome.error == "unsupported":
        raise _NoSuchKind(f"It has no index of kind {kind}.")
    _expect_ok(outcome, f"A new index of kind {kind}")
    return name


def _expect_ok(outcome: Outcome, what: str) -> None:
    if outcome.error == "unsupported":
        raise _NotJudged(f"{what} is unsupported.")
    if outcome.error is not None:
        raise _Failed(f"{what} was refused where nothing is wrong: {outcome}. Are the arguments read by their names?")


def _life(kind: str, talk: Talk, _: Path) -> None:
    _open(talk, kind)
    _expect_ok(talk.ask(*_KINDS[kind].append(7)), "The first append")
    _expect_ok(talk.ask(*_KINDS[kind].read(7)), "Looking up what was appended")
    _expect_state(talk)
    _expect_ok(talk.ask("close"), "Closing")


def _expect_state(talk: Talk) -> None:
    if isinstance(told := talk.state(), Outcome):
        raise _Failed(f"An index that is open tells its state, or declares state as unsupported; not {told}.")


def _file_where_told(kind: str, talk: Talk, directory: Path) -> None:
    name = _open(talk, kind)
    _expect_ok(talk.ask(*_KINDS[kind].append(7)), "The first append")
    found = sorted(entry.name for entry in directory.iterdir())
    if found != [name]:
        raise _Failed(
            f"After an append there should be the file {directory / name} and no other, but there is"
            f" {', '.join(found) or 'nothing'}: use the path of open as it is, and keep no files beside it."
        )
    if not any((directory / name).read_bytes()):
        raise _Failed(
            f"The entry was acknowledged, but {name} has {(directory / name).stat().st_size} bytes and all are zero:"
            " the harness reads the file after every reply, so write through to the operating system before replying."
        )


def _long_numbers(kind: str, talk: Talk, _: Path) -> None:
    if not _comes_back(talk, kind, 7):
        raise _NotJudged("Not even a small number comes back: a wrong implementation, which a run will show.")
    talk.ask("close")
    if not _comes_back(talk, kind, LONG_MAX):
        raise _Failed(
            f"7 comes back, {LONG_MAX} does not: read and write JSON numbers as integers of 64 bits, not as doubles."
        )


def _comes_back(talk: Talk, kind: str, key: int) -> bool:
    _open(talk, kind, str(key), _KINDS[kind].base_of(key))
    _expect_ok(talk.ask(*_KINDS[kind].append(key)), f"Appending {key}")
    outcome = talk.ask(*_KINDS[kind].read(key))
    found = list(_numbers(outcome.value))
    if isinstance(state := talk.state(), State):
        found += state.last
    return key in found


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, tuple):
        for item in value:
            yield from _numbers(item)
    elif value is not None:
        yield value


def _goes_on(kind: str, talk: Talk, _: Path) -> None:
    _open(talk, kind)
    _expect_ok(talk.ask(*_KINDS[kind].append(7)), "The first append")
    refusals = [talk.ask(*provocation) for provocation in _KINDS[kind].provocations]
    if all(outcome.error in (None, "unsupported") for outcome in refusals):
        raise _NotJudged("It refused nothing: a wrong implementation, which a run will show.")
    _open(talk, kind, "1")
    _expect_ok(talk.ask(*_KINDS[kind].append(7)), "An append to a new index after a refusal")
    _expect_state(talk)


def _every_operation(kind: str, talk: Talk, _: Path) -> None:
    _open(talk, kind)
    for operation in TRY_OUT[kind]:
        talk.ask(operation.name, *operation.args)
    talk.ask("close")
    talk.ask("delete")


def _reopen_after_kill(kind: str, talk: Talk, _: Path) -> None:
    assert isinstance(talk, ProcessTalk)
    name = _open(talk, kind)
    _expect_ok(talk.ask(*_KINDS[kind].append(7)), "The first append")
    talk.kill()
    _expect_ok(talk.ask("open", kind, name, 0, SIZE, True), "Opening the file that a killed process left behind")
    _expect_state(talk)


def _unknown(kind: str, talk: Talk, _: Path) -> None:
    _open(talk, kind)
    outcome = talk.ask("no_such_operation")
    if outcome.error != "unsupported":
        raise _Failed('An operation that the implementation does not have is answered {"unsupported": true}.')


def _ends(request: Json | None, talk: Talk, _: Path) -> None:
    assert isinstance(talk, ProcessTalk)
    status, written = talk.finish(request)
    if status is None:
        raise _Failed(f"It had to be killed after {talk.deadline:g} s: end when {_END[request is None]}.")
    if status != 0:
        raise _Failed("It should end with exit status 0.")
    if written.strip() and (request is None or not _is_nothing(written)):
        raise _Failed("It wrote something that nobody asked for; logs belong on standard error.")


_END: Final = {True: "standard input ends, or a killed harness leaves the process behind", False: "stop is read"}


def _is_nothing(text: str) -> bool:
    try:
        return bool(json.loads(text) == {"ok": None})
    except ValueError:
        return False


_KindCheck = Callable[[str, Talk, Path], None]
_BEFORE: Final = "The check before it failed."
_OF_ALL: Final[tuple[tuple[str, _KindCheck], ...]] = (
    ("opens, appends, looks up and closes", _life),
    ("has its file where it was told, and its bytes in it", _file_where_told),
    ("keeps integers of 64 bits", _long_numbers),
    ("goes on after a refusal", _goes_on),
    ("answers every operation, or declares it unsupported", _every_operation),
)
_OF_PROCESSES: Final[tuple[tuple[str, _KindCheck], ...]] = (
    ("opens its file again after it was killed", _reopen_after_kill),
)
