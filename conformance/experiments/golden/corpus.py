"""Golden corpus: recorded files and lookup results of a real broker, listed in ``corpus.json``.

:func:`pack` writes a corpus to an archive such as ``3.9.2.tar.xz``; equal files give equal archives.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self

from conformance.errors import ToolError
from conformance.kafka.client import Isolation, OffsetResult

if TYPE_CHECKING:
    from collections.abc import Mapping

CORPUS_FILE: Final = "corpus.json"
RUNNING: Final = "running"
"""Directory of the index files that were copied while the broker was running."""
_FORMAT: Final = 1

Kind = Literal["in_place", "rebuilt", "marker"]
"""Kind of an append; see :class:`RecordedAppend`."""


class RecordedAppend(NamedTuple):
    """One append to a log: its first and last offset, both inclusive, and its kind.

    ``in_place``: the batch is as the producer built it. ``rebuilt``: the leader recompressed or converted the batch.
    ``marker``: the end of a transaction. In uncompressed message format v1, every record is a batch.
    """

    first_offset: int
    last_offset: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class Partition:
    """Partition of a corpus.

    Attributes:
        name: name of the directory: topic and number.
        why: purpose of the topic.
        config: settings of the topic.
        leader_epoch: epoch of the leader that answered.
        appends: all appends to the log, in order.
        restarts: log end offsets at which the broker was stopped cleanly and started again.
        files: SHA-256 by name, after the last clean stop.
        running: SHA-256 of the active segment's index files before that stop.
        answers: lookup results by isolation level.
    """

    name: str
    why: str
    config: dict[str, str]
    leader_epoch: int
    appends: tuple[RecordedAppend, ...]
    restarts: tuple[int, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    running: dict[str, str] = field(default_factory=dict)
    answers: dict[Isolation, tuple[OffsetResult, ...]] = field(default_factory=dict)

    def logs(self, directory: Path) -> list[Path]:
        """Return the ``.log`` files below the directory of a corpus, in order."""
        return [directory / self.name / name for name in sorted(self.files) if name.endswith(".log")]

    def to_json(self) -> dict[str, Any]:
        """Return the partition as part of ``corpus.json``."""
        return {
            "name": self.name,
            "why": self.why,
            "config": self.config,
            "leader_epoch": self.leader_epoch,
            "calls": list(map(list, self.appends)),
            "restarts": list(self.restarts),
            "files": self.files,
            "running": self.running,
            "answers": {level: [answer.to_json() for answer in answers] for level, answers in self.answers.items()},
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Return the partition of a part of ``corpus.json``."""
        answers = {level: tuple(map(OffsetResult.from_json, rows)) for level, rows in document["answers"].items()}
        appends, restarts = tuple(RecordedAppend(*row) for row in document.pop("calls")), tuple(document["restarts"])
        return cls(**document | {"answers": answers, "appends": appends, "restarts": restarts})


@dataclass(frozen=True, slots=True)
class Corpus:
    """Files and lookup results of one broker.

    Attributes:
        mode: ``kraft`` or ``zookeeper``.
        config: settings of the broker.
        seed: seed of the recorded operations.
        kidx: version of kidx that recorded the corpus.
        command: command that recorded the corpus.
        list_offsets_version: version of the ListOffsets requests.
        partitions: the recorded partitions.
    """

    directory: Path
    release: str
    mode: str
    config: dict[str, str]
    seed: int
    kidx: str
    command: str
    list_offsets_version: int
    partitions: tuple[Partition, ...]

    def save(self) -> None:
        """Write ``corpus.json``."""
        document = {
            "format": _FORMAT,
            "release": self.release,
            "mode": self.mode,
            "config": self.config,
            "seed": self.seed,
            "kidx": self.kidx,
            "command": self.command,
            "list_offsets_version": self.list_offsets_version,
            "columns": {"calls": list(RecordedAppend._fields), "answers": list(OffsetResult._fields[:4])},
            "partitions": [partition.to_json() for partition in self.partitions],
        }
        (self.directory / CORPUS_FILE).write_text(_text(document) + "\n", "utf-8")


def load_corpus(directory: str | Path) -> Corpus:
    """Return the corpus in a directory; only ``corpus.json`` is read.

    Raises:
        ToolError: the file cannot be read, or is no corpus of this version.
    """
    path = Path(directory) / CORPUS_FILE
    try:
        document = json.loads(path.read_text("utf-8"))
        if document.pop("format") != _FORMAT:
            raise ToolError(f"{path} has a format that this version cannot read")
        del document["columns"]
        partitions = tuple(map(Partition.from_json, document.pop("partitions")))
        return Corpus(path.parent, partitions=partitions, **document)
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"{path} is not a corpus: {error!r}") from error


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _text(value: Any, margin: str = "") -> str:
    """Return JSON in which an array or object that contains no other is on one line."""
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    is_files = isinstance(value, dict) and len(parts) > 1 and all(isinstance(p, str) and len(p) == 64 for p in parts)
    if not is_files and not any(isinstance(part, dict | list) and part for part in parts):
        return json.dumps(value, ensure_ascii=False)
    inner = margin + " "
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {_text(part, inner)}" for key, part in value.items()]
        left, right = "{}"
    else:
        lines, (left, right) = [_text(part, inner) for part in parts], "[]"
    return f"{left}\n{inner}" + f",\n{inner}".join(lines) + f"\n{margin}{right}"


ARCHIVE: Final = ".tar.xz"


def write_archive(target: Path, files: Mapping[str, Path]) -> None:
    """Write an archive, sorted by name, without times, owners or modes.

    Args:
        target: path of the archive.
        files: files by their names in the archive.
    """
    with lzma.open(target, "wb", preset=9) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for name, path in sorted(files.items()):
            data = path.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))


def pack(directory: Path) -> Path:
    """Write the archive of a directory next to it, and return its path."""
    target = directory.with_name(f"{directory.name}{ARCHIVE}")
    paths = (path for path in directory.rglob("*") if path.is_file())
    write_archive(target, {path.relative_to(directory.parent).as_posix(): path for path in paths})
    return target


def unpack(archive: Path, directory: Path) -> None:
    """Extract an archive below a directory."""
    with tarfile.open(archive) as packed:
        packed.extractall(directory, filter="data")
