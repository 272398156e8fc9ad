"""Requests in a version that the broker offers, their answers, and waiting for what passes by itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

from conformance.kafka.client.connection import LIMIT, Address, Connect, Connection, connect_plainly
from conformance.kafka.client.errors import (
    ClientError,
    NoAnswerError,
    NotOfferedError,
    RefusedError,
    UndecodableError,
)
from conformance.kafka.client.library import error_name, request_class
from conformance.kafka.polling import Deadline

if TYPE_CHECKING:
    from types import TracebackType

T = TypeVar("T")
AT_ONCE: Final = 64
"""Requests on their way at a time: the answers to these fit into the buffers of a connection."""
PASSING: Final = frozenset(
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


class _Api(NamedTuple):
    """The versions of an API that the client can send, and the one it takes if it may choose.

    Every Kafka from 2.4 to 4.4 understands that one; another broker gets the nearest that it offers.
    """

    near: int
    lowest: int = 0
    highest: int | None = None


_APIS: Final = {
    "ApiVersions": _Api(0, 0, 0),
    "Metadata": _Api(8, 1),  # 0 cannot ask for no topics
    "CreateTopics": _Api(4),
    "DeleteTopics": _Api(1, 0, 5),  # 6 can name topics by id
    "DeleteRecords": _Api(1),
    "DescribeConfigs": _Api(1),
    "ElectLeaders": _Api(1, 1),  # 0 knows preferred elections only
    "Produce": _Api(7, 0, 11),  # 12 makes a partition part of a transaction by itself, 13 names topics by id
    "ListOffsets": _Api(5),
    "OffsetForLeaderEpoch": _Api(3),
    "Fetch": _Api(4, 4, 12),  # before 4 come messages of old formats, and not always the first; 13 names topics by id
    "FindCoordinator": _Api(2, 1, 3),  # 0 knows groups only, 4 asks for many
    "InitProducerId": _Api(1, 0, 5),
    "AddPartitionsToTxn": _Api(1, 0, 3),  # 4 is for brokers
    "EndTxn": _Api(1, 0, 4),  # 5 gives the producer a new epoch
}


class Requests:
    """A connection that knows which versions its broker offers; a context manager.

    Args:
        address: where the broker listens.
        limit: seconds that an answer may take, and that the client waits for what passes by itself.
        connect: opens the socket.
        explain: turns an error of the client into the one to raise, for a caller that knows more of the broker.

    Raises:
        ClientError: here and in all methods, as the classes of :mod:`conformance.kafka.client.errors`.
        ToolError: kafka-python is not installed.
    """

    def __init__(
        self,
        address: Address,
        *,
        limit: float = LIMIT,
        connect: Connect = connect_plainly,
        explain: Callable[[ClientError], Exception] = lambda error: error,
    ) -> None:
        self.address = address
        self.limit = limit
        self._limit_ms = int(limit * 1000)
        self._explain = explain
        self._offered: dict[int, range] | None = None
        request_class("ApiVersions")  # not installed is another error than not reachable
        self._connection = self._told(Connection, address, limit=limit, connect=connect)

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
        """The versions of each API that the broker says it understands, by API key; asked for once."""
        if self._offered is None:
            response = self._ask(request_class("ApiVersions")(version=0))
            if error := error_name(response.error_code):
                raise self._refused("say what it understands", error)
            keys = response.api_keys or ()
            self._offered = {api.api_key: range(api.min_version, api.max_version + 1) for api in keys}
        return self._offered

    def versions(self, api: str) -> range:
        """Return the versions of an API, such as ``"ListOffsets"``, that broker and client both know; maybe none."""
        kind, limits = request_class(api), _APIS[api]
        highest = kind.max_version if limits.highest is None else min(limits.highest, kind.max_version)
        theirs = self.offered.get(kind.API_KEY, range(0))
        return range(max(limits.lowest, theirs.start), min(highest + 1, theirs.stop))

    def _request(self, api: str, *, version: int | None = None, near: int | None = None, **fields: Any) -> Any:
        """Make a request, in exactly a version or in the offered one that is next to ``near``."""
        versions = self.versions(api)
        if not versions:
            raise self._explain(NotOfferedError(self._connection.name, f"does not offer {api}{self._instead(api)}"))
        if version is None:
            wanted = _APIS[api].near if near is None else near
            version = min(max(wanted, versions.start), versions.stop - 1)
        elif version not in versions:
            what = f"does not offer version {version} of {api}, but {versions.start} to {versions.stop - 1}"
            raise self._explain(NotOfferedError(self._connection.name, what))
        return request_class(api)(version=version, **fields)

    def _instead(self, api: str) -> str:
        theirs = self.offered.get(request_class(api).API_KEY)
        return f" in a version that the client knows, but {theirs.start} to {theirs.stop - 1}" if theirs else ""

    # -- asking ----------------------------------------------------------------------------------------------------

    def _ask(self, request: Any) -> Any:
        return self._told(self._connection.ask, request)

    def _ask_all(self, requests: Iterable[Any], at_once: int = AT_ONCE) -> Iterator[Any]:
        """Send many requests, ``at_once`` of them before the first of their answers is read; give the answers."""
        rest = iter(requests)
        while some := list(itertools.islice(rest, at_once)):
            for request in some:
                self._told(self._connection.send, request)
            for _ in some:
                yield self._told(self._connection.take)

    def _told(self, do: Callable[..., T], *arguments: Any, **options: Any) -> T:
        try:
            return do(*arguments, **options)
        except ClientError as error:
            explained = self._explain(error)
            if explained is error:
                raise
            raise explained from error

    # -- answers ---------------------------------------------------------------------------------------------------

    def _until_done(self, what: str, ask: Callable[[], T], error_of: Callable[[T], str | None]) -> T:
        """Ask until there is no error, for as long as the error is one that passes by itself."""
        deadline = Deadline(self.limit)
        while error := error_of(found := ask()):
            if error not in PASSING or not deadline.pause():
                raise self._refused(what, error)
        return found

    def _refused(self, what: str, error: str) -> Exception:
        return self._explain(RefusedError(self._connection.name, what, error))

    def _late(self, what: str) -> Exception:
        return self._explain(NoAnswerError(self._connection.name, f"did not {what} within {self.limit:g} s"))

    def _only(self, parts: Any, what: str) -> Any:
        """Return the one part that an answer must have."""
        if parts is None or len(parts) != 1:
            found = f"answers for {len(parts or ())} {what} and was asked for one"
            raise self._explain(UndecodableError(self._connection.name, found))
        return parts[0]
