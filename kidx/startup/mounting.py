"""Steps before a copy of log directories is mounted, each tried on a view of the copy before it is named.

A copy that was made while a broker ran has files of several moments: a mark of a clean stop, checkpoints, index files
and snapshots of producers that do not fit the logs. A step is named if a verification and a prediction of the view
after it are better than before it. It is then made in the view, so that the next step is tried on its result.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kidx.dialect import Dialect, dialect_of
from kidx.discovery import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG,
    META_PROPERTIES,
    OFFSET_CHECKPOINTS,
    RECOVERY_POINTS,
    START_OFFSETS,
    parse_partition,
)
from kidx.discovery.names import leftover_mark
from kidx.errors import InvalidArgumentError, ToolError
from kidx.findings import Fault
from kidx.printable import counted, encodable, shell_word
from kidx.producers.manager import SNAPSHOT_SUFFIX, list_snapshots
from kidx.startup.answers import HARMED
from kidx.startup.changes import (
    Change,
    forget_clean_stop,
    forget_log_start,
    make_whole_view,
    move_out,
    move_out_of_directory,
    set_high_watermark,
    set_recovery_point,
)
from kidx.startup.checkpoints import UnreadableError, offsets_of, properties_of
from kidx.startup.directories import directories_in
from kidx.startup.evidence import partition_of
from kidx.startup.grouped import Score, Seen
from kidx.startup.kraft import has_metadata_log
from kidx.startup.names import is_of_metadata
from kidx.startup.prediction import predict
from kidx.startup.readable import NOTHING, LoggedRecords, Loss
from kidx.startup.simulation import CheckpointedOffsets, regular_files, scratch_directory, try_load
from kidx.startup.start import without_references
from kidx.verify import verify_paths

if TYPE_CHECKING:
    from kidx.startup.answers import PartitionStart
    from kidx.startup.start import Start
    from kidx.verify import Verification

_BEYOND: Final = frozenset({Fault.PAST_END, Fault.NOT_AT_BATCH, Fault.SHRANK})
"""Kinds of faults of an index file with entries that its log does not have."""
_CHECKPOINTS: Final = {
    Fault.END_BELOW_RECOVERY_POINT: (RECOVERY_POINTS, HIGH_WATERMARKS),
    Fault.END_BELOW_HIGH_WATERMARK: (HIGH_WATERMARKS,),
}
"""The checkpoints that name records which a log has lost, by the kind of the finding."""
_NODE_ID: Final = re.compile(r"(?m)^(node|broker)\.id=.*$")
_DIRECTORY_ID: Final = re.compile(r"(?m)^directory\.id=.*\n?")
_NAMED: Final = 3
"""Maximum number of reasons in a line."""
_ANY: Final = "any-0"
"""Name of a partition, which need not exist, for changes of its log directory."""
_MANY: Final = 32
"""Number of steps about offsets past the end of a log above which they are tried together."""
_LISTED: Final = 200
"""Maximum number of partitions that are listed."""


class Options(NamedTuple):
    """Options of :func:`verify_paths` and :func:`predict`."""

    release: str | Dialect | None = None
    index_interval_bytes: int | None = None
    config: Path | None = None
    records: bool = False
    processes: int | None = None
    marked: bool = False


class Step(NamedTuple):
    """Changes that make a copy better together.

    Attributes:
        changes: the changes.
        reason: what does not fit in the copy.
    """

    changes: tuple[Change, ...]
    reason: str

    def __str__(self) -> str:
        return f"{self.command}  # {self.reason}"

    @property
    def command(self) -> str:
        """Shell command for the operator."""
        return " && ".join(change.command for change in self.changes)

    def to_json(self) -> dict[str, str]:
        """Return an object of ``kidx verify --json``."""
        return {"command": encodable(self.command), "reason": encodable(self.reason)}


class Ending(NamedTuple):
    """A partition that loses something, or has lost it.

    Attributes:
        directory: directory of the partition in the copy.
        end: offset up to which the copy can be used; None if it cannot be used.
        lost: records of the copy that a start after the steps does not serve.
        named: offset that a checkpoint of the copy names past the end; None without one.
        cut: number of bytes after the last whole batch, which a start cuts off.
        reason: why the partition cannot be used, or has lost its beginning; empty if there is no such reason.
    """

    directory: Path
    end: int | None
    lost: Loss = NOTHING
    named: int | None = None
    cut: int = 0
    reason: str = ""

    @property
    def absent(self) -> int:
        """Number of offsets past the end that a checkpoint of the copy says were written."""
        return 0 if self.named is None or self.end is None else max(self.named - self.end, 0)

    @property
    def has_lost(self) -> bool:
        """True if records are lost, and not only bytes after the last whole batch."""
        return bool(self.lost or self.absent or self.reason)

    def __str__(self) -> str:
        said = [self.reason] if self.reason else []
        if self.lost:
            said.append(f"{counted(self.lost.records, 'readable record')} lost, of {self.lost.place}")
        if self.absent:
            said.append(f"its checkpoints name {self.named}: {counted(self.absent, 'offset')} are not in the copy")
        if self.cut:
            said.append(f"{counted(self.cut, 'byte')} after it are no whole batch, and the start cuts them off")
        limit = "not usable" if self.end is None else f"usable up to offset {self.end}"
        return f"{shell_word(self.directory)}: {limit}: {'; '.join(said)}"

    def to_json(self) -> dict[str, Any]:
        """Return an object of ``kidx verify --json``."""
        return {
            "directory": encodable(str(self.directory)),
            "usable_up_to": self.end,
            "lost": self.lost.to_json(),
            "checkpoints_name": self.named,
            "incomplete_bytes": self.cut,
            "reason": encodable(self.reason),
        }


@dataclass(frozen=True, slots=True)
class Mounting:
    """The steps before a copy is mounted, and the content of the copy then.

    Attributes:
        before: effect of a start on the copy without a change.
        after: effect of a start after the steps.
        after_line: the answer after the steps, with the paths of the copy.
        steps: steps, in their order.
        endings: partitions that lose something, or have lost it.
        partitions: number of all partitions.
        of_another: change for another broker, with its result; empty if the copy has no node id.
        limits: lines about effects that were not evaluated.
    """

    before: Start
    after: Start
    after_line: str
    steps: tuple[Step, ...]
    endings: tuple[Ending, ...]
    partitions: int
    of_another: str = ""
    limits: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code: 0 if the copy can be used without a change and without a loss."""
        is_whole = not self.steps and not any(each.has_lost for each in self.endings)
        return 0 if is_whole and self.after.answer == "yes" else 1

    def lines(self) -> list[str]:
        """Return the steps and their result as text; the last line is the verdict."""
        lines = [f"without a change: {without_references(self.before.line)}"] if self.steps else self.before.lines()
        if self.steps:
            lines += [f"{counted(len(self.steps), 'step')} before it is mounted, tried on a view of the copy:"]
            lines += [f"  {step}" for step in self.steps]
            lines += [f"after {'it' if len(self.steps) == 1 else 'them'}: {without_references(self.after_line)}"]
            if self.after.answer != "yes":
                lines.append("kidx verify without --backup says then what else is to be done")
        lines += [str(each) for each in self.endings[:_LISTED]]
        if (more := len(self.endings) - _LISTED) > 0:
            lines.append(f"... and {counted(more, 'partition')} more; --json has all")
        lines += [self.of_another] if self.of_another else []
        return [*lines, *self.limits, self._verdict]

    @property
    def _verdict(self) -> str:
        if not self.after.starts:
            return f"NOT USABLE: {counted(self.partitions, 'partition')} of a broker that would not start"
        whole = self.partitions - len(self.endings)
        ends = f"{counted(whole, 'partition')} usable up to the end of {'its log' if whole == 1 else 'their logs'}"
        others = f", {len(self.endings)} as above" if self.endings else ""
        if any(each.has_lost for each in self.endings):
            records, absent = sum(each.lost.records for each in self.endings), sum(each.absent for each in self.endings)
            lost = f"; {counted(records, 'readable record')} lost, {counted(absent, 'offset')} not in the copy"
            return f"RECORDS LOST: {ends}{others}{lost}"
        if not self.after.answer.startswith("yes"):
            return f"NOT USABLE: {ends}{others}; a start does harm, or its effect is unknown"
        wrong = f"; {counted(self.after.faults, 'file')} wrong after the start, too" if self.after.faults else ""
        return f"{'USABLE AFTER THE STEPS' if self.steps else 'USABLE'}: {ends}{others}{wrong}"

    def to_json(self) -> dict[str, Any]:
        """Return an object of ``kidx verify --json``."""
        return {
            "before": {"answer": self.before.answer, "line": encodable(self.before.line)},
            "steps": [step.to_json() for step in self.steps],
            "after": {"answer": self.after.answer, "line": encodable(self.after_line)},
            "partitions": self.partitions,
            "endings": [each.to_json() for each in self.endings],
            "of_another_broker": encodable(self.of_another),
            "not_checked": [encodable(each) for each in self.limits],
        }


