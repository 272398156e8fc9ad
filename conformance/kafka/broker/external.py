"""Running broker that the harness did not start; the harness sends requests and reads files, but changes nothing.

::

    with ExternalBroker("127.0.0.1:9092", "/var/lib/kafka/data", "3.9.2") as broker:
        ...  # the broker answers, has this release, and owns this directory

:func:`check_external` compares its lookups by time with a scan of its logs, and verifies its index files. The
broker keeps running, so a log may grow while it is read. Results about records appended in the meantime are ignored.
Nothing is written.
"""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from conformance.errors import ToolError
from conformance.kafka.client import TIMEOUT_S, Address, Client, ClientError
from conformance.kafka.jar_fetch import class_path
from conformance.kafka.releases import load_release
from kidx.discovery import META_PROPERTIES, discover
from kidx.errors import KidxError
from kidx.records import file_batches
from kidx.verify import verify_paths

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType

    from conformance.kafka.client import OffsetResult
    from conformance.kafka.jar_fetch import Progress
    from kidx.records import RecordBatch

_RESPONSE_TIMEOUT_S: Final = 5.0
_SPECIFICATION: Final = re.compile(r"common/message/\w+Request\.json")


class Request(NamedTuple):
    """Request that a release understands, and its highest version; a broker may disable an unstable version."""

    name: str
    highest: int
    unstable: bool


class ExternalBroker:
    """Running broker and its log directory; a context manager that leaves both unchanged.

    Args:
        bootstrap: ``HOST:PORT``.
        log_dir: one of the broker's ``log.dirs``.
        release: the broker's release according to the user.
        progress: called with the progress of fetching the release's jars, which define its requests.

    Raises:
        ToolError: the address is malformed, does not answer, or belongs to a broker of another release; or the
            directory cannot be read, or belongs to another broker or cluster.
        UnknownReleaseError: the release is not locked.
    """

    def __init__(
        self,
        bootstrap: str,
        log_dir: str | os.PathLike[str],
        release: str,
        *,
        progress: Progress | None = None,
    ) -> None:
        self.release = load_release(release).name
        self.bootstrap = bootstrap
        self._address = Address.parse(bootstrap, "--bootstrap-server")
        self.log_dir = Path(log_dir)
        try:
            with self._client(_RESPONSE_TIMEOUT_S) as client:
                metadata = client.metadata()
                understood = {key: versions.stop - 1 for key, versions in client.offered.items()}
        except ClientError as error:
            raise ToolError(f"no broker answers at {bootstrap}: it {error.what}") from error
        meta = _meta_properties(self.log_dir)
        if meta.get("cluster.id") != metadata.cluster_id:
            raise ToolError(
                f"{self.log_dir} belongs to the cluster {meta.get('cluster.id')}, "
                f"and the broker at {bootstrap} to {metadata.cluster_id}"
            )
        node_id = meta.get("node.id", meta.get("broker.id", ""))
        if node_id not in {str(known) for known in metadata.brokers}:
            raise ToolError(
                f"{self.log_dir} belongs to broker {node_id or 'without an id'}, which the cluster at {bootstrap} "
                f"does not know: it has {', '.join(map(str, sorted(metadata.brokers)))}"
            )
        self.node_id = int(node_id)
        reason = mismatch_reason(understood, requests_of(self.release, progress))
        if reason:
            raise ToolError(f"the broker at {bootstrap} is not of Kafka {self.release}: it {reason}")

    def connect(self) -> Client:
        """Return a client of the broker.

        Raises:
            ClientError: here and in the client: the broker no longer answers, or rejects a request.
        """
        return self._client(TIMEOUT_S)

    def _client(self, limit: float) -> Client:
        return Client(self._address, limit=limit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


def _meta_properties(log_dir: Path) -> dict[str, str]:
    """Return the properties that a broker has written into its log directory.

    Raises:
        ToolError: the file cannot be read, or does not exist.
    """
    try:
        text = (log_dir / META_PROPERTIES).read_text("utf-8")
        next(log_dir.iterdir(), None)
    except FileNotFoundError as error:
        reason = "is not a broker's log directory: it has no meta.properties" if log_dir.is_dir() else "does not exist"
        raise ToolError(f"{log_dir} {reason}") from error
    except (OSError, UnicodeError) as error:
        raise ToolError(f"cannot read {log_dir}: {getattr(error, 'strerror', None) or error}") from error
    lines = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in lines}


def requests_of(release: str, progress: Progress | None = None) -> dict[int, Request]:
    """Return the requests that a release understands, by API key, from the specifications in its own jar.

    Raises:
        FetchError: the jar cannot be fetched.
    """
    jars = class_path(release, "index", progress=progress)
    clients = next(jar for jar in jars if jar.name == f"kafka-clients-{release}.jar")
    found: dict[int, Request] = {}
    with zipfile.ZipFile(clients) as jar:
        for name in filter(_SPECIFICATION.fullmatch, jar.namelist()):
            lines = jar.read(name).decode("utf-8").splitlines()
            # JSON with a licence in comments.
            message = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
            highest = str(message["validVersions"]).rpartition("-")[2]
            if highest.isdecimal():  # "none" is a request that has been removed
                unstable = bool(message.get("latestVersionUnstable", False))
                found[int(message["apiKey"])] = Request(message["name"], int(highest), unstable)
    return found


