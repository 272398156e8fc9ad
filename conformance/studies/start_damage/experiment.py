"""Experiment: predicts what a broker does when it starts with corrupt files, starts it, and compares.

There are two original directories, one after a clean stop and one after a kill. Each start uses a corrupt copy.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from conformance.scratch import scratch_directory
from conformance.studies.start_damage.cases import CASES, Case
from conformance.studies.start_damage.corruptions import InapplicableError, Site, name_of
from conformance.studies.start_damage.observing import (
    LAST_MS,
    LOG_DIRS,
    Prepared,
    Shutdown,
    observe,
    prepare,
    topic_properties,
)
from kidx.errors import KidxError
from kidx.records import file_batches
from kidx.repair import plan
from kidx.segment import file_name
from kidx.startup import predict
from kidx.startup.readable import LoggedRecords
from kidx.startup.simulation import CheckpointedOffsets
from kidx.verify import verify_paths

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.studies.start_damage.observing import Observed, Partition
    from kidx.startup import Start

_FEW_PARTITIONS: Final = 4
"""Number of partitions of a broker whose corruption affects more than one partition."""
_QUICK_PARTITIONS: Final = 16
"""Maximum number of partitions with which a broker still starts quickly."""


class StartResult(msgspec.Struct, frozen=True):
    """Prediction and result of one case.

    Attributes:
        shutdown: the way in which the broker was stopped.
        answer: answer of ``kidx verify``: may the broker be started?
        predicted: predicted state of the broker, its log directories and the corrupt partition.
        happened: actual state, in the same format.
        said: first error in the broker's log if the broker did not start.
        followed: number of commands of the advice that were executed before the start.
    """

    damage: str
    shutdown: Shutdown
    answer: str
    predicted: str
    happened: str
    said: str = ""
    followed: int = 0

    @property
    def as_predicted(self) -> bool:
        """True if the prediction was correct."""
        return self.predicted == self.happened


def try_starts(
    release: str,
    cases: Sequence[Case] = CASES,
    report: Callable[[str], None] = lambda _: None,
    predictor: Callable[..., Start | None] = predict,
) -> list[StartResult]:
    """Corrupt copies of a broker's directories, start the broker with each, and return predictions and results.

    Args:
        cases: The cases to try.
        report: A callback that receives a line of text for each start.
        predictor: The function that predicts; a test may pass a defective one.

    Raises:
        BrokerError: A broker rejects a request while the directories are prepared.
    """
    with scratch_directory() as scratch:
        experiment = Experiment(release, scratch, report, predictor)
        found = {
            (outcome.damage, outcome.shutdown): outcome
            for shared in experiment.starts(cases)
            for outcome in experiment.start(shared)
        }
    return [found[case[:2]] for case in cases if case[:2] in found]


class Shared(NamedTuple):
    """Cases that share a start.

    Attributes:
        alone: True if there is only one, because it affects more than one partition.
    """

    cases: tuple[Case, ...]
    alone: bool

    def __str__(self) -> str:
        return str(self.cases[0]) if self.alone else f"{self.cases[0].shutdown}, {len(self.cases)} cases"


class Experiment:
    """Starts of a release's broker with corrupt copies of its directories.

    Args:
        scratch: A directory for the broker's directories.
        report: See :func:`try_starts`, as for ``predictor``.

    Attributes:
        report: See above.
        follows: True if the advice is followed before each start; then only cases with advice have results.
    """

    def __init__(
        self,
        release: str,
        scratch: Path,
        report: Callable[[str], None] = lambda _: None,
        predictor: Callable[..., Start | None] = predict,
    ) -> None:
        self.release, self.scratch, self.report, self.predictor = release, scratch, report, predictor
        self.follows = False
        self._partitions = _FEW_PARTITIONS
        self._prepared: dict[int, Prepared] = {}
        self._dangerous: list[Case] = []

    def starts(self, cases: Sequence[Case]) -> Iterator[Shared]:
        """Yield the cases that share a start; then each that is alone, or for which :meth:`start` finds that it is."""
        sharing = [case for case in cases if not case.alone]
        self._dangerous = [case for case in cases if case.alone]
        by_shutdown = {
            case.shutdown: tuple(each for each in sharing if each.shutdown == case.shutdown) for case in sharing
        }
        self._partitions = max([_FEW_PARTITIONS, *map(len, by_shutdown.values())])
        for some in by_shutdown.values():
            yield Shared(some, alone=False)
        if self._partitions > _QUICK_PARTITIONS:  # a broker with fewer partitions starts sooner
            self._partitions = _FEW_PARTITIONS
        for case in self._dangerous:
            yield Shared((case,), alone=True)

    def start(self, shared: Shared) -> list[StartResult]:
        """Start the broker with cases that share a start; return the results of those that affect no others.

        Raises:
            BrokerError: A broker rejects a request while the directories are prepared.
        """
        if self._partitions not in self._prepared:
            self._prepared[self._partitions] = prepare(
                self.release, self.scratch / str(self._partitions), self._partitions
            )
        prepared = self._prepared[self._partitions]
        outcomes, dangerous = self._together(prepared, shared.cases[0].shutdown, shared.cases, alone=shared.alone)
        self._dangerous += dangerous
        return list(outcomes.values())

    def _together(
        self, prepared: Prepared, shutdown: Shutdown, cases: Sequence[Case], *, alone: bool
    ) -> tuple[dict[Case, StartResult], list[Case]]:
        """Try cases that share a start; ``alone`` is True if there is only one.

        Returns:
            The outcomes, and the cases that were not tried because they would affect the partitions of others.
        """
        original = prepared.directories[shutdown]
        numbers = [_elsewhere(original)] if alone else list(range(len(cases)))
        dangerous: list[Case] = []
        while True:
            root = self.scratch / "damaged"
            shutil.rmtree(root, ignore_errors=True)
            shutil.copytree(original, root)
            sites = {}
            for number, case in zip(numbers, cases, strict=True):
                if case not in dangerous:
                    with contextlib.suppress(InapplicableError):
                        sites[case] = _corrupt(root, number, case)
            if not sites:
                return {}, dangerous
            readable = {case: _readable(site.partition) for case, site in sites.items()}
            start = self._predicted(root)
            followed = follow(root, self.release, start, self._predicted) if self.follows else []
            start = self._predicted(root) if followed else start
            affecting = [] if alone else [case for case, site in sites.items() if _affects_others(start, site)]
            if not affecting:
                break
            dangerous += affecting
        commands = {
            case: [each for each in followed if alone or _is_about(each.command, site)] for case, site in sites.items()
        }
        if self.follows:
            sites = {case: site for case, site in sites.items() if commands[case]}
            if not sites:
                return {}, dangerous
        before = {case: _Log(site.partition) for case, site in sites.items()}
        to_observe = range(_FEW_PARTITIONS) if alone else [_number(site) for site in sites.values()]
        last, expires = LAST_MS[shutdown] + 1000, not alone or bool(start.later)
        observed = observe(self.release, root, to_observe, last, with_retention=expires, reads_all=self.follows)
        outcomes = {}
        for case, site in sites.items():
            partition = observed.partitions[_number(site)]
            predicted = _predicted(start, site, before[case])
            happened = _happened(observed, partition, site, before[case])
            if self.follows and observed.started:
                announced = sum(each.cost for each in commands[case]) + _announced(start, site, readable[case])
                predicted += f", at most {announced} records lost"
                lost = max(0, readable[case] - partition.readable)
                problems = [each.problem for each in commands[case] if each.problem]
                happened += "".join(f", the advice fails: {each}" for each in problems[:1])
                happened += f", {lost if lost > announced else f'at most {announced}'} records lost"
            outcomes[case] = StartResult(
                case.name, case.shutdown, start.answer, predicted, happened, observed.said, len(commands[case])
            )
        right = sum(outcome.as_predicted for outcome in outcomes.values())
        what = str(next(iter(sites))) if alone else f"{shutdown}, {len(sites)} partitions"
        self.report(f"{self.release}: {what}: {right} of {len(outcomes)} as predicted")
        return outcomes, dangerous

    def _predicted(self, root: Path) -> Start:
        paths = [root / name for name in LOG_DIRS]
        found = verify_paths(paths, release=self.release, processes=1)
        config: dict[str, Path] = {}
        if (root / "zookeeper").is_dir():  # it has the settings of the topics
            config["config"] = root / "topics.properties"
            config["config"].write_text(topic_properties(), "utf-8")
        start = self.predictor(paths, found, self.release, **config)
        assert start is not None
        return start


_COMMAND: Final = re.compile(r" +(?:if [^:]*: )?(\S.*?)  # (?:(\d+)|no) readable records? .*; then verify again")
"""Line of advice: a command, and the number of readable records that it costs."""
_ROUNDS: Final = 5
"""Maximum number of times that advice is followed, verified again, and followed again."""


class Followed(NamedTuple):
    """Executed command of the advice.

    Attributes:
        cost: announced number of readable records that are lost.
        problem: the reason why the advice is wrong: the command failed, or was advised again; empty if it is right.
    """

    command: str
    cost: int = 0
    problem: str = ""


def follow(root: Path, release: str, start: Start, predict_again: Callable[[Path], Start]) -> list[Followed]:
    """Execute the commands that the answer prints, until it prints no new ones.

    Then index files that can be rebuilt are rebuilt, as ``next:`` says.

    Args:
        root: The broker's directory.
        start: The prediction.
        predict_again: The function that verifies and predicts.
    """
    done: dict[str, Followed] = {}
    for _ in range(_ROUNDS):
        found = [(match[1], int(match[2] or 0)) for line in start.lines() if (match := _COMMAND.fullmatch(line))]
        done |= {each: done[each]._replace(problem="it is advised again") for each, _ in found if each in done}
        new = {command: cost for command, cost in found if command not in done}
        if not new:
            break
        done |= {each: Followed(each, cost, _problem_of(["sh", "-c", each])) for each, cost in new.items()}
        start = predict_again(root)
    paths = [root / name for name in LOG_DIRS]

    def repairable() -> list[Path]:
        return plan(verify_paths(paths, release=release, processes=1)).directories

    if directories := repairable():
        _problem_of([sys.executable, "-m", "kidx", "repair", *map(str, paths), "--kafka", release])
        left = repairable()
        for each in directories:
            done[str(each)] = Followed(f"kidx repair {each} ", problem="it is not repaired" if each in left else "")
    return list(done.values())


def _problem_of(words: list[str]) -> str:
    """Execute a command, and return its output if it failed."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 -- printed by kidx
    return f"{done.stdout}{done.stderr}"[-300:] if done.returncode else ""


