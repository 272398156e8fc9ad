"""The prediction of a start as a value, and as text: obstacles with their remedies, and one line with the answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kidx.discovery import START_OFFSETS
from kidx.printable import counted, encodable, shell_word
from kidx.startup.answers import EFFECTS, HARMED, LATER_EFFECTS, Answer, Later, Outcome, PartitionStart, Remark
from kidx.startup.remedies import AFTER_THE_COPIES, DOUBTED, IN_ZOOKEEPER, MIXED, NOT_CHECKED, NOT_CONFIGURED, STOPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_NAMED: Final = 3
"""Maximum number of paths in a line."""
_REFERENCES: Final = (" of those above", ", see above", ", above", " above")
"""Ends of sentences that refer to earlier lines."""


@dataclass(frozen=True, slots=True)
class Start:
    """Effect of a start on a broker with some log directories.

    Attributes:
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
        empty: given directories that are empty, which a broker with ZooKeeper takes for new log directories.
        later: harm that the broker does after it has loaded its logs.
        is_configured: True if the broker's ``server.properties`` was given.
        omitted: descriptions of effects after loading that were not evaluated.
        apart: log directories with different ids that may belong to one broker, which then does not start.
        of_zookeeper: True if a broker runs with ZooKeeper, which has the settings of its topics.
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
    empty: tuple[Path, ...] = ()
    later: tuple[Later, ...] = ()
    is_configured: bool = False
    omitted: tuple[str, ...] = ()
    apart: tuple[Path, ...] = ()
    of_zookeeper: bool = False

    def __post_init__(self) -> None:
        kinds = list(LATER_EFFECTS)
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
        partitions = [each for each in self.of(*HARMED) if each.changes or each.remedy]
        starts = {each.directory.parent / START_OFFSETS for each in partitions if each.starts_past_its_end}
        later = {each.directory for each in self.later if each.effect == "appends" and each.remedy}
        return blockers | starts | later | {each.directory for each in partitions}

    @property
    def answer(self) -> Answer:
        """Answer to the operator's "may I start the broker?"."""
        if self.held or self.changing:
            return "running"
        if self.fatal or self.offline or self.of(*HARMED) or self.later:
            return "no"
        if self.of("unknown"):
            return "unknown"
        return "yes, but" if self.faults or self.lost else "yes"

    @property
    def records_at_risk(self) -> int:
        """Number of readable records that are lost by the start, or by the broker minutes later."""
        return sum(each.readable for each in self.partitions) + sum(each.records for each in self.later)

    @property
    def harms_only_later(self) -> bool:
        """True if loading the logs does no harm, and what the broker does afterwards does."""
        return bool(self.later) and not (self.fatal or self.offline or self.of(*HARMED))

    @property
    def line(self) -> str:
        """Answer and reason in one line."""
        return _line(self)

    def lines(self) -> list[str]:
        """Return the obstacles to a start and their remedies as text; the last line is the answer."""
        return _lines(self)

    @property
    def limits(self) -> list[str]:
        """Effects that were not evaluated, and requirements that the files do not show, as a line of text."""
        return _limits(self)

    @property
    def has_steps(self) -> bool:
        """True if :meth:`lines` has steps to take before a start, and not reasons alone."""
        return _has_steps(self)

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


def without_references(line: str) -> str:
    """Return an answer without its references to other lines."""
    for reference in _REFERENCES:
        line = line.replace(reference, "")
    return line


# -- text ------------------------------------------------------------------------------------------------------------


def _line(start: Start) -> str:
    """Return answer and reason in one line."""
    conditions = []
    if start.answer.startswith("yes"):
        conditions += ["KRaft's own log is elsewhere"] if start.without_metadata else []
        conditions += [f"{_some(map(shell_word, start.empty))} had no partition"] if start.empty else []
        conditions += [f"{_some(map(shell_word, start.apart))} are of different brokers"] if start.apart else []
    condition = f", if {' and '.join(conditions)}" if conditions else ""
    return f"may I start the broker? {_answered(start)}{condition}"


