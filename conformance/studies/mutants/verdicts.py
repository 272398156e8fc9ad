"""Verdicts on mutants as data: a file to which they are added as they come, the reasons of survivors, and counts."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

import msgspec

from conformance.errors import ToolError
from conformance.studies.kept import ResultFile, ResultFormat
from conformance.studies.mutants.sites import class_of

if TYPE_CHECKING:
    from pathlib import Path


class Header(msgspec.Struct, frozen=True):
    """First line of a file of verdicts: what they depend on.

    Attributes:
        release: release of the classes.
        implementation: ``jvm``, or ``jvm:DIR`` of a build.
        against: ``examples`` for the recorded examples, or ``kafka-tests`` for Kafka's own unit tests.
        machines: machines of the recorded examples.
        examples: drawn examples of each machine.
        seed: random seed of the examples.
        sources: digest of the harness and of the reference.
    """

    release: str
    implementation: str
    against: str
    machines: tuple[str, ...] = ()
    examples: int = 0
    seed: int = 0
    sources: str = ""
    format: Literal["kidx-mutants"] = "kidx-mutants"
    version: Literal[1] = 1


class Verdict(msgspec.Struct, frozen=True):
    """Verdict on one mutant.

    Attributes:
        site: name of the changed place.
        operator: kind of the change.
        change: the instruction and its replacement.
        line: number of the source line.
        verdict: ``could-not-run`` if Java rejects the class: neither killed nor survived.
        how: how it was killed (``differs``, ``hangs``, ``crashes``, or an error), or why it could not run; empty for a
            survivor.
        machine: machine of the example that killed it, or class of the test.
        example: id of the regression trace, number of the drawn example, or name of the test.
        step: step that differs, from 1, with its operation.
        reached: number of recorded examples that reach the place.
        seconds: duration of the replay.
    """

    site: str
    operator: str
    change: str
    line: int
    verdict: Literal["killed", "survived", "could-not-run"]
    reached: int
    seconds: float
    how: str = ""
    machine: str = ""
    example: str = ""
    step: str = ""

    @property
    def class_name(self) -> str:
        """Name of the class; see :func:`~conformance.studies.mutants.sites.class_of`."""
        return class_of(self.site)


class Reason(msgspec.Struct, frozen=True):
    """Reason why a mutant may survive.

    Attributes:
        site: pattern of names of places.
        change: pattern of changes.
        kind: ``equivalent`` if no caller can see the change; else ``out-of-scope``.
        why: the reason.
        seen_by: who could see an out-of-scope change; empty for an equivalent one.
    """

    why: str
    kind: Literal["equivalent", "out-of-scope"]
    site: str = "*"
    change: str = "*"
    seen_by: str = ""

    def covers(self, verdict: Verdict) -> bool:
        """Return True if a mutant matches."""
        return fnmatchcase(verdict.site, self.site) and fnmatchcase(verdict.change, self.change)


@cache
def load_reasons() -> tuple[Reason, ...]:
    """Return the packaged reasons."""
    text = (files(__package__) / "reasons.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)["reason"], tuple[Reason, ...])


def reason_of(verdict: Verdict) -> Reason | None:
    """Return the reason why a survivor may survive; None if it has none."""
    return next((each for each in load_reasons() if each.covers(verdict)), None)


@dataclass(frozen=True)
class Score:
    """Counts of mutants.

    Attributes:
        killed: number of killed mutants.
        excused: number of survivors that have a reason.
        open: number of the other survivors.
        could_not_run: number of mutants that could not run.
    """

    killed: int = 0
    excused: int = 0
    open: int = 0
    could_not_run: int = 0

    @property
    def decided(self) -> int:
        """Number of killed and surviving mutants."""
        return self.killed + self.excused + self.open

    @property
    def text(self) -> str:
        """Killed mutants of those without a reason to survive, as a fraction and as a percentage."""
        count = self.killed + self.open
        return f"{self.killed} of {count} ({self.killed / count:.0%})" if count else "none"


def score_of(verdicts: Iterable[Verdict]) -> Score:
    """Return the counts of verdicts."""
    counts = Counter(
        ("excused" if reason_of(each) else "open") if each.verdict == "survived" else each.verdict for each in verdicts
    )
    return Score(counts["killed"], counts["excused"], counts["open"], counts["could-not-run"])


def scores_by(verdicts: Sequence[Verdict], attribute: str) -> Mapping[str, Score]:
    """Return the counts for each value of an attribute of the verdicts, in alphabetical order."""
    values = sorted({getattr(each, attribute) for each in verdicts})
    return {value: score_of([each for each in verdicts if getattr(each, attribute) == value]) for value in values}


def read_verdicts(path: Path) -> dict[str, Verdict]:
    """Return the verdicts in a file, by site.

    Raises:
        ToolError: the file cannot be read.
    """
    try:
        lines = path.read_bytes().splitlines()[1:]
        return {each.site: each for each in (msgspec.json.decode(line, type=Verdict) for line in lines)}
    except OSError as error:
        raise ToolError(f"cannot read the file of verdicts {path}: {error.strerror or error}") from error
    except msgspec.MsgspecError as error:
        raise ToolError(f"{path} is no file of verdicts of conformance mutate-kafka: {error}") from error


class VerdictFile(ResultFile[Header, Verdict]):
    """File of verdicts; a mutant that has a verdict in it needs no other.

    Args:
        path: the file; it is created if it is missing.
        header: what the verdicts depend on.

    Attributes:
        verdicts: the verdicts in the file when it was opened, by site.

    Raises:
        ToolError: the file cannot be read or written, or its verdicts depend on something else.
    """

    def __init__(self, path: Path, header: Header) -> None:
        super().__init__(path, header, ResultFormat(Header, Verdict, "verdicts", "mutate-kafka"))
        self.verdicts = {each.site: each for each in self.known}
