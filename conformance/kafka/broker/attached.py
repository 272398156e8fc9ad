"""A broker that the harness did not start: sends it requests, reads its files, and changes nothing.

::

    with AttachedBroker("127.0.0.1:9092", "/var/lib/kafka/data", "3.9.2") as broker:
        ...  # it answers, it is of that release as far as one can tell, and the directory is its own
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from conformance.errors import ToolError
from conformance.kafka.client import LIMIT, Address, Client, ClientError
from conformance.kafka.fetch import class_path
from conformance.kafka.releases import load_release
from kidx.discovery import META_PROPERTIES

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import TracebackType

    from conformance.kafka.fetch import Progress

_ANSWER_LIMIT: Final = 5.0
_SPECIFICATION: Final = re.compile(r"common/message/\w+Request\.json")


class Request(NamedTuple):
    """A request that a release understands: its name, and its highest version, which may be switched off."""

    name: str
    highest: int
    unstable: bool


class AttachedBroker:
    """A running broker and its log directory; a context manager that leaves it as it is.

    Args:
        bootstrap: ``HOST:PORT``.
        log_dir: one of its ``log.dirs``.
        release: what it is said to be.
        progress: called with the progress of fetching jars: the release's own say what it understands.

    Raises:
        ToolError: the address is malformed, does not answer, or is that of a broker of another release; or the
            directory cannot be read, or is that of another broker or cluster.
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
        self._address = Address.parse(bootstrap, "--bootstrap")
        self.log_dir = Path(log_dir)
        try:
            with self._client(_ANSWER_LIMIT) as client:
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
        why = why_not(understood, requests_of(self.release, progress))
        if why:
            raise ToolError(f"the broker at {bootstrap} is not of Kafka {self.release}: it {why}")

    def connect(self) -> Client:
        """Return a client of it.

        Raises:
            ClientError: here and in the client: it does not answer any more, or refuses what it is asked.
        """
        return self._client(LIMIT)

    def _client(self, limit: float) -> Client:
        return Client(self._address, limit=limit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


def _meta_properties(log_dir: Path) -> dict[str, str]:
    """What a broker has written into its log directory about itself.

    Raises:
        ToolError: it cannot be read, or there is nothing.
    """
    try:
        text = (log_dir / META_PROPERTIES).read_text("utf-8")
        next(log_dir.iterdir(), None)
    except FileNotFoundError as error:
        why = "is not a broker's log directory: it has no meta.properties" if log_dir.is_dir() else "does not exist"
        raise ToolError(f"{log_dir} {why}") from error
    except (OSError, UnicodeError) as error:
        raise ToolError(f"{log_dir} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    lines = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in lines}


def requests_of(release: str, progress: Progress | None = None) -> dict[int, Request]:
    """Return what a release understands, by api key, as the specifications in its own jar say.

    Raises:
        FetchError: the jar cannot be had.
    """
    jars = class_path(release, "index", progress=progress)
    clients = next(jar for jar in jars if jar.name == f"kafka-clients-{release}.jar")
    found: dict[int, Request] = {}
    with zipfile.ZipFile(clients) as jar:
        for name in filter(_SPECIFICATION.fullmatch, jar.namelist()):
            lines = jar.read(name).decode("utf-8").splitlines()
            # JSON with the licence in front of it, as comments.
            message = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
            highest = str(message["validVersions"]).rpartition("-")[2]
            if highest.isdecimal():  # "none" is a request that was given up
                unstable = bool(message.get("latestVersionUnstable", False))
                found[int(message["apiKey"])] = Request(message["name"], int(highest), unstable)
    return found


def why_not(understood: Mapping[int, int], requests: Mapping[int, Request]) -> str:
    """Say why a broker is not of the release with these requests; nothing if it may be.

    Patch releases mostly understand the same. A version that is not stable yet may be switched off, and whole requests
    are, by settings; but a broker understands nothing that its release does not, and of the rest the latest.
    """
    for key, highest in sorted(understood.items()):
        request = requests.get(key)
        if request is None:
            return f"understands request {key}, which that release does not have"
        if highest != request.highest and not (request.unstable and highest == request.highest - 1):
            return f"understands {request.name} up to version {highest}, and that release up to {request.highest}"
    return ""