def _answered(start: Start) -> str:
    cases: dict[Answer, Callable[[], str]] = {
        "running": lambda: f"it is running: {_sign_of_life(start)}; what a start would do is not predicted",
        "no": lambda: _refused(start),
        "unknown": lambda: f"unknown: {_folded(start.of('unknown'))}",
        "yes, but": lambda: _reserved(start),
        "yes": lambda: f"yes: the start repairs {_files(len(start.rebuilt))}" if start.rebuilt else "yes",
    }
    return cases[start.answer]()


def _reserved(start: Start) -> str:
    """Return the text for an answer of *yes, but*: the faults that a start does not repair."""
    faults = [f"the start does not repair {_files(start.faults)}; it loses no whole batch"] if start.faults else []
    lost = [f"{counted(len(start.lost), 'partition')} lost records before, see above"] if start.lost else []
    return f"yes, but {'; '.join([*faults, *lost])}"


def _broker(start: Start) -> str:
    default = ", which is the default: --kafka names another," if start.is_default else ""
    return f"a broker of Kafka {start.release}{default}"


def _files(number: int) -> str:
    return f"{counted(number, 'file')} of those above"


def _sign_of_life(start: Start) -> str:
    if start.held:
        return f"it holds the lock of {_some(map(shell_word, start.held))}"
    return "files changed while they were read"


def _refused(start: Start) -> str:
    """Return the reasons against a start, the worst first."""
    groups: list[tuple[str, Sequence[PartitionStart | Later]]] = [
        *((effect, start.of(*outcomes)) for effect, outcomes in EFFECTS.items()),
        *((said, [each for each in start.later if each.effect == effect]) for effect, said in LATER_EFFECTS.items()),
    ]
    counts = [f"{counted(len(some), 'partition')} would {effect}" for effect, some in groups if some]
    if start.fatal or start.offline:
        then = f"; and then {' and '.join(counts)}, above" if counts else ""
        if start.fatal:
            return f"no: {_broker(start)} would not start: {_folded(start.fatal)}{then}"
        given_up = [f"{shell_word(path)} ({why})" for path, why in start.offline.items()]
        return f"no: {_broker(start)} would give up {_some(given_up)}, and all partitions in it{then}"
    first, *others = counts
    besides = f"; {' and '.join(others)}, above" if others else ""
    lost = start.of("cut")
    if not start.of(*HARMED):
        worst = start.later[0].effect
        brief = _some(f"{shell_word(each.directory)} ({each.brief})" for each in start.later if each.effect == worst)
        return f"no: {first}: {brief}{besides}"
    if not lost:
        return f"no: {first}: {_folded(next(some for _, some in groups if some))}{besides}"
    files = sum(len(each.at_risk) for each in lost if not each.remedy)
    named = _some(
        f"{shell_word(each.directory)} ({', '.join(each.limits) or each.reason or each.lost.place})" for each in lost
    )
    copies = f": copy the {counted(files, 'file')} above first, then start it" if files else ""
    number = sum(each.readable for each in lost)
    records = counted(number, "readable record") if number else "records"
    return f"no: {counted(len(lost), 'partition')} would lose {records}, {named}{copies}{besides}"


def _lines(start: Start) -> list[str]:
    """Return the obstacles to a start and their remedies as text; the last line is the answer."""
    return [_line(start)] if start.answer == "running" else [*_reasons(start), _line(start)]


def _limits(start: Start) -> list[str]:
    """Return effects that were not evaluated, and requirements that the files do not show, as a line of text."""
    omitted = [_some(start.omitted)] if start.omitted else []
    if start.of_zookeeper and (start.later or start.answer.startswith("yes")):
        omitted = [*omitted, IN_ZOOKEEPER]
    if start.answer.startswith("yes") and start.directories:
        omitted = [*omitted, *(() if start.is_configured else (NOT_CONFIGURED,)), NOT_CHECKED]
    return [f"start: not checked: {', '.join(omitted)}"] if omitted else []