def prepare(result: Verification, start: Start, options: Options) -> Mounting:
    """Return what has to be done before a copy of log directories is mounted.

    Args:
        result: verification of the copy.
        start: prediction for the copy.
        options: what both were made with.

    Raises:
        ToolError: the paths are no log directories, their broker runs, or a view of them cannot be made.
    """
    if not start.directories:
        raise ToolError("--backup needs log directories, and these paths are parts of one")
    if start.answer == "running":
        raise ToolError("--backup needs a copy, and these directories are in use: their broker runs, or files change")
    try:
        with scratch_directory() as scratch:
            return _Copy(result, start, options, scratch).prepare()
    except OSError as error:
        raise ToolError(f"cannot make a view of the copy: {error.strerror or error}: {error.filename}") from error


class _Copy:
    """A copy of log directories, and a view of it with the steps up to now."""

    def __init__(self, result: Verification, start: Start, options: Options, scratch: Path) -> None:
        self._before, self._options = start, options
        self._seen = Seen(result, start, self._original)
        self._dialect = dialect_of(options.release)
        self._views: dict[Path, Path] = {}
        for number, directory in enumerate(start.directories):
            view = scratch / f"{number}" / (directory.absolute().name or "root")
            view.mkdir(parents=True)
            make_whole_view(directory.absolute(), view)
            self._views[directory] = view
        self._scratch = scratch
        self._steps: list[Step] = []
        self._read: dict[Path, dict[tuple[str, int], int]] = {}  # checkpoints of views
        self._losses: dict[Path, Loss] = {}  # of partitions with a step
        self._partitions = list(self._served())
        self._lost_before: dict[Path, list[str]] = defaultdict(list)
        for each in start.lost:
            self._lost_before[each.path].append(each.reason)

    def prepare(self) -> Mounting:
        """Find the steps, and return them with the result of a start after them."""
        named = self._named()
        for directory in self._views:
            self._settle_checkpoints(directory)
            if reasons := self._doubts(directory):
                more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
                self._forget_clean_stop(directory, f"it is of another moment: {reasons[0]}{more}")
        self._settle_together()
        for path in self._partitions:
            self._settle_lines(path)
        self._settle_files()
        if self._losses:
            self._see(*self._look(self._views.values()))
        for directory in self._views:
            if self._seen.start.answer != "yes":
                self._forget_clean_stop(directory, "without it the start recovers the logs")
        partitions = self._partitions if self._seen.start.starts else []
        endings = [each for path in partitions if (each := self._ending(path, named.get(path))) is not None]
        return Mounting(
            self._before,
            self._seen.start,
            self._original(self._seen.start.line),
            tuple(self._steps),
            tuple(endings),
            len(self._partitions),
            self._of_another(),
            tuple(map(self._original, self._seen.start.limits)),
        )

    def _served(self) -> Iterator[Path]:
        """Yield the directories of partitions that a log manager loads and serves."""
        for directory in self._views:
            for path in directories_in(directory):
                parsed = parse_partition(path.name)
                if parsed is not None and not parsed[2] and not is_of_metadata(path.name):
                    yield path

    def _see(self, result: Verification, start: Start) -> None:
        self._seen = Seen(result, start, self._original)

    def _view_of(self, path: Path) -> Path:
        return self._views[path.parent] / path.name

    def _original(self, text: str) -> str:
        """Return a text about the view with the paths of the copy."""
        for directory, view in self._views.items():
            text = text.replace(str(view), str(directory))
        return text

    def _look(self, paths: Iterable[Path], processes: int | None = None) -> tuple[Verification, Start]:
        """Return the verification and the prediction of a view, or of a partition in one."""
        paths, options = list(paths), self._options
        result = verify_paths(
            paths,
            release=options.release,
            index_interval_bytes=options.index_interval_bytes,
            processes=processes or options.processes,
            records=options.records,
            marked=options.marked,
        )
        start = predict(paths, result, options.release, options.index_interval_bytes, config=options.config)
        if start is None or start.answer == "running":
            raise ToolError("the copy changes while it is read")
        return result, start

    # -- steps of a log directory ------------------------------------------------------------------------------------

    def _settle_checkpoints(self, directory: Path) -> None:
        """Find the steps about checkpoints that cannot be read."""
        for name in (*OFFSET_CHECKPOINTS, CLEANED_OFFSETS):
            try:
                offsets_of(self._views[directory] / name)
            except UnreadableError as error:
                change = move_out_of_directory(directory / name)
                self._try_on_directory(directory, change, f"{name} cannot be read: {error}")

    def _forget_clean_stop(self, directory: Path, reason: str) -> None:
        if (self._views[directory] / CLEAN_SHUTDOWN).is_file():
            self._try_on_directory(directory, forget_clean_stop(directory / _ANY), reason)

    def _doubts(self, directory: Path) -> list[str]:
        """Return the logs that do not end where a clean stop has left them, as text."""
        view = self._views[directory]
        if not (view / CLEAN_SHUTDOWN).is_file():
            return []
        points = CheckpointedOffsets(view).points
        found = []
        for path in self._partitions:
            topic, number, _ = parse_partition(path.name) or ("", 0, "")
            point = points.get((topic, number))
            if path.parent != directory or point is None:
                continue
            if point != (end := LoggedRecords(self._view_of(path)).readable_end):
                found.append(f"{RECOVERY_POINTS} has {point} for {shell_word(path.name)}, which ends at {end}")
        return found

    def _try_on_directory(self, directory: Path, change: Change, reason: str) -> None:
        before = self._score_of_all(self._seen.start)
        saved = {path: path.read_bytes() for path in self._views[directory].iterdir() if _is_copied(path)}
        self._apply(change, self._views[directory] / _ANY)
        result, start = self._look(self._views.values())
        if self._score_of_all(start).is_better_than(before):
            self._see(result, start)
            self._steps.append(Step((change,), reason))
            return
        self._read.clear()
        for path, content in saved.items():
            path.write_bytes(content)

    def _score_of_all(self, start: Start) -> Score:
        refuted = sum(len(self._doubts(directory)) for directory in self._views)
        return _score(start, start.records_at_risk, refuted)

    # -- steps of a partition ------------------------------------------------------------------------------------------

    def _settle_together(self) -> None:
        """Try all steps about offsets past the end of a log together if there are many.

        Each of them is better, because it leaves one such statement less.
        """
        number = sum(len(list(self._refuted(path, self._view_of(path)))) for path in self._partitions)
        if number <= _MANY:
            return
        before, known = _score(self._seen.start, self._seen.start.records_at_risk, number), dict(self._views)
        for directory, view in known.items():
            after = self._scratch / "together" / view.parent.name / view.name
            after.mkdir(parents=True)
            make_whole_view(view, after)
            self._views[directory] = after
        steps = []
        for path in self._partitions:
            for step in list(self._refuted(path, known[path.parent] / path.name, self._views[path.parent])):
                steps.append(step)
                for change in step.changes:
                    change.apply(self._view_of(path))
        result, start = self._look(self._views.values())
        if _score(start, start.records_at_risk, 0).is_better_than(before):
            self._see(result, start)
            self._steps += steps
        else:
            self._views = known

    def _settle_lines(self, path: Path) -> None:
        """Find the steps about the lines and the snapshots of a partition."""
        candidates = list(self._refuted(path, self._view_of(path)))
        if not candidates:
            return
        before, _ = self._try({path: ()})[path]
        for step in candidates:
            after, lost = self._try({path: step.changes})[path]
            if after.is_better_than(before):
                before = after
                self._steps.append(step)
                self._change(path, step, lost)

    def _settle_files(self) -> None:
        """Find the steps about the index files and the leftovers of all partitions.

        In each round, the next step of every partition is tried: one verification is about all of them.
        """
        candidates = {path: deque([*self._indexes(path), *self._leftovers(path)]) for path in self._partitions}
        candidates = {path: some for path, some in candidates.items() if some}
        before = {path: score for path, (score, _) in self._try(dict.fromkeys(candidates, ())).items()}
        accepted: dict[Path, list[Step]] = defaultdict(list)
        while candidates:
            steps = {path: some.popleft() for path, some in candidates.items()}
            for path, (after, lost) in self._try({path: step.changes for path, step in steps.items()}).items():
                if after.is_better_than(before[path]):
                    before[path] = after
                    accepted[path].append(steps[path])
                    self._change(path, steps[path], lost)
            candidates = {path: some for path, some in candidates.items() if some}
        self._steps += [step for path in self._partitions for step in accepted[path]]

    def _change(self, path: Path, step: Step, lost: Loss) -> None:
        self._losses[path] = lost
        for change in step.changes:
            self._apply(change, self._view_of(path))

    def _try(self, changes: Mapping[Path, Sequence[Change]]) -> dict[Path, tuple[Score, Loss]]:
        """Return the scores of partitions after some changes, and what a start loses of their records in the copy."""
        if not changes:
            return {}
        with scratch_directory() as scratch:
            views: dict[Path, Path] = {}
            for number, directory in enumerate({path.parent: None for path in changes}):
                target = scratch / f"{number}" / (directory.absolute().name or "root")
                target.mkdir(parents=True)
                names = {path.name for path in changes if path.parent == directory}
                make_whole_view(self._views[directory], target, only=names)
                views |= {directory / name: target / name for name in names}
            impossible = set()
            for path, some in changes.items():
                try:
                    for change in some:
                        change.apply(views[path])
                except FileNotFoundError:  # an earlier step has moved the file
                    impossible.add(path)
            self._read.clear()
            result, start = self._look(views.values(), processes=1 if len(changes) == 1 else None)
            originals = {str(view): str(path) for path, view in views.items()}
            seen = Seen(result, start, lambda text: _replaced(text, originals))
            found = {}
            for path, view in views.items():
                if path in impossible:
                    found[path] = Score(1 << 62, 0, 0, 0, 0), NOTHING
                    continue
                lost = self._lost(path, view, seen.partitions.get(path, ()))
                found[path] = seen.score(path, lost.records, len(list(self._refuted(path, view)))), lost
            return found

    def _lost(self, path: Path, view: Path, effects: Iterable[PartitionStart]) -> Loss:
        """Return what is readable in the copy of a partition, and is not after a start of its view.

        Args:
            effects: effects of this start on the partition, which say it if the view has all logs of the copy.
        """
        if _names_of_logs(view) == _names_of_logs(path) and all(each.outcome == "kept" for each in effects):
            return NOTHING
        logged, checkpoints = LoggedRecords(path), CheckpointedOffsets(view.parent).of(view)
        loaded = try_load(view, self._dialect, checkpoints)
        if loaded.start is None or loaded.end is None:
            return logged.lost([], 0, 0, 0)
        log_start = CheckpointedOffsets(path.parent).of(path).start_offset
        return logged.lost(loaded.pieces_in(view), log_start, loaded.start, loaded.end)

    def _end(self, path: Path) -> int:
        """Return the offset up to which a log can be read after a start of the view."""
        view = self._view_of(path)
        ends = list(self._seen.unreadable.get(path, ()))
        for each in self._seen.partitions.get(path, ()):
            ends += [end for end in (each.ends.served if each.ends else each.end[1],) if end is not None]
        return min(ends) if ends else LoggedRecords(view).readable_end

    def _refuted(self, path: Path, view: Path, state: Path | None = None) -> Iterator[Step]:
        """Yield a step for each statement about a partition that names offsets past the end of its log.

        Args:
            path: directory of the partition in the copy.
            view: the same in the view.
            state: view of the log directory after further steps, to which the next step is added.
        """
        end, state = LoggedRecords(view).readable_end, state or view.parent
        topic, number, _ = parse_partition(path.name) or ("", 0, "")
        changes = {
            START_OFFSETS: forget_log_start(path, state),
            RECOVERY_POINTS: set_recovery_point(path, end, state),
            HIGH_WATERMARKS: set_high_watermark(path, end, state),
        }
        for name, change in changes.items():
            with contextlib.suppress(UnreadableError):
                offset = self._offsets_of(view.parent / name).get((topic, number))
                if offset is not None and offset > end:
                    reason = f"{name} has {offset} for {shell_word(path.name)}, which ends at {end}"
                    yield from (Step((each,), reason) for each in change)
        with contextlib.suppress(InvalidArgumentError):
            for offset in sorted(each for each in list_snapshots(view) if each > end):
                file = path / f"{offset:020d}{SNAPSHOT_SUFFIX}"
                if (view / file.name).is_file():
                    reason = f"a snapshot of the producers at {offset}, and the log ends at {end}"
                    yield Step((move_out(file),), reason)

    def _offsets_of(self, path: Path) -> dict[tuple[str, int], int]:
        """Return a checkpoint, which is read once until a view changes; as :func:`offsets_of`."""
        if path not in self._read:
            self._read[path] = offsets_of(path)
        return self._read[path]

    def _apply(self, change: Change, partition: Path) -> None:
        """Make a change in the view."""
        change.apply(partition)
        self._read.clear()

    def _indexes(self, path: Path) -> Iterator[Step]:
        """Yield steps about index files that are wrong, and that a start does not rebuild.

        A start rebuilds all index files of a segment without an offset index, and others only with it.
        """
        view = self._view_of(path)
        for file in self._seen.not_rebuilt.get(path, ()):
            own = self._seen.kinds[file]
            what = "has entries past the end of its log" if own & _BEYOND else "does not fit its log"
            reason = f"{file.name} {what if (view / file.name).exists() else 'is missing'}"
            files = dict.fromkeys(each for each in (file, file.with_suffix(".index")) if (view / each.name).exists())
            if (view / file.name).exists():
                yield Step((move_out(file),), reason)
            if len(files) > 1 or file not in files:
                changes = tuple(move_out(each) for each in files)
                if changes:
                    yield Step(changes, f"{reason}, and a start rebuilds it with the offset index only")

    def _leftovers(self, path: Path) -> Iterator[Step]:
        """Yield steps about files that an interrupted deletion or compaction has left, if a start does harm."""
        if not self._seen.harms(path):
            return
        view = self._view_of(path)
        groups: dict[tuple[str, str], list[Path]] = defaultdict(list)
        for name in regular_files(view):
            if (mark := leftover_mark(name)) is not None:
                groups[name.partition(".")[0], mark].append(path / name)
        for (base, mark), files in sorted(groups.items()):
            changes = tuple(move_out(each) for each in files)
            yield Step(changes, f"a start with the {mark} files of segment {base} does harm")

    # -- results -------------------------------------------------------------------------------------------------------

    def _named(self) -> dict[Path, int]:
        """Return the largest offset that a checkpoint of the copy says was written to each log that ends before it.

        Checkpoints of an earlier topic of the same name, and of records that were truncated, say nothing about a log.
        """
        found: dict[Path, int] = {}
        known = {directory: _readable_checkpoints(directory) for directory in self._views}
        for finding in self._seen.result.findings:
            path = partition_of(finding)
            for name in _CHECKPOINTS.get(finding.kind, ()):
                if name in (read := known.get(path.parent, {})):
                    offset = read[name].get((finding.topic or "", finding.partition or 0), 0)
                    found[path] = max(offset, found.get(path, 0))
        return found

    def _ending(self, path: Path, named: int | None) -> Ending | None:
        """Return what a partition loses, or has lost; None if that is nothing."""
        view = self._view_of(path)
        if self._seen.start.offline.keys() & {path.parent, view.parent}:
            return Ending(path, None, reason="the broker gives up the log directory")
        effects = self._seen.partitions.get(path) or self._seen.partitions.get(path.parent, [])
        each = next(iter(effects), None)
        lost = self._losses.get(path, NOTHING)
        if each is not None and each.lost:
            lost = self._lost(path, view, effects)
        reason, cut, end = "", 0, self._end(path)
        if each is not None and each.outcome not in {"kept", "cut"}:
            return Ending(path, None, lost, named, 0, self._original(each.reason))
        if each is not None and each.outcome == "kept":
            cut = sum(max(change.before - (change.after or 0), 0) for change in each.changes)
        later = [each.reason for each in self._seen.later.get(path, ())]
        already = list(self._lost_before.get(path, ())) if named is None else []
        if end < LoggedRecords(view).readable_end and not lost:
            already.append("nothing can read the batch there, and the start keeps it")
        reason = "; ".join(map(self._original, [*later, *already][:_NAMED]))
        found = Ending(path, end, lost, named, cut, reason)
        return found if found.has_lost or cut else None

    def _of_another(self) -> str:
        """Return the change for another broker, with the prediction after it; empty if there is no node id.

        The prediction is made with a node id that no partition is assigned to.
        """
        nodes: set[int] = set()
        commands: list[str] = []
        texts: dict[Path, str] = {}
        for directory, view in self._views.items():
            path = view / META_PROPERTIES
            try:
                properties = properties_of(view) or {}
                text = path.read_text("utf-8")
            except (UnreadableError, OSError, UnicodeDecodeError):
                continue
            node = properties.get("node.id", properties.get("broker.id", ""))
            if not node.isdigit() or not _NODE_ID.search(text):
                continue
            nodes.add(int(node))
            texts[path] = text
            file = shell_word((directory / META_PROPERTIES).absolute())
            commands.append(f"sed -E -i -e 's/^(node|broker)\\.id=.*/\\1.id=ID/' -e '/^directory\\.id=/d' {file}")
        if not commands or len(nodes) != 1:
            return ""
        (own,) = nodes
        other = max([own, *self._brokers()]) + 1
        for path, text in texts.items():
            path.write_text(_DIRECTORY_ID.sub("", _NODE_ID.sub(rf"\g<1>.id={other}", text)), "utf-8")
        paths, options = list(self._views.values()), self._options
        start = predict(paths, self._seen.result, options.release, options.index_interval_bytes, config=options.config)
        for path, text in texts.items():
            path.write_text(text, "utf-8")
        assert start is not None
        aside = len(start.of("stray", "renamed")) - len(self._seen.start.of("stray", "renamed"))
        if len(start.fatal) > len(self._seen.start.fatal):
            then = f"; but then: {self._original(start.line)}"
        elif aside > 0:
            then = f"; but KRaft's metadata in the copy assign {counted(aside, 'partition')} to node {own}, not to it"
        elif not any(map(has_metadata_log, paths)):
            then = "; which partitions its cluster assigns to it is not in these files"
        else:
            then = ""
        return f"if another broker than node {own} mounts it, with the node.id ID: {' && '.join(commands)}{then}"

    def _brokers(self) -> set[int]:
        """Return the ids of the brokers that have a partition according to KRaft's metadata."""
        clusters = self._seen.result.clusters.values()
        return {broker for each in clusters for replicas in each.replicas.values() for broker in replicas.brokers}


def _replaced(text: str, originals: Mapping[str, str]) -> str:
    """Return the path of a file or directory of a view as it is in the copy."""
    path = Path(text)
    for view in (path, path.parent):
        if str(view) in originals:
            return text.replace(str(view), originals[str(view)])
    return text


def _readable_checkpoints(directory: Path) -> dict[str, dict[tuple[str, int], int]]:
    """Return the checkpoints of offsets in a log directory that can be read."""
    found = {}
    for name in OFFSET_CHECKPOINTS:
        with contextlib.suppress(UnreadableError):
            found[name] = offsets_of(directory / name)
    return found


def _names_of_logs(directory: Path) -> set[str]:
    return {name for name in regular_files(directory) if LOG in name}


def _is_copied(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _score(start: Start, lost: int, refuted: int) -> Score:
    return Score(
        len(start.fatal) + len(start.offline) + len(start.further),
        lost,
        len(start.of(*HARMED, "unknown")) + len(start.later),
        start.faults,
        refuted,
    )