def mismatch_reason(understood: Mapping[int, int], requests: Mapping[int, Request]) -> str:
    """Return why a broker cannot have the release with these requests; empty if it may have the release.

    Most patch releases understand the same requests. Settings may disable requests and unstable versions. But a broker
    understands no request that its release lacks, and every other request up to the release's highest version.

    Args:
        understood: highest version of each request that the broker understands, by API key.
        requests: requests of the release, by API key.
    """
    for key, highest in sorted(understood.items()):
        request = requests.get(key)
        if request is None:
            return f"understands request {key}, which that release does not have"
        if highest != request.highest and not (request.unstable and highest == request.highest - 1):
            return f"understands {request.name} up to version {highest}, and that release up to {request.highest}"
    return ""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Violation of a clause: the clause, the file or the query, and the expected and the actual result as text."""

    clause: str
    subject: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"{self.clause} {self.subject}: expected {self.expected}, got {self.actual}"


TARGETS: Final = 150
"""Maximum number of timestamps looked up per partition."""
NOT_LEADER: Final = "NOT_LEADER_FOR_PARTITION"
_LATEST: Final = -1
_EARLIEST: Final = -2
_TRIES: Final = 3


@dataclass(slots=True)
class ExternalCheckResult:
    """Numbers of checked partitions, responses and index files; reasons for skipped partitions; and mismatches."""

    partitions: int = 0
    answers: int = 0
    index_files: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    mismatches: list[Mismatch] = field(default_factory=list)


def check_external(broker: ExternalBroker) -> ExternalCheckResult:
    """Check all partitions in the broker's log directory that it leads.

    Raises:
        ClientError: the broker no longer answers.
    """
    checked = ExternalCheckResult()
    verification = verify_paths([broker.log_dir], release=broker.release)
    for finding in verification.findings:
        if finding.verdict not in {"exact", "sound"}:
            checked.mismatches.append(Mismatch(finding.clause, finding.path, "a sound index", finding.message))
    checked.index_files = sum(not file.path.endswith(".log") for file in verification.files)
    with broker.connect() as client:
        for partition in discover([broker.log_dir]).partitions:
            if partition.topic is None or partition.partition is None or not partition.segments:
                continue
            logs = [segment.log for segment in partition.segments]
            _check_partition(client, partition.topic, partition.partition, logs, checked)
    return checked


def _check_partition(client: Client, topic: str, number: int, logs: list[Path], checked: ExternalCheckResult) -> None:
    name = f"{topic}-{number}"

    def look_up(target: int) -> OffsetResult:
        return client.list_offset(topic, target, partition=number)

    for _ in range(_TRIES):
        start, end = (look_up(special) for special in (_EARLIEST, _LATEST))
        if start.error or end.error or start.offset is None or end.offset is None:
            led = (start.error or end.error) == NOT_LEADER
            checked.skipped[name] = "led by another broker" if led else f"rejected: {start.error or end.error}"
            return
        try:
            log = [list(file_batches(path)) for path in logs]
            targets = _targets(log)
            expected = [_first(log, start.offset, target) for target in targets]
        except (OSError, KidxError) as error:
            checked.skipped[name] = f"cannot read its log: {error}"
            continue  # the broker is deleting or writing a segment
        answers = [look_up(target) for target in targets]
        if look_up(_EARLIEST).offset != start.offset:
            checked.skipped[name] = "its log start offset keeps changing"
            continue
        checked.skipped.pop(name, None)
        checked.partitions += 1
        for answer, record in zip(answers, expected, strict=True):
            found = None if answer.offset is None else (answer.offset, answer.timestamp)
            known = record if record is not None and record[0] < end.offset else None
            if found == known or (known is None and found is not None and found[0] >= end.offset):
                checked.answers += 1
            else:
                subject = f"{name} at {answer.target}"
                checked.mismatches.append(Mismatch("LO-6", subject, f"{known} (its log)", f"{answer} (the broker)"))
        return


def _targets(log: Sequence[Sequence[RecordBatch]]) -> list[int]:
    largest = sorted({batch.max_timestamp for batches in log for batch in batches if batch.max_timestamp >= 0})
    some = largest[:: max(1, 3 * len(largest) // TARGETS)]
    around = {timestamp + step for timestamp in some for step in (-1, 0, 1)}
    return sorted(target for target in around | {0} if target >= 0)


def _first(log: Sequence[Sequence[RecordBatch]], start: int, target: int) -> tuple[int, int] | None:
    """Return offset and timestamp that a lookup has to find (LO-6, FR-1), or None.

    This is the first record at or after the target, in the first segment whose largest timestamp reaches the target.
    """
    for batches in log:
        if any(batch.max_timestamp >= target for batch in batches):
            return next(_reaching(batches, start, target), None)
    return None


def _reaching(batches: Sequence[RecordBatch], start: int, target: int) -> Iterator[tuple[int, int]]:
    for batch in batches:
        if batch.max_timestamp >= target and batch.last_offset >= start:
            for record in batch:
                if record.timestamp >= target and record.offset >= start:
                    yield record.offset, record.timestamp
