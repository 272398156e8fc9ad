"""Parts of the prediction of a start as plain values: effects on partitions, segments and files, with reasons."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from kidx.printable import counted, encodable, shell_word
from kidx.startup.readable import NOTHING, Loss
from kidx.startup.remedies import remedy_of

Answer = Literal["yes", "yes, but", "no", "running", "unknown"]
Outcome = Literal["kept", "cut", "foreign", "refused", "stray", "renamed", "empty", "offline", "unknown"]
"""Prediction for a partition. *kept*: all records are kept; *cut*: records are lost or hidden; *foreign*: a log has
another partition's records; *refused*: the broker does not serve the partition; *stray*: the directory is renamed, or
deleted before 3.7, and the partition starts empty; *renamed*: the same because it is no partition of this broker, and
nothing is lost; *empty*: the partition has no directory or no segment, or a broker before 3.7 cannot use its log
directory, and it starts empty; *offline*: the partition is in a log directory that goes offline."""

LaterEffect = Literal["retention", "compaction", "appends", "indexes"]
"""Harm that a broker does to a partition after it has loaded it. *retention*: records are deleted although they are not
old; *compaction*: records are deleted for aborted ones; *appends*: new records cannot be read, or are rejected;
*indexes*: the start has made wrong index files."""


EFFECTS: Final[dict[str, tuple[Outcome, ...]]] = {
    "lose records": ("cut",),
    "serve the records of another partition": ("foreign",),
    "not be served": ("refused",),
    "start empty": ("stray", "empty"),
}
"""Harm that a start does to partitions, the worst first."""
LATER_EFFECTS: Final[dict[LaterEffect, str]] = {
    "retention": "lose records to retention minutes after the start",
    "compaction": "lose records to compaction",
    "appends": "take new records that nobody can read",
    "indexes": "get wrong index files",
}
"""Harm that a broker does to partitions after loading them, the worst first."""
HARMED: Final = tuple(outcome for outcomes in EFFECTS.values() for outcome in outcomes)


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
        outcome: state of the partition after the start.
        reason: reason, if the partition is not kept.
        start: start of the log, before and after; None if unknown.
        end: end of the log, by its batches before the start, and as the broker serves it; None if unknown.
        changes: changes of the segments' ``.log`` files.
        remedy: remedy before the start, if the partition is not kept; empty if none is known.
        instead: remedy that keeps all records of the log; empty if none is known.
        tried: changes that were tried and do not help, with their results; empty if one helps, or none was tried.
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
    tried: str = ""
    lost: Loss = NOTHING
    ends: Ends | None = None

    @property
    def path(self) -> Path:
        """Directory of the partition."""
        return self.directory

    @property
    def at_risk(self) -> tuple[Path, ...]:
        """Files whose records are lost; the files of later segments are often healthy."""
        return tuple(change.file for change in self.changes)

    def __str__(self) -> str:
        said = [self.reason, ", ".join(map(str, self.changes)), *self.limits]
        if self.lost:
            effect = "deleted" if self.changes or self.end[0] == self.end[1] else "hidden"
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

    @property
    def path(self) -> Path:
        """Directory of the partition."""
        return self.directory

    def to_json(self) -> dict[str, Any]:
        """Return an object of ``kidx verify --json``."""
        return {
            "directory": encodable(str(self.directory)),
            "effect": self.effect,
            "reason": encodable(self.reason),
            "files": [encodable(str(path)) for path in self.files],
            "readable_records": self.records,
        }
