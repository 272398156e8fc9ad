"""The prediction of a start as plain values: the broker, its log directories, its partitions, and one line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from kidx.discovery import START_OFFSETS
from kidx.printable import counted, encodable, shell_word
from kidx.startup.readable import NOTHING, Loss
from kidx.startup.remedies import AFTER_THE_COPIES, DOUBTED, MIXED, NOT_CHECKED, NOT_CONFIGURED, STOPS, remedy_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Answer = Literal["yes", "yes, but", "no", "running", "unknown"]
Outcome = Literal["kept", "cut", "foreign", "refused", "stray", "renamed", "empty", "offline", "unknown"]
"""Prediction for a partition. *kept*: all records are kept; *cut*: records are lost or hidden; *foreign*: a log has
another partition's records; *refused*: the broker does not serve the partition; *stray*: the directory is renamed, and
the partition starts empty; *renamed*: the directory is renamed because it is no partition of this broker, and nothing
is lost; *empty*: the partition has no directory or no segment, and starts empty; *offline*: the
partition is in a log directory that goes offline."""

LaterEffect = Literal["retention", "compaction", "appends", "indexes"]
"""Harm that a broker does to a partition after it has loaded it. *retention*: records are deleted although they are not
old; *compaction*: records are deleted for aborted ones; *appends*: new records cannot be read, or are rejected;
*indexes*: the start has made wrong index files."""

_EFFECTS: Final[dict[str, tuple[Outcome, ...]]] = {
    "lose records": ("cut",),
    "serve the records of another partition": ("foreign",),
    "not be served": ("refused",),
    "start empty": ("stray", "empty"),
}
"""Harm that a start does to partitions, the worst first."""
_LATER_EFFECTS: Final[dict[LaterEffect, str]] = {
    "retention": "lose records to retention minutes after the start",
    "compaction": "lose records to compaction",
    "appends": "take new records that nobody can read",
    "indexes": "get wrong index files",
}
"""Harm that a broker does to partitions after loading them, the worst first."""
_HARMED: Final = tuple(outcome for outcomes in _EFFECTS.values() for outcome in outcomes)
_NAMED: Final = 3
"""Maximum number of paths in a line."""


class Remark(NamedTuple):
    """Remark about a file or directory that matters to a start.

    The field of :class:`Start` that has the remark says how: it prevents the start, takes a log directory offline, or
    neither.

    Attributes:
        path: path of the file or directory.
        reason: why it matters.
        own_remedy: remedy, if it differs from the remedy for all files of this name.
    """

    path: Path
    reason: str
    own_remedy: str = ""

    @property
    def remedy(self) -> str:
        """Remedy; empty if the output of ``kidx verify`` has it in the lines of ``next:``."""
        return self.own_remedy or remedy_of(self.path)

    def __str__(self) -> str:
        return f"{shell_word(self.path)}: {self.reason}"

    def to_json(self) -> dict[str, str]:
        """Return an object of ``kidx verify --json``."""
        return {"path": encodable(str(self.path)), "reason": encodable(self.reason)}


@dataclass(frozen=True, slots=True)
class SegmentChange:
    """Change of a segment's ``.log`` by a start.

    Attributes:
        file: path of the ``.log``.
        before, after: size in bytes; ``after`` has no value if the segment is deleted.
        records: number of readable records in the lost bytes.
    """

    file: Path
    before: int
    after: int | None
    records: int = 0

    def __str__(self) -> str:
        if self.after is None:
            return f"{self.file.name} deleted"
        return f"{self.file.name} {'emptied' if not self.after else f'cut to {self.after:,} bytes'}"


class Ends(NamedTuple):
    """Three ends of a log, which differ if it is corrupt.

    Attributes:
        readable: offset at which reading the last segment from its beginning stops.
        served: log end offset of the broker after the start.
        flushed: recovery point: earlier records are on disk.
    """

    readable: int
    served: int
    flushed: int


@dataclass(frozen=True, slots=True)
class PartitionStart:
    """Effect of a start on a partition.

    Attributes:
        directory: directory of the partition.
        outcome: state of the partition after the start.
        reason: reason, if the partition is not kept.
        start: start of the log, before and after; None if unknown.
        end: end of the log, by its batches before the start, and as the broker serves it; None if unknown.
        changes: changes of the segments' ``.log`` files.
        remedy: remedy before the start, if the partition is not kept; empty if none is known.
        instead: remedy that keeps all records of the log; empty if none is known.
        lost: what was readable before the start, and is not after it.
        ends: the ends of the log; None if it was not simulated.
    """

    directory: Path
    outcome: Outcome
    reason: str = ""
    start: tuple[int | None, int | None] = (None, None)
    end: tuple[int | None, int | None] = (None, None)
    changes: tuple[SegmentChange, ...] = ()
    remedy: str = ""
    instead: str = ""
    lost: Loss = NOTHING
    ends: Ends | None = None

    @property
    def at_risk(self) -> tuple[Path, ...]:
        """Files whose records are lost; the files of later segments are often healthy."""
        return tuple(change.file for change in self.changes)

    def __str__(self) -> str:
        said = [self.reason, ", ".join(map(str, self.changes)), *self.limits]
        if self.lost:
            effect = "deleted" if self.changes else "hidden"
            said.append(f"{counted(self.readable, 'readable record')} would be {effect}, of {self.lost.place}")
        return f"{shell_word(self.directory)}: {'; '.join(filter(None, said))}"

    @property
    def starts_past_its_end(self) -> bool:
        """True if the checkpointed start of the log is past its end."""
        start, end = self.start[0], self.end[0]
        return start is not None and end is not None and start > end

    @property
    def readable(self) -> int:
        """Number of readable records that are lost."""
        return self.lost.records

    @property
    def limits(self) -> list[str]:
        """Changes of the log's start and end, as text."""
        places = (("start", self.start), ("end", self.end))
        return [f"{what} {before} → {after}" for what, (before, after) in places if before != after]

    def to_json(self) -> dict[str, Any]:
        """Return an object of ``kidx verify --json``."""
        return {
            "directory": encodable(str(self.directory)),
            "outcome": self.outcome,
            "reason": encodable(self.reason),
            "start": list(self.start),
            "end": list(self.end),
            "segments": [
                {
                    "file": encodable(str(change.file)),
                    "before": change.before,
                    "after": change.after,
                    "readable_records": change.records,
                }
                for change in self.changes
            ],
            "lost": self.lost.to_json(),
            "ends": None if self.ends is None else self.ends._asdict(),
        }