def _is_about(command: str, site: Site) -> bool:
    """Return True if a command names the partition's directory, or its line in a checkpoint."""
    topic, _, number = site.partition.name.rpartition("-")
    names = f"{site.partition}/", f"{site.partition} ", f"^{topic}[[:space:]]+{number}[", f"{topic} {number} "
    return any(name in command for name in names)


def _announced(start: Start, site: Site, readable: int) -> int:
    """Return the number of records of a partition that a prediction says to be lost, or no longer served."""
    found = [each for each in start.partitions if each.directory == site.partition]
    if any(each.outcome in _STATES for each in found):
        return readable
    losses = [each.readable for each in found]
    return sum(losses) + sum(each.records for each in start.later if each.directory == site.partition)


def _readable(directory: Path) -> int:
    """Return the number of records of a partition that a consumer gets, segment by segment."""
    return LoggedRecords(directory).reached if directory.is_dir() else 0


def _elsewhere(original: Path) -> int:
    """Return the number of a partition that is not in the log directory with KRaft's own log."""
    return next(number for number in range(_FEW_PARTITIONS) if (original / LOG_DIRS[1] / name_of(number)).is_dir())


def _corrupt(root: Path, number: int, case: Case) -> Site:
    """Corrupt a partition; return its site afterwards, because the corruption may have moved it."""
    site = _site(root, number)
    assert site is not None
    case.do(site)
    return _site(root, number) or site


