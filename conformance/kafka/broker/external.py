"""Running broker that the harness did not start; the harness sends requests and reads files, but changes nothing.

::

    with ExternalBroker("127.0.0.1:9092", "/var/lib/kafka/data", "3.9.2") as broker:
        ...  # the broker answers, has this release, and owns this directory
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from conformance.errors import ToolError
from conformance.kafka.client import TIMEOUT_S, Address, Client, ClientError
from conformance.kafka.jar_fetch import class_path
from conformance.kafka.releases import load_release
from kidx.discovery import META_PROPERTIES

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import TracebackType

    from conformance.kafka.jar_fetch import Progress

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
