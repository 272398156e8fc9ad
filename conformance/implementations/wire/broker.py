"""Broker that is used only through Kafka's protocol: topics of this run, appends, transactions and fetches.

A run can skip some features of a broker (``wire:``).
"""

from __future__ import annotations

import itertools
import re
import shlex
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

from conformance.errors import ToolError
from conformance.implementations.wire.partition_history import StoredBatch
from conformance.kafka.client import (
    Client,
    ClientError,
    ClosedError,
    ErrorResponseError,
    PartitionOffsetResponse,
    RequestTimedOutError,
    UndecodableError,
    UnreachableError,
)
from conformance.kafka.client.requests import MAX_IN_FLIGHT, RETRIABLE_ERRORS
from conformance.kafka.polling import Deadline
from kidx.records import iter_memory_batches
from kidx.signals import held_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from conformance.implementations.subject.process import ServerProcess
    from conformance.kafka.client import Address, FetchedBatches, OffsetsRequest
    from conformance.kafka.client.connection import Connect

NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "delete-records": ("DeleteRecords",),
    "transactions": ("FindCoordinator", "InitProducerId", "AddPartitionsToTxn", "EndTxn"),
    "restarts": (),
    "topic-requests": ("CreateTopics", "DeleteTopics"),
    "timestamps": (),
}
"""Features that a run can skip, with the APIs that they need.

Without topic-requests, topics are created by metadata requests, without topic configurations, and are not deleted.
Without timestamps, no record is looked up by timestamp.
"""


T = TypeVar("T")
PREFIX: Final = "kidx-wire-"
"""Beginning of the names of all topics that runs create."""
START: Final = 30.0
"""Maximum time in seconds until a broker that listens responds."""
RETURNS: Final = 10.0
"""Maximum time in seconds until a broker that others have started, and that is gone, is available again."""
_DELETES: Final = 5.0
"""Maximum time in seconds for deleting the topics at the end, during which signals wait."""
_APPEARS: Final = 1.0
"""Maximum time in seconds until a topic appears whose creation was interrupted."""
_UNKNOWN_TOPIC: Final = "UNKNOWN_TOPIC_OR_PARTITION"
FETCHED: Final = 4 << 20
"""Maximum size of one fetch in bytes, which is larger than the batches of a step."""
NO_ANSWER: Final[dict[type[ClientError], str]] = {
    ClosedError: "CONNECTION_CLOSED",
    UndecodableError: "UNDECODABLE_ANSWER",
}
"""Error names for a missing response: the broker closes the connection instead, or sends a malformed response."""
TIMED_OUT: Final = "TIMED_OUT"
"""Error name for a response that does not arrive within the time limit."""
_FAILURES: Final = 20_000
"""Maximum number of missing responses in a row, after which the run gives up the broker."""
_ALWAYS: Final = ("Metadata", "Produce", "Fetch", "ListOffsets")
"""APIs that every run needs."""
_OPTIONAL: Final = ("segment.index.bytes", "index.interval.bytes", "segment.bytes", "segment.ms", "compression.type")
"""Topic configurations that a broker without Kafka's files may not know."""
NOT_YET: Final = frozenset({"REPLICA_NOT_AVAILABLE", "OFFSET_NOT_AVAILABLE", "REQUEST_TIMED_OUT"})
"""Errors of a broker that does not know its remote segments yet, or whose lookup in them took too long."""
_SETTING_REFUSED: Final = frozenset({"INVALID_CONFIG", "INVALID_REQUEST", "POLICY_VIOLATION"})
"""Errors of a broker that does not accept a topic configuration."""


class Stored(NamedTuple):
    """Result of a fetch from an offset on.

    Attributes:
        batches: The batches that end at or after the offset.
        data: The bytes of these batches.
        answer: The whole response.
    """

    batches: tuple[StoredBatch, ...]
    data: bytes
    answer: FetchedBatches