@dataclass(frozen=True, slots=True)
class Later:
    """Harm that a running broker does to a partition after it has loaded it.

    Attributes:
        directory: directory of the partition.
        effect: kind of harm.
        reason: what happens, and why.
        brief: what is lost or wrong, in a few words.
        remedy: remedy before the start; empty if none is known.
        files: files whose records are lost.
        records: number of readable records in them.
    """

    directory: Path
    effect: LaterEffect
    reason: str
    brief: str
    remedy: str = ""
    files: tuple[Path, ...] = ()
    records: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return an object of ``kidx verify --json``."""
        return {
            "directory": encodable(str(self.directory)),
            "effect": self.effect,
            "reason": encodable(self.reason),
            "files": [encodable(str(path)) for path in self.files],
            "readable_records": self.records,
        }


@dataclass(frozen=True, slots=True)
class Start:
    """Effect of a start on a broker with some log directories.

    Attributes:
        release: release of the broker.
        directories: log directories that were verified; empty if only partitions were.
        held: log directories whose lock a running broker holds.
        fatal: reasons why the broker would not start.
        offline: reason why a log directory would go offline, by directory.
        partitions: partitions that change.
        faults: number of broken, missing or unreadable files that a start does not repair.
        rebuilt: index files among them that the start rebuilds.
        further: further reasons why the same log directories would go offline.
        changing: True if files changed while they were read, so that a process writes to them.
        missing: missing checkpoints, and the behaviour of a broker without them.
        clean: True by log directory if its broker was stopped cleanly.
        mixed: log directories with the mark of a clean stop, if other log directories of their broker have none.
        doubted: log directories with the mark of a clean stop, although their files are as after a kill.
        is_damaged: True if a ``.log`` is broken.
        lost: partitions that have already lost records, according to checkpoints.
        is_default: True if the release was not given.
        without_metadata: True if a broker runs KRaft, and no log directory has KRaft's own log.
        later: harm that the broker does after it has loaded its logs.
        is_configured: True if the broker's ``server.properties`` was given.
        omitted: descriptions of effects after loading that were not evaluated.
    """

    release: str
    directories: tuple[Path, ...] = ()
    held: tuple[Path, ...] = ()
    fatal: tuple[Remark, ...] = ()
    offline: dict[Path, Remark] = field(default_factory=dict)
    further: tuple[Remark, ...] = ()
    partitions: tuple[PartitionStart, ...] = ()
    faults: int = 0
    changing: bool = False
    rebuilt: frozenset[Path] = frozenset()
    missing: tuple[Remark, ...] = ()
    clean: dict[Path, bool] = field(default_factory=dict)
    mixed: tuple[Path, ...] = ()
    doubted: tuple[Path, ...] = ()
    is_damaged: bool = False
    lost: tuple[Remark, ...] = ()
    is_default: bool = False
    without_metadata: bool = False
    later: tuple[Later, ...] = ()
    is_configured: bool = False
    omitted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        kinds = list(_LATER_EFFECTS)
        object.__setattr__(self, "later", tuple(sorted(self.later, key=lambda each: kinds.index(each.effect))))

    @property
    def starts(self) -> bool:
        """True if the broker starts, and continues to run."""
        return not self.fatal

    def of(self, *outcomes: Outcome) -> list[PartitionStart]:
        """Return the partitions with one of these outcomes."""
        return [each for each in self.partitions if each.outcome in outcomes]

    @property
    def treated(self) -> set[Path]:
        """Files and partition directories for which :meth:`lines` has a remedy."""
        blockers = {each.path for each in (*self.fatal, *self.offline.values(), *self.further) if each.remedy}
        partitions = [each for each in self.of(*_HARMED) if each.changes or each.remedy]
        starts = {each.directory.parent / START_OFFSETS for each in partitions if each.starts_past_its_end}
        later = {each.directory for each in self.later if each.effect == "appends" and each.remedy}
        return blockers | starts | later | {each.directory for each in partitions}

    @property
    def answer(self) -> Answer:
        """Answer to the operator's "may I start the broker?"."""
        if self.held or self.changing:
            return "running"
        if self.fatal or self.offline or self.of(*_HARMED) or self.later:
            return "no"
        if self.of("unknown"):
            return "unknown"
        return "yes, but" if self.faults or self.lost else "yes"

    @property
    def harms_only_later(self) -> bool:
        """True if loading the logs does no harm, and what the broker does afterwards does."""
        return bool(self.later) and not (self.fatal or self.offline or self.of(*_HARMED))

    @property
    def line(self) -> str:
        """Answer and reason in one line."""
        condition = (
            ", if KRaft's own log is elsewhere" if self.without_metadata and self.answer.startswith("yes") else ""
        )
        return f"may I start the broker? {self._answered()}{condition}"

    def _answered(self) -> str:
        cases: dict[Answer, Callable[[], str]] = {
            "running": lambda: f"it is running: {self._sign_of_life()}; what a start would do is not predicted",
            "no": self._refused,
            "unknown": lambda: f"unknown: {_folded(self.of('unknown'))}",
            "yes, but": self._reserved,
            "yes": lambda: f"yes: the start repairs {self._files(len(self.rebuilt))}" if self.rebuilt else "yes",
        }
        return cases[self.answer]()

    def _reserved(self) -> str:
        """Return the text for an answer of *yes, but*: the faults that a start does not repair."""
        faults = [f"no start repairs {self._files(self.faults)}; the start loses no whole batch"] if self.faults else []
        lost = [f"{counted(len(self.lost), 'partition')} lost records before, see above"] if self.lost else []
        return f"yes, but {'; '.join([*faults, *lost])}"

    @property
    def _broker(self) -> str:
        default = ", which is the default: --kafka names another," if self.is_default else ""
        return f"a broker of Kafka {self.release}{default}"

    @staticmethod
    def _files(number: int) -> str:
        return f"{counted(number, 'file')} of those above"

    def _sign_of_life(self) -> str:
        if self.held:
            return f"it holds the lock of {_some(map(shell_word, self.held))}"
        return "files changed while they were read"

    def _refused(self) -> str:
        """Return the reasons against a start, the worst first."""
        groups: list[tuple[str, Sequence[PartitionStart | Later]]] = [
            *((effect, self.of(*outcomes)) for effect, outcomes in _EFFECTS.items()),
            *(
                (said, [each for each in self.later if each.effect == effect])
                for effect, said in _LATER_EFFECTS.items()
            ),
        ]
        counts = [f"{counted(len(some), 'partition')} would {effect}" for effect, some in groups if some]
        if self.fatal or self.offline:
            then = f"; and then {' and '.join(counts)}, above" if counts else ""
            if self.fatal:
                return f"no: {self._broker} would not start: {_folded(self.fatal)}{then}"
            given_up = [f"{shell_word(path)} ({why})" for path, why in self.offline.items()]
            return f"no: {self._broker} would give up {_some(given_up)}, and all partitions in it{then}"
        first, *others = counts
        besides = f"; {' and '.join(others)}, above" if others else ""
        lost = self.of("cut")
        if not self.of(*_HARMED):
            worst = self.later[0].effect
            brief = _some(f"{shell_word(each.directory)} ({each.brief})" for each in self.later if each.effect == worst)
            return f"no: {first}: {brief}{besides}"
        if not lost:
            return f"no: {first}: {_folded(next(some for _, some in groups if some))}{besides}"
        files = sum(len(each.at_risk) for each in lost if not each.remedy)
        named = _some(
            f"{shell_word(each.directory)} ({', '.join(each.limits) or each.reason or each.lost.place})"
            for each in lost
        )
        copies = f": copy the {counted(files, 'file')} above first, then start it" if files else ""
        number = sum(each.readable for each in lost)
        records = counted(number, "readable record") if number else "records"
        return f"no: {counted(len(lost), 'partition')} would lose {records}, {named}{copies}{besides}"

    def lines(self) -> list[str]:
        """Return the obstacles to a start and their remedies as text; the last line is the answer."""
        return [self.line] if self.answer == "running" else [*self._reasons(), self.line]

    @property
    def limits(self) -> list[str]:
        """Effects that were not evaluated, and requirements that the files do not show, as a line of text."""
        omitted = [_some(self.omitted)] if self.omitted else []
        if self.answer.startswith("yes") and self.directories:
            omitted = [*omitted, *(() if self.is_configured else (NOT_CONFIGURED,)), NOT_CHECKED]
        return [f"start: not checked: {', '.join(omitted)}"] if omitted else []

    @property
    def has_steps(self) -> bool:
        """True if :meth:`lines` has steps to take before a start, and not reasons alone."""
        return any(line.startswith("  ") for line in self.lines())

    def _reasons(self) -> Iterator[str]:
        if self.mixed:
            yield f"start: {_some(map(shell_word, self.mixed))}: {MIXED}"
        if self.is_damaged or self.doubted or any(each.changes for each in self.partitions):
            yield from self._stops()
        yield from self._obstacles()
        yield from self._losses()
        for each in self.later:
            yield f"start: {shell_word(each.directory)}: {each.reason}"
            yield from _indented(each.remedy)
        for reasons in (
            _by_reason(self.of("foreign", "refused", "stray", "renamed", "empty", "unknown")),
            _by_reason((*self.missing, *self.lost)),
        ):
            for (reason, remedy), names in reasons.items():
                yield f"start: {_some(names)}: {reason}"
                yield from _indented(remedy)

    def _stops(self) -> Iterator[str]:
        """Yield a line for clean stops and a line for others, because the effect of a start depends on the stop."""
        if self.doubted:
            yield f"start: {_some(map(shell_word, self.doubted))}: {DOUBTED}"
        for clean, effect in STOPS.items():
            names = [shell_word(path) for path, was_clean in self.clean.items() if was_clean == clean]
            if names:
                yield f"start: {_some(names)}: {effect}"

    def _obstacles(self) -> Iterator[str]:
        """Yield the lines about obstacles to the start, or to the use of a log directory."""
        ends = {each.path: each for each in self.fatal}
        given_up = {why.path for why in self.offline.values()}
        alone = [each for each in self.fatal if each.path not in given_up]
        for (reason, remedy), names in _by_reason(alone).items():
            yield f"start: {_some(names)}: {reason}"
            yield from _indented(remedy)
        for path, why in self.offline.items():
            yield f"start: {shell_word(path)} goes offline: {ends.get(why.path, why)}"
            yield from _indented(why.remedy)
        for (reason, remedy), names in _by_reason(self.further).items():
            yield f"start: then {_some(names)}: {reason}"
            yield from _indented(remedy)

    def _losses(self) -> Iterator[str]:
        """Yield the lines about logs that the start would truncate."""
        for each in self.of("kept"):
            if each.changes:
                yield f"start: {each}; no whole batch is lost, and the log ends at {each.end[1]}"
            if each.instead:
                yield f"start: {shell_word(each.directory)}: after this change, more records of its log can be read:"
                yield from _indented(each.instead)
        for each in self.of("cut"):
            yield f"start: {each}"
            yield from _indented(each.remedy)
            if each.changes and not each.remedy:
                yield from _indented(each.instead)
                before = "or else, do" if each.instead else "do"
                yield f"  {before} not start the broker before these are copied out of the log directories:"
                yield from (f"    {shell_word(file)}" for file in each.at_risk)
        if any(each.changes and not each.remedy for each in self.of("cut")):
            yield f"  {AFTER_THE_COPIES}"

    def to_json(self) -> dict[str, Any]:
        """Return an object of ``kidx verify --json``."""
        return {
            "answer": self.answer,
            "line": encodable(self.line),
            "release": self.release,
            "log_directories": [encodable(str(path)) for path in self.directories],
            "held": [encodable(str(path)) for path in self.held],
            "would_not_start": [each.to_json() for each in self.fatal],
            "offline": [{"log_directory": encodable(str(path)), **why.to_json()} for path, why in self.offline.items()],
            "further": [each.to_json() for each in self.further],
            "partitions": [each.to_json() for each in self.partitions],
            "later": [each.to_json() for each in self.later],
            "missing": [each.to_json() for each in self.missing],
            "not_evaluated": [encodable(each) for each in self.omitted],
            "clean_stops": [encodable(str(path)) for path, clean in self.clean.items() if clean],
        }


def _indented(text: str) -> list[str]:
    return [f"  {text}"] if text else []


def _by_reason(things: Iterable[Remark | PartitionStart | Later]) -> dict[tuple[str, str], list[str]]:
    """Return the paths that share a reason and a remedy, by both."""
    names: dict[tuple[str, str], list[str]] = {}
    for each in things:
        path = each.path if isinstance(each, Remark) else each.directory
        names.setdefault((each.reason, each.remedy), []).append(shell_word(path))
    return names


def _folded(things: Iterable[Remark | PartitionStart | Later]) -> str:
    """Return the first reason with its paths, and the number of other reasons."""
    (reason, _), names = next(iter((groups := _by_reason(things)).items()))
    more = f"; and {counted(len(groups) - 1, 'reason')} more, above" if len(groups) > 1 else ""
    return f"{_some(names)}: {reason}{more}"


def _some(texts: Iterable[str]) -> str:
    said = list(texts)
    more = f" and {len(said) - _NAMED} more" if len(said) > _NAMED else ""
    return ", ".join(said[:_NAMED]) + more
