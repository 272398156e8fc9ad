"""Requests in a version that the broker offers, their responses, and retries after retriable errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.metadata import version as package_version
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

from conformance.kafka.client.connection import (
    TIMEOUT_S,
    Address,
    ClientError,
    ClosedError,
    Connect,
    Connection,
    ErrorResponseError,
    RequestTimedOutError,
    UndecodableError,
    UnsupportedApiError,
    connect_plaintext,
)
from conformance.kafka.client.library import error_name, request_class
from conformance.kafka.polling import Deadline

if TYPE_CHECKING:
    from types import TracebackType

T = TypeVar("T")
MAX_IN_FLIGHT: Final = 64
"""Maximum number of requests in flight; their responses fit into the buffers of a connection."""
RETRIABLE_ERRORS: Final = frozenset(
    {
        "UNKNOWN_TOPIC_OR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "NOT_CONTROLLER",
        "CONCURRENT_TRANSACTIONS",
    }
)
"""Errors of a broker that is not ready yet: the same request may succeed a moment later."""


_UNKNOWN_VERSION: Final = "UNSUPPORTED_VERSION"
_SOFTWARE: Final = "kidx"
_NAMES_SOFTWARE: Final = 3  # first version of ApiVersions with the name of the client


class _Api(NamedTuple):
    """Versions of an API that the client can send, and the preferred version.

    Every Kafka from 2.4 to 4.4 understands the preferred version. For other brokers, the nearest offered version is
    used.
    """

    preferred: int
    lowest: int = 0
    highest: int | None = None


_APIS: Final = {
    "ApiVersions": _Api(4),
    "Metadata": _Api(8, 1),  # 0 cannot request an empty list of topics
    "CreateTopics": _Api(4),
    "DeleteTopics": _Api(1, 0, 5),  # 6 can name topics by id
    "DeleteRecords": _Api(1),
    "DescribeConfigs": _Api(1),
    "ElectLeaders": _Api(1, 1),  # 0 has only preferred elections
    "Produce": _Api(7, 0, 11),  # 12 adds a partition to a transaction implicitly, 13 names topics by id
    "ListOffsets": _Api(5),
    "OffsetForLeaderEpoch": _Api(3),
    # Versions below 4 return old message formats, and may omit the first batch; 13 names topics by id.
    "Fetch": _Api(4, 4, 12),
    "FindCoordinator": _Api(2, 1, 3),  # 0 has only groups, 4 requests many keys
    "InitProducerId": _Api(1, 0, 5),
    "AddPartitionsToTxn": _Api(1, 0, 3),  # 4 is for brokers
    "EndTxn": _Api(1, 0, 4),  # 5 assigns a new epoch to the producer
}


class Requests:
    """Connection that knows which versions its broker offers; a context manager.

    Args:
        limit: maximum seconds for a response, and for retries after retriable errors.
        connect: function that opens the socket.
        explain: function that replaces each error before it is raised, e.g. with one that names the broker's log.

    Raises:
        ClientError: a request fails, here or in any method; see :mod:`conformance.kafka.client.connection`.
        ToolError: kafka-python is not installed.
    """

    def __init__(
        self,
        address: Address,
        *,
        limit: float = TIMEOUT_S,
        connect: Connect = connect_plaintext,
        explain: Callable[[ClientError], Exception] = lambda error: error,
    ) -> None:
        self.address = address
        self.limit = limit
        self._limit_ms = int(limit * 1000)
        self._explain = explain
        self._offered: dict[int, range] | None = None
        request_class("ApiVersions")  # raises before connecting if kafka-python is missing
        self._connect = partial(Connection, address, limit=limit, connect=connect)
        self._connection = self._with_explained_errors(self._connect)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    # -- versions --------------------------------------------------------------------------------------------------

    @property
    def offered(self) -> dict[int, range]:
        """Versions of each API that the broker claims to understand, by API key; requested once."""
        if self._offered is None:
            response = self._negotiated()
            if error := error_name(response.error_code):
                raise self._refused("list its supported API versions", error)
            keys = response.api_keys or ()
            self._offered = {api.api_key: range(api.min_version, api.max_version + 1) for api in keys}
        return self._offered

    def _negotiated(self) -> Any:
        """Return the response to ApiVersions in the newest version that both sides know.

        A broker that does not know the version of the request returns its own versions with the error (KIP-511). An
        older or a simpler one closes the connection, or responds in another format; then version 0 is sent.
        """
        kind = request_class("ApiVersions")
        newest = min(_APIS["ApiVersions"].preferred, kind.max_version)
        try:
            response = self._connection.exchange(_api_versions(newest))
        except (ClosedError, UndecodableError):
            self._connection.close()
            self._connection = self._with_explained_errors(self._connect)
            return self._exchange(_api_versions(0))
        except ClientError as error:
            raise self._explain(error) from error
        if error_name(response.error_code) == _UNKNOWN_VERSION:
            own = next((api.max_version for api in response.api_keys or () if api.api_key == kind.API_KEY), 0)
            response = self._exchange(_api_versions(max(0, min(own, newest - 1))))
        return response

    def versions(self, api: str) -> range:
        """Return the versions of an API, such as ``"ListOffsets"``, that both broker and client know; may be empty."""
        kind, limits = request_class(api), _APIS[api]
        highest = kind.max_version if limits.highest is None else min(limits.highest, kind.max_version)
        theirs = self.offered.get(kind.API_KEY, range(0))
        return range(max(limits.lowest, theirs.start), min(highest + 1, theirs.stop))

    def _request(self, api: str, *, version: int | None = None, preferred: int | None = None, **fields: Any) -> Any:
        """Return a request in exactly ``version``; without one, in the offered version nearest to ``preferred``."""
        versions = self.versions(api)
        if not versions:
            raise self._explain(UnsupportedApiError(self._connection.name, f"does not offer {api}{self._instead(api)}"))
        if version is None:
            wanted = _APIS[api].preferred if preferred is None else preferred
            version = min(max(wanted, versions.start), versions.stop - 1)
        elif version not in versions:
            what = f"does not offer version {version} of {api}, but {versions.start} to {versions.stop - 1}"
            raise self._explain(UnsupportedApiError(self._connection.name, what))
        return request_class(api)(version=version, **fields)

    def _instead(self, api: str) -> str:
        theirs = self.offered.get(request_class(api).API_KEY)
        return f" in a version that the client knows, but {theirs.start} to {theirs.stop - 1}" if theirs else ""

    # -- sending ---------------------------------------------------------------------------------------------------

    def _exchange(self, request: Any) -> Any:
        return self._with_explained_errors(self._connection.exchange, request)

    def _exchange_all(self, requests: Iterable[Any], in_flight: int = MAX_IN_FLIGHT) -> Iterator[Any]:
        """Send many requests, with up to ``in_flight`` unanswered ones, and yield the responses."""
        rest = iter(requests)
        while some := list(itertools.islice(rest, in_flight)):
            for request in some:
                self._with_explained_errors(self._connection.send, request)
            for _ in some:
                yield self._with_explained_errors(self._connection.receive)

    def _with_explained_errors(self, do: Callable[..., T], *arguments: Any, **options: Any) -> T:
        try:
            return do(*arguments, **options)
        except ClientError as error:
            explained = self._explain(error)
            if explained is error:
                raise
            raise explained from error

    # -- responses -------------------------------------------------------------------------------------------------

    def _until_done(self, what: str, send: Callable[[], T], error_of: Callable[[T], str | None]) -> T:
        """Repeat a request while it fails with a retriable error, until the time limit; return the response.

        Args:
            what: purpose of the request, for the message of an error.
            send: function that sends the request.
            error_of: function that returns the error in a response, or None.
        """
        deadline = Deadline(self.limit)
        while error := error_of(found := send()):
            if error not in RETRIABLE_ERRORS or not deadline.pause():
                raise self._refused(what, error)
        return found

    def _refused(self, what: str, error: str) -> Exception:
        return self._explain(ErrorResponseError(self._connection.name, what, error))

    def _late(self, what: str) -> Exception:
        return self._explain(RequestTimedOutError(self._connection.name, f"did not {what} within {self.limit:g} s"))

    def _only(self, parts: Any, what: str) -> Any:
        """Return the only element of a list in a response; any other number of elements is an error."""
        if parts is None or len(parts) != 1:
            found = f"answers for {len(parts or ())} {what} instead of one"
            raise self._explain(UndecodableError(self._connection.name, found))
        return parts[0]


def _api_versions(version: int) -> Any:
    """Return the first request of a connection; from version 3 on, it names the client."""
    software = {"client_software_name": _SOFTWARE, "client_software_version": package_version(_SOFTWARE)}
    return request_class("ApiVersions")(version=version, **(software if version >= _NAMES_SOFTWARE else {}))
