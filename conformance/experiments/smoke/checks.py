"""Smoke test of an adapter (``conformance smoke -i IMPL``), before its implementation is tested.

An adapter is the program, or the Python code, that connects an implementation to the harness.

The checks do not test if results are right by Kafka's rules: ``conformance run`` does. They test that replies arrive in
time and in the protocol's format, that the adapter uses the given file, and that numbers arrive unchanged. If an
adapter passes these checks and diverges in a run, its implementation is wrong. If it fails a check, the adapter is
broken, and the results of a run mean nothing.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from conformance.experiments.smoke.of_kind import (
    BASIC_CALLS,
    OF_ALL,
    OF_PROCESSES,
    CheckFailedError,
    KindCheck,
    NoSuchKindError,
    NotJudgedError,
    RemarkError,
    declares_the_unknown,
    ends,
)
from conformance.experiments.smoke.of_log import OF_LOGS, LogCheck, LogSession, introduces_a_log
from conformance.experiments.smoke.session import AdapterSession, ObjectSession, ProcessSession
from conformance.implementations.process import DEADLINE, START_DEADLINE
from conformance.implementations.process.line_process import LineProcessError
from conformance.implementations.process.messages import Stop, introduction_from
from conformance.implementations.spec import implementation_factory, parse_spec
from conformance.operations import KINDS
from conformance.quoting import quoted
from kidx.dialect import NEWEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.implementations.process.line_process import Reason
    from conformance.operations import Json

Verdict = Literal["passed", "failed", "not-run"]


class Check(NamedTuple):
    """Result of one check.

    Attributes:
        name: expected property, as a sentence without a subject.
        verdict: ``"not-run"`` if an earlier check failed, or if the check cannot be evaluated.
        sent: last request; empty if the check passed.
        came: reply to the last request; empty if the check passed.
        hint: possible cause, or a remark on a check that passed.
    """

    name: str
    verdict: Verdict
    sent: str = ""
    came: str = ""
    hint: str = ""


@dataclass
class SmokeReport:
    """Results of all checks.

    Attributes:
        implementation: the implementation, as for ``-i``.
        release: release passed to the program.
        about: the program's description of itself.
        checks: results in the order of the checks.
        started: True if the program replied to ``start``.
    """

    implementation: str
    release: str
    about: str = ""
    checks: list[Check] = field(default_factory=list)
    started: bool = True

    @property
    def sane(self) -> bool:
        """True if no check failed."""
        return self.started and not any(check.verdict == "failed" for check in self.checks)

    @property
    def exit_code(self) -> int:
        """Exit code: 0 if no check failed, 1 if a check failed, 2 if the program did not reply to ``start``."""
        if not self.started:
            return 2
        return 0 if self.sane else 1

    def to_json(self) -> Json:
        """Return the document of ``--json``."""
        return {
            "implementation": self.implementation,
            "release": self.release,
            "about": self.about,
            "verdict": "sane" if self.sane else "broken" if self.started else "not-started",
            "checks": [check._asdict() for check in self.checks],
        }

    def lines(self) -> Iterator[str]:
        """Yield the report as text."""
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
_BUG: Final = "The Python code raised an unexpected exception, or returned a value of another type."
_SKIPPED: Final = "The check before it failed."


def smoke(
    text: str, *, release: str = NEWEST, deadline: float = DEADLINE, start_deadline: float = START_DEADLINE
) -> SmokeReport:
    """Check an adapter.

    Args:
        text: the implementation, as for ``-i``.
        release: value of ``{release}`` in the text.
        deadline: maximum seconds for each reply.
        start_deadline: maximum seconds for the reply to ``start``.

    Returns:
        A report; its exit code is 2 if the program runs but never replies.

    Raises:
        ToolError: nothing can be checked, because the text is invalid, or the program, the module or Java is missing.
    """
    spec = parse_spec(text)
    report = SmokeReport(text, release)
    with tempfile.TemporaryDirectory(prefix="conformance-smoke-") as directory:
        if spec.form == "exec":
            command = [word.replace("{release}", release) for word in spec.words]
            session = ProcessSession(command, deadline, start_deadline)
            try:
                _Smoke(report, Path(directory)).of_process(session)
            finally:
                session.kill()
        else:
            _Smoke(report, Path(directory)).of_object(ObjectSession(implementation_factory(text)(release, None)))
    return report


class _Smoke:
    """Runner of the checks, each in a separate directory."""

    def __init__(self, report: SmokeReport, directory: Path) -> None:
        self.report = report
        self.directory = directory
        self._number = 0
        self._has_log = False

    def of_process(self, session: ProcessSession) -> None:
        """Run all checks of a program that uses the line protocol."""
        if not self._introduction(session):
            return
        usable = [kind for kind in session.kinds if self._of_kind(session, kind, OF_PROCESSES)]
        unknown = "declares an operation that it does not know as unsupported"
        if usable:
            self._check(session, unknown, partial(declares_the_unknown, usable[0]))
        elif session.kinds:
            self.report.checks.append(Check(unknown, "not-run", hint=_SKIPPED))
        if self._has_log:
            self._of_log(session)
        self._has_something()
        self._check(session, "ends on stop, and says nothing more", partial(ends, Stop()))
        self._check(session, "ends when its input ends", partial(ends, None))

    def of_object(self, session: ObjectSession) -> None:
        """Run the checks that do not need a process."""
        self.report.about = session.implementation.name
        for kind in session.kinds:
            self._of_kind(session, kind, ())
        self._has_something()

    def _has_something(self) -> None:
        """Add a failed check if no index and no log could do the basic calls, so that a run would compare nothing."""
        basic = [check for check in self.report.checks if check.name.endswith(BASIC_CALLS)]
        failed = any(check.verdict == "failed" for check in self.report.checks)
        if not failed and not any(check.verdict == "passed" for check in basic):
            hint = "It rejected or did not have any of: " + ", ".join((*KINDS, "log")) + "."
            self.report.checks.append(Check("has at least one kind of index, or a log", "failed", hint=hint))

    def _introduction(self, session: ProcessSession) -> bool:
        name = "answers start with protocol 1"
        try:
            line = session.start()
        except LineProcessError as error:
            self.report.started = error.reason in ("noisy", "malformed")
            self.report.checks.append(Check(name, "failed", session.sent, str(error), _HINTS[error.reason]))
            return False

        def introduces_itself(*_: object) -> None:
            with session.well_formed():
                about = introduction_from(session.version, json.loads(line))
            self.report.about = f"{about.name} {about.version} ({about.language})"
            session.kinds = tuple(kind for kind in dict.fromkeys(about.kinds) if kind in KINDS)
            session.capabilities = about.declared()
            self._has_log = "log" in about.kinds

        return self._check(session, name, introduces_itself) == "passed"

    def _of_log(self, other: ProcessSession) -> None:
        """Run the checks of a log in a separate process, which is started with version 2 of the protocol."""
        session = LogSession(other.command, other.deadline, other.start_deadline)

        def with_log(check: LogCheck) -> Callable[[AdapterSession, Path], None]:
            return lambda _, directory: check(session, directory)

        try:
            start = self._check(session, "log: answers start with protocol 2", with_log(introduces_a_log))
            for name, check in OF_LOGS:
                if start == "failed":
                    self.report.checks.append(Check(f"log: {name}", "not-run", hint=_SKIPPED))
                else:
                    self._check(session, f"log: {name}", with_log(check))
        finally:
            session.kill()

    def _of_kind(self, session: AdapterSession, kind: str, more: tuple[tuple[str, KindCheck], ...]) -> bool:
        """Run the checks of one kind of index; return False if the first one fails, so that the others are skipped."""
        (first, basic_calls), *others = *OF_ALL, *more
        try:
            verdict = self._check(session, f"{kind}: {first}", partial(basic_calls, kind))
        except NoSuchKindError as reason:
            if session.declares_kinds:
                hint = f"It declares {kind} in its reply to start, and answers open with unsupported."
                self.report.checks.append(Check(f"{kind}: {first}", "failed", session.sent, quoted(session.came), hint))
                return False
            self.report.checks.append(Check(f"{kind}: {first}", "not-run", hint=str(reason)))
            return False
        if verdict == "failed":
            self.report.checks += [Check(f"{kind}: {name}", "not-run", hint=_SKIPPED) for name, _ in others]
            return False
        for name, function in others:
            self._check(session, f"{kind}: {name}", partial(function, kind))
        return True

    def _check(self, session: AdapterSession, name: str, function: Callable[[AdapterSession, Path], None]) -> Verdict:
        self._number += 1
        directory = self.directory / str(self._number)
        directory.mkdir()
        verdict: Verdict = "failed"
        came = hint = ""
        try:
            session.begin(directory)
            function(session, directory)
            verdict = "passed"
        except CheckFailedError as failure:
            came, hint = quoted(session.came), str(failure)
        except RemarkError as remark:
            verdict, hint = "passed", str(remark)
        except NoSuchKindError:
            raise
        except NotJudgedError as reason:
            verdict, hint = "not-run", str(reason)
        except LineProcessError as error:
            # A reply of the wrong format is shown; without a reply the message is sufficient.
            came = f"{quoted(session.came)}\n{error}" if session.came else str(error)
            hint = _HINTS[error.reason] if isinstance(session, ProcessSession) else _BUG
        self.report.checks.append(Check(name, verdict, session.sent if verdict == "failed" else "", came, hint))
        return verdict