def _site(root: Path, number: int) -> Site | None:
    """Return the site of the partition with a number; None if no log directory has it."""
    places = (root / name / name_of(number) for name in LOG_DIRS)
    return next((Site(root, path) for path in places if path.is_dir()), None)


def _number(site: Site) -> int:
    return int(site.partition.name.rpartition("-")[2])


def _affects_others(start: Start, site: Site) -> bool:
    """Return True if the broker, a log directory, or other partitions are predicted to fail because of this one."""
    paths = [each.path for each in (*start.fatal, *start.offline.values())]
    paths += [each.path for each in start.of("refused")]
    renamed = f"{site.partition.name}."
    return any(
        path == site.partition or site.partition in path.parents or path.name.startswith(renamed) for path in paths
    )


class _Log:
    """Log before the start: its end, and the number of bytes of complete batches in each segment.

    Segments below the log start are excluded, because retention deletes them in any case.
    """

    def __init__(self, directory: Path) -> None:
        self.exists = directory.is_dir()
        logged = LoggedRecords(directory) if self.exists else None
        self.end = logged.end if logged is not None else 0
        sizes = logged.sizes if logged is not None else {}
        start = CheckpointedOffsets(directory.parent).of(directory).start_offset
        bases = sorted(sizes)
        below = {base for base, following in pairwise(bases) if following <= start <= self.end}
        self.sizes = {
            base: _complete_size(directory / file_name(base, ".log"), size)
            for base, size in sizes.items()
            if base not in below
        }

    def change_to(self, after: Mapping[int, int | None], end: int | None) -> str:
        """Describe what the start has changed; bytes after the last complete batch are ignored.

        Args:
            after: The size of each segment after the start, by base offset; None if it was deleted.
            end: The log end offset after the start.
        """
        kept = {
            base: None if (size := after.get(base)) is None else min(size, before)
            for base, before in self.sizes.items()
        }
        changes = [
            f"{base} {'deleted' if size is None else 'emptied' if not size else f'cut to {size}'}"
            for base, size in kept.items()
            if size != self.sizes[base]
        ]
        return ", ".join([f"end {end}", *changes])