class WireBroker:
    """Connection to a broker, and the topics that this run has created in it; a context manager that deletes them.

    Args:
        address: The broker's address.
        connect: A function that opens a socket, see :mod:`conformance.kafka.client.security`.
        without: The skipped features, of :data:`~conformance.implementations.wire.broker.NEEDED`.
        limit: The time limit in seconds for a response.
        process: The process of the broker, with which it is stopped and restarted; None if it must not be stopped.
        command_config: The configuration file that ``connect`` was read from, or None.

    Attributes:
        prefix: The beginning of the names of this run's topics.
        made: The names of the topics that this run has created.
        left: After :meth:`close`, the names of the topics that the broker still has.
        gone: The error with which the broker could not be reached again, or None.
        refused_settings: For each topic configuration that the broker does not accept, the name of the error.
        client: The connection.
        versions: The supported versions of ListOffsets; ``fetch_versions``: of Fetch.

    Raises:
        ToolError: The broker cannot be reached, hangs, or lacks a necessary feature.
    """

    def __init__(
        self,
        address: Address,
        *,
        connect: Connect | None = None,
        without: Collection[str] = (),
        limit: float | None = None,
        process: ServerProcess | None = None,
        command_config: Path | None = None,
    ) -> None:
        self.address = address
        self.without = frozenset(without)
        self.prefix = f"{PREFIX}{uuid.uuid4().hex[:10]}-"
        self._command_config = command_config
        self.made: list[str] = []
        self.left: tuple[str, ...] = ()
        self.gone: ToolError | None = None
        self.refused_settings: dict[str, str] = {}
        self.topic_config: dict[str, str | int] = {}
        """Properties of every topic, in addition to the drawn ones."""
        self.process = None if "restarts" in self.without else process
        self._numbers = itertools.count(1)
        self._failures = 0
        self._options: dict[str, Any] = {}
        if connect is not None:
            self._options["connect"] = connect
        if limit is not None:
            self._options["limit"] = limit
        try:
            self.client = self._first_contact()
        except (ClosedError, RequestTimedOutError, UndecodableError) as error:
            hint = "" if connect is not None else "; for TLS or SASL give --command-config FILE"
            raise ToolError(f"{error}{hint}") from error
        self.versions = tuple(self.client.versions("ListOffsets"))
        self.fetch_versions = tuple(self.client.versions("Fetch"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def deletes(self) -> bool:
        """True if the topics are deleted at the end."""
        return "topic-requests" not in self.without

    @property
    def removal(self) -> str:
        """The command that removes the topics of this run, also after the run was killed."""
        config = [] if self._command_config is None else ["--command-config", str(self._command_config)]
        command = ["kafka-topics.sh", "--bootstrap-server", str(self.address), *config]
        return shlex.join([*command, "--delete", "--topic", re.escape(self.prefix).replace(r"\-", "-") + ".*"])

    def _first_contact(self) -> Client:
        client = Client(self.address, **self._options)
        try:
            self._check_offers(client)
            client.metadata()
        except BaseException:
            client.close()
            raise
        return client

    def _check_offers(self, client: Client) -> None:
        """Check that the broker offers what the run needs; one message names everything that is missing."""
        needed = {feature: apis for feature, apis in NEEDED.items() if feature not in self.without}
        lacks = [api for apis in (_ALWAYS, *needed.values()) for api in apis if not client.versions(api)]
        if not lacks:
            return
        always = [api for api in _ALWAYS if api in lacks]
        skipped = [feature for feature, apis in needed.items() if not set(lacks).isdisjoint(apis)]
        hints = (
            f"every run over its protocol needs {', '.join(always)}" if always else "",
            f"add {' '.join(f'--skip-feature {feature}' for feature in skipped)}" if skipped else "",
        )
        raise ToolError(
            f"the broker at {self.address} does not offer {', '.join(lacks)}: {'; '.join(filter(None, hints))}"
        )

    def close(self) -> None:
        """Delete the topics of this run, if the broker supports that, and disconnect; a signal waits until the end.

        Afterwards ``left`` has the names of the topics that could not be deleted.
        """
        with held_signals():
            self.client.close()  # an interrupt may have left a request on it without its response
            self.left = tuple(self._not_deleted() if self.made else ())
            self.made.clear()

    def _not_deleted(self) -> list[str]:
        """Delete the topics of this run over a new connection; return the names of those that the broker still has.

        A topic whose creation was interrupted may appear a moment later, so an unknown one is deleted again.
        """
        left = list(self.made)
        if not self.deletes:
            return left
        deadline = Deadline(_APPEARS)
        try:
            with Client(self.address, **self._options | {"limit": min(self.client.limit, _DELETES)}) as client:
                while True:
                    errors = client.delete_topics(left)
                    left = [topic for topic in left if errors.get(topic, _UNKNOWN_TOPIC) is not None]
                    if not left or not deadline.pause():
                        return [topic for topic in left if errors.get(topic) != _UNKNOWN_TOPIC]
        except ClientError:
            return left

    def restart(self, *, clean: bool) -> None:
        """Stop the broker by SIGTERM or SIGKILL, start it again, and reconnect.

        Raises:
            ToolError: The broker does not stop or start, or there is no process.
        """
        if self.process is None:
            raise ToolError(f"the broker at {self.address} was started by others; restarts require --start-command")
        self.client.close()
        self.process.stop(clean=clean)
        try:
            self.address = self.process.start()
            self._await_contact()
        except ToolError as error:
            raise UnreachableError(f"the broker at {self.address}", f"does not start again: {error}") from error

    def recover(self) -> None:
        """Connect again after a request without a response; restart the broker if it has ended and the run started it.

        If the broker cannot be reached any more, ``gone`` has the error, and no more topics are created.
        """
        self.client.close()
        try:
            if self.process is None:
                self._await_contact(RETURNS)
                return
            try:
                self.client = self._first_contact()
            except ToolError:
                self.restart(clean=False)
        except ToolError as error:
            self.gone = error

    def _await_contact(self, seconds: float = START) -> None:
        """Connect as soon as the broker responds.

        Raises:
            ToolError: The broker does not respond in time.
        """
        deadline = Deadline(seconds)
        while True:
            try:
                self.client = self._first_contact()
            except ToolError:
                if not deadline.pause():
                    raise
            else:
                return

    # -- queries ---------------------------------------------------------------------------------------------------

    def request_each(self, requests: Iterable[OffsetsRequest]) -> Iterator[list[PartitionOffsetResponse]]:
        """Yield the responses to each request; a missing response becomes an error of :data:`NO_ANSWER`.

        Raises:
            ClientError: The broker is gone or hangs.
            ToolError: The broker leaves too many requests in a row without a response.
        """
        rest = list(requests)
        while rest:
            done = 0
            try:
                for answers in self.client.request_each(rest):
                    done += 1
                    self._failures = 0
                    yield answers
            except tuple(NO_ANSWER):
                self._reconnect()
            else:
                return
            # The requests in flight are sent again one by one, to find out which of them failed.
            alone, rest = rest[done : done + MAX_IN_FLIGHT], rest[done + MAX_IN_FLIGHT :]
            yield from map(self._ask_alone, alone)

    def request_settled(self, requests: Iterable[OffsetsRequest]) -> list[list[PartitionOffsetResponse]]:
        """Return the responses to each request; repeat requests for a while that the broker cannot answer yet.

        A broker with tiered storage first reads which segments are remote, and lookups in them take time.

        Raises:
            ClientError, ToolError: As :meth:`request_each`.
        """
        wanted = list(requests)
        found = list(self.request_each(wanted))
        deadline = Deadline(self.client.limit)
        while True:
            late = [n for n, answers in enumerate(found) if any(each.error in NOT_YET for each in answers)]
            if not late or not deadline.pause():
                return found
            for number, answers in zip(late, self.request_each(wanted[n] for n in late), strict=True):
                found[number] = answers

    def _ask_alone(self, request: OffsetsRequest) -> list[PartitionOffsetResponse]:
        first = request.queries[0]
        return self.answered(
            lambda client: next(client.request_each([request])),
            lambda error: [PartitionOffsetResponse(first.topic, first.partition, error)],
        )

    def answered(self, ask: Callable[[Client], T], instead: Callable[[str], T]) -> T:
        """Return the client's result; if a response is missing, return ``instead`` called with the error name.

        Raises:
            ClientError, ToolError: As :meth:`request_each`.
        """
        try:
            found = ask(self.client)
        except tuple(NO_ANSWER) as error:
            self._reconnect()
            return instead(NO_ANSWER[type(error)])
        self._failures = 0
        return found

    def _reconnect(self) -> None:
        self._failures += 1
        if self._failures > _FAILURES:
            # No ClientError: those are divergences of one topic.
            raise ToolError(f"the broker at {self.address} has left {_FAILURES} requests in a row without a response")
        self.client.close()
        self.client = Client(self.address, **self._options)

    # -- topics ----------------------------------------------------------------------------------------------------

    def create(self, settings: Mapping[str, Any]) -> tuple[str, int]:
        """Create a topic, without optional configurations that are rejected; return its name and leader epoch.

        Raises:
            ToolError: The broker has a topic of that name, or does not create one.
        """
        if self.gone is not None:
            raise self.gone
        topic = f"{self.prefix}{next(self._numbers)}"
        self.made.append(topic)  # before the request, because an interrupt may come before the response
        if not self.deletes:
            self.refused_settings |= dict.fromkeys(settings, "NOT_OFFERED")
            self.client.trigger_auto_create(topic)
            return topic, self.await_leader(topic)
        wanted = {name: str(value) for name, value in settings.items() if name not in self.refused_settings}
        try:
            self.client.create_topic(topic, wanted)
        except ErrorResponseError as error:
            if error.error == "TOPIC_ALREADY_EXISTS":
                self.made.remove(topic)
                raise ToolError(
                    f"the broker at {self.address} has a topic {topic} that this run has not created"
                ) from error
            if error.error not in _SETTING_REFUSED:
                raise
            self._create_with_less(topic, wanted, error)
        return topic, self.await_leader(topic)

    def await_leader(self, topic: str) -> int:
        """Return the leader's epoch as soon as the broker responds, or -1 if it has none.

        Raises:
            ErrorResponseError: The topic is missing, for instance.
        """
        self.client.leader_epoch(topic)
        deadline = Deadline(self.client.limit)
        while self.client.list_offset(topic, -1).error in RETRIABLE_ERRORS and deadline.pause():
            pass
        return self.client.leader_epoch(topic)

    def _create_with_less(self, topic: str, wanted: dict[str, str], error: ErrorResponseError) -> None:
        """Create a topic with fewer optional configurations, one less at each attempt, until the broker accepts it."""
        for name in _OPTIONAL:
            if wanted.pop(name, None) is None:
                continue
            try:
                self.client.create_topic(topic, wanted)
            except ErrorResponseError as again:
                if again.error not in _SETTING_REFUSED:
                    raise
                self.refused_settings[name] = error.error
                continue
            self.refused_settings[name] = error.error
            return
        raise error

    # -- fetches ---------------------------------------------------------------------------------------------------

    def stored(self, topic: str, offset: int) -> Stored:
        """Return all batches from an offset on.

        Raises:
            KidxError: A batch cannot be read.
        """
        found = self.client.fetch(topic, offset, max_bytes=FETCHED, version=self.fetch_versions[-1])
        batches = [batch for batch in iter_memory_batches(found.records) if batch.last_offset >= offset]
        data = b"".join(batch.to_bytes() for batch in batches)
        return Stored(tuple(map(StoredBatch.of, batches)), data, found)

    def await_stored(self, topic: str, offset: int) -> Stored:
        """Return all batches from an offset on, as soon as there is one.

        Raises:
            RequestTimedOutError: No batch arrives within the time limit.
        """
        deadline = Deadline(self.client.limit)
        while not (found := self.stored(topic, offset)).batches:
            if not deadline.pause():
                why = f" ({error})" if (error := found.answer.error) else ""
                what = f"returns nothing{why} from offset {offset} of {topic} on within {self.client.limit:g} s"
                raise RequestTimedOutError(f"the broker at {self.address}", what)
        return found