def _has_steps(start: Start) -> bool:
    """Return True if :func:`_lines` has steps to take before a start, and not reasons alone."""
    return any(each.startswith("  ") for each in _lines(start))


def _reasons(start: Start) -> Iterator[str]:
    if start.mixed:
        yield f"start: {_some(map(shell_word, start.mixed))}: {MIXED}"
    if start.is_damaged or start.doubted or any(each.changes for each in start.partitions):
        yield from _stops(start)
    yield from _obstacles(start)
    yield from _losses(start)
    for each in start.later:
        yield f"start: {shell_word(each.directory)}: {each.reason}"
        yield from _indented(each.remedy)
    for reasons in (
        _by_reason(start.of("foreign", "refused", "stray", "renamed", "empty", "unknown")),
        _by_reason((*start.missing, *start.lost)),
    ):
        for (reason, remedy), names in reasons.items():
            yield f"start: {_some(names)}: {reason}"
            yield from _indented(remedy)


def _stops(start: Start) -> Iterator[str]:
    """Yield a line for clean stops and a line for others, because the effect of a start depends on the stop."""
    if start.doubted:
        yield f"start: {_some(map(shell_word, start.doubted))}: {DOUBTED}"
    for clean, effect in STOPS.items():
        names = [shell_word(path) for path, was_clean in start.clean.items() if was_clean == clean]
        if names:
            yield f"start: {_some(names)}: {effect}"


def _obstacles(start: Start) -> Iterator[str]:
    """Yield the lines about obstacles to the start, or to the use of a log directory."""
    ends = {each.path: each for each in start.fatal}
    given_up = {why.path for why in start.offline.values()}
    alone = [each for each in start.fatal if each.path not in given_up]
    for (reason, remedy), names in _by_reason(alone).items():
        yield f"start: {_some(names)}: {reason}"
        yield from _indented(remedy)
    for path, why in start.offline.items():
        yield f"start: {shell_word(path)} goes offline: {ends.get(why.path, why)}"
        yield from _indented(why.remedy)
    for (reason, remedy), names in _by_reason(start.further).items():
        yield f"start: then {_some(names)}: {reason}"
        yield from _indented(remedy)


def _losses(start: Start) -> Iterator[str]:
    """Yield the lines about logs that the start would truncate."""
    for each in start.of("kept"):
        if each.changes:
            batch = "no other batch" if each.remedy else "no whole batch"
            yield f"start: {each}; {batch} is lost, and the log ends at {each.end[1]}"
            yield from _indented(each.remedy)
        if each.instead:
            yield f"start: {shell_word(each.directory)}: after this change, more records of its log can be read:"
            yield from _indented(each.instead)
        elif each.tried:
            yield f"start: {shell_word(each.directory)}: {each.tried}"
    for each in start.of("cut"):
        yield f"start: {each}"
        yield from _indented(each.remedy)
        yield from _indented(each.tried)
        if each.changes and not each.remedy:
            yield from _indented(each.instead)
            before = "or else, do" if each.instead else "do"
            yield f"  {before} not start the broker before these are copied out of the log directories:"
            yield from (f"    {shell_word(file)}" for file in each.at_risk)
    if any(each.changes and not each.remedy for each in start.of("cut")):
        yield f"  {AFTER_THE_COPIES}"


def _indented(text: str) -> list[str]:
    return [f"  {text}"] if text else []


def _by_reason(things: Iterable[Remark | PartitionStart | Later]) -> dict[tuple[str, str], list[str]]:
    """Return the paths that share a reason and a remedy, by both."""
    names: dict[tuple[str, str], list[str]] = {}
    for each in things:
        names.setdefault((each.reason, each.remedy), []).append(shell_word(each.path))
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