def _complete_size(path: Path, size: int) -> int:
    """Return the number of bytes of complete batches, whether or not they are valid."""
    end = 0
    with contextlib.suppress(KidxError):
        for batch in file_batches(path):
            end += batch.size_in_bytes
    return min(end, size)


_UNREAD: Final = ", new records cannot be read"
_STATES: Final = {"stray": "stray, starts empty", "empty": "no log, starts empty", "refused": "not served"}


def _predicted(start: Start, site: Site, log: _Log) -> str:
    """Return the prediction as text."""
    if start.fatal:
        return "does not start"
    said = _offline([path.name for path in start.offline])
    found = next((each for each in start.partitions if each.directory == site.partition), None)
    if site.log_dir in start.offline:
        is_elsewhere = found is not None and found.outcome == "empty"
        return said + ("partition ends at 0" if is_elsewhere else "partition offline")
    if found is not None and found.outcome in _STATES:
        return said + _STATES[found.outcome]
    if found is not None and found.outcome == "unknown":
        return f"{said}unknown: {found.reason}"
    changed = {int(change.file.stem): change.after for change in found.changes} if found is not None else {}
    later = [each for each in start.later if each.directory == site.partition]
    changed |= dict.fromkeys(int(path.name[:20]) for each in later for path in each.files)
    copies = [each for each in start.partitions if each.directory.name.startswith(f"{site.partition.name}.")]
    if not log.sizes and copies:  # a copy that was being moved becomes the partition, or the partition is made
        return f"{said}end {copies[0].end[1]}" if copies[0].outcome == "kept" else f"{said}{_STATES['empty']}"
    end = log.end if found is None or found.end[1] is None else found.end[1]
    unread = _UNREAD if any(each.effect == "appends" for each in later) else ""
    return said + log.change_to(log.sizes | changed, end) + unread


def _happened(observed: Observed, partition: Partition, site: Site, log: _Log) -> str:
    """Return the observed result as text, in the format of a prediction."""
    if not observed.started:
        return "does not start" if observed.started is False else "neither serves nor ends"
    said = _offline(observed.offline)
    if site.log_dir.name in observed.offline:
        return said + ("partition offline" if partition.end is None else f"partition ends at {partition.end}")
    is_deleted = partition.deleted and partition.end is not None
    if (partition.strays or is_deleted) and log.exists and not partition.end:
        return f"{said}stray, starts empty"
    if not log.sizes and partition.end == 0:
        return f"{said}no log, starts empty"
    if partition.end is None:
        return f"{said}not served"
    state = log.change_to(next(iter(partition.segments.values()), {}), partition.end)
    return said + state + (_UNREAD if partition.unread else "")


def _offline(names: Sequence[str]) -> str:
    return f"{' and '.join(names)} offline, " if names else ""
