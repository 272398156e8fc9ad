"""A broker that only its protocol is known of: topics of this run's own, appends, transactions, what it gives back."""

from __future__ import annotations

import itertools
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

from conformance.errors import ToolError
from conformance.implementations.wire.account import StoredBatch
from conformance.implementations.wire.features import NEEDED
from conformance.kafka.client import (
    Client,
    ClientError,
    ClosedError,
    ErrorResponseError,
    PartitionOffsetResponse,
    RequestTimedOutError,
    UndecodableError,
)
from conformance.kafka.client.requests import MAX_IN_FLIGHT, RETRIABLE_ERRORS
from conformance.kafka.polling import Deadline
from kidx.records import iter_memory_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from conformance.implementations.subject.process import ServerProcess
    from conformance.kafka.client import Address, FetchedBatches, OffsetsRequest
    from conformance.kafka.client.connection import Connect

T = TypeVar("T")
PREFIX: Final = "kidx-wire-"
START: Final = 30.0
"""Seconds that a broker which listens may take until it answers."""
FETCHED: Final = 4 << 20
"""Bytes of one fetch: more than a step appends."""
NO_ANSWER: Final[dict[type[ClientError], str]] = {
    ClosedError: "CONNECTION_CLOSED",
    UndecodableError: "UNDECODABLE_ANSWER",
}
"""Stands for the error of an answer where the broker closes the connection instead, or talks nonsense."""
_FAILURES: Final = 20_000
"""So many are answers; a broker that goes on with them is given up."""
_ALWAYS: Final = ("Metadata", "Produce", "Fetch", "ListOffsets")
_OPTIONAL: Final = ("segment.index.bytes", "index.interval.bytes", "segment.bytes", "segment.ms", "compression.type")
"""Settings that a broker without Kafka's files may not know."""
_SETTING_REFUSED: Final = frozenset({"INVALID_CONFIG", "INVALID_REQUEST", "POLICY_VIOLATION"})


class Stored(NamedTuple):
    """What a fetch gives from an offset on."""

    batches: tuple[StoredBatch, ...]
    data: bytes
    answer: FetchedBatches


class WireBroker:
    """A connection to a broker, and the topics made over it; a context manager that deletes them in the end.

    Args:
        address: where it listens.
        connect: opens a socket, see :mod:`conformance.kafka.client.security`.
        without: what is left out of the run, of :data:`~conformance.implementations.wire.features.NEEDED`.
        limit: seconds for an answer.
        process: stops it and starts it again; None if it is left running.

    Raises:
        ToolError: it cannot be reached, hangs, or lacks what the run needs.
    """

    def __init__(
        self,
        address: Address,
        *,
        connect: Connect | None = None,
        without: Collection[str] = (),
        limit: float | None = None,
        process: ServerProcess | None = None,
    ) -> None:
        self.address = address
        self.without = frozenset(without)
        self.prefix = f"{PREFIX}{uuid.uuid4().hex[:10]}-"
        self.made: list[str] = []
        self.refused_settings: dict[str, str] = {}
        self.process = None if "restarts" in self.without else process
        self._numbers = itertools.count(1)
        self._failures = 0
        self._options: dict[str, Any] = {}
        if connect is not None:
            self._options["connect"] = connect
        if limit is not None:
            self._options["limit"] = limit
        self.client = self._first_contact()
        self.versions = tuple(self.client.versions("ListOffsets"))
        self.fetch_versions = tuple(self.client.versions("Fetch"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def deletes(self) -> bool:
        """Whether its topics are deleted in the end."""
        return "topic-requests" not in self.without

    def _first_contact(self) -> Client:
        client = Client(self.address, **self._options)
        try:
            self._check_offers(client)
            client.metadata()
        except (ClosedError, RequestTimedOutError, UndecodableError) as error:
            client.close()
            secured = "connect" in self._options
            hint = "" if secured else "; for TLS or a log-in give --command-config FILE"
            raise ToolError(f"{error}{hint}") from error
        except BaseException:
            client.close()
            raise
        return client

    def _check_offers(self, client: Client) -> None:
        name = f"the broker at {self.address}"
        for api in _ALWAYS:
            if not client.versions(api):
                raise ToolError(f"{name} does not offer {api}, which every run over its protocol needs")
        for feature, apis in NEEDED.items():
            missing = [api for api in apis if not client.versions(api)]
            if missing and feature not in self.without:
                raise ToolError(
                    f"{name} does not offer {', '.join(missing)}: leave {feature} out with --skip-feature {feature}"
                )

    def close(self) -> None:
        """Delete the topics of this run, as far as the broker does it, and hang up."""
        try:
            for topic in self.made if self.deletes else ():
                self.client.delete_topic(topic)
        except ClientError:
            pass
        finally:
            self.made.clear()
            self.client.close()

    def restart(self, *, clean: bool) -> None:
        """Stop the broker, by SIGTERM or by SIGKILL, start it again, and connect anew.

        Raises:
            ToolError: it does not end, or does not come up; there is no process.
        """
        if self.process is None:
            raise ToolError(f"the broker at {self.address} is not this run's to stop: give --start-command")
        self.client.close()
        self.process.stop(clean=clean)
        self.address = self.process.start()
        deadline = Deadline(START)
        while True:
            try:
                self.client = self._first_contact()
            except ToolError:
                if not deadline.pause():
                    raise
            else:
                return

    # -- asking ----------------------------------------------------------------------------------------------------

    def request_each(self, requests: Iterable[OffsetsRequest]) -> Iterator[list[PartitionOffsetResponse]]:
        """The answers to each request; one that is not answered has an error of its own, see :data:`NO_ANSWER`.

        Raises:
            ClientError: the broker is gone, hangs, or leaves too many without an answer.
        """
        rest = list(requests)
        while rest:
            done = 0
            try:
                for answers in self.client.request_each(rest):
                    done += 1
                    yield answers
            except tuple(NO_ANSWER):
                self._reconnect()
            else:
                return
            # Which of those that were on their way it was, asking them one by one tells.
            alone, rest = rest[done : done + MAX_IN_FLIGHT], rest[done + MAX_IN_FLIGHT :]
            yield from map(self._ask_alone, alone)

    def _ask_alone(self, request: OffsetsRequest) -> list[PartitionOffsetResponse]:
        first = request.queries[0]
        return self.answered(
            lambda client: next(client.request_each([request])),
            lambda error: [PartitionOffsetResponse(first.topic, first.partition, error)],
        )

    def answered(self, ask: Callable[[Client], T], instead: Callable[[str], T]) -> T:
        """What the client gives, or something else for the name of what came in the place of an answer.

        Raises:
            ClientError: as :meth:`request_each`.
        """
        try:
            return ask(self.client)
        except tuple(NO_ANSWER) as error:
            self._reconnect()
            return instead(NO_ANSWER[type(error)])

    def _reconnect(self) -> None:
        self._failures += 1
        if self._failures > _FAILURES:
            what = f"has left {_FAILURES} requests without an answer: it is given up"
            raise ClosedError(f"the broker at {self.address}", what)
        self.client.close()
        self.client = Client(self.address, **self._options)

    # -- topics ----------------------------------------------------------------------------------------------------

    def create(self, settings: Mapping[str, Any]) -> tuple[str, int]:
        """Make a topic, without the settings that the broker refuses and need not have; its name and leader epoch.

        Raises:
            ToolError: the broker has a topic of that name, or does not make one.
        """
        topic = f"{self.prefix}{next(self._numbers)}"
        if not self.deletes:
            self.refused_settings |= dict.fromkeys(settings, "NOT_OFFERED")
            self.client.trigger_auto_create(topic)
            self.made.append(topic)
            return topic, self.await_leader(topic)
        wanted = {name: str(value) for name, value in settings.items() if name not in self.refused_settings}
        try:
            self.client.create_topic(topic, wanted)
        except ErrorResponseError as error:
            if error.error == "TOPIC_ALREADY_EXISTS":
                raise ToolError(
                    f"the broker at {self.address} has a topic {topic} that this run has not made"
                ) from error
            if error.error not in _SETTING_REFUSED:
                raise
            self._create_with_less(topic, wanted, error)
        self.made.append(topic)
        return topic, self.await_leader(topic)

    def await_leader(self, topic: str) -> int:
        """The epoch of the leader, -1 if the broker tells none, once it answers; what it answers is judged later.

        Raises:
            ErrorResponseError: there is no such topic, for instance.
        """
        self.client.leader_epoch(topic)
        deadline = Deadline(self.client.limit)
        while self.client.list_offset(topic, -1).error in RETRIABLE_ERRORS and deadline.pause():
            pass
        return self.client.leader_epoch(topic)

    def _create_with_less(self, topic: str, wanted: dict[str, str], error: ErrorResponseError) -> None:
        """One optional setting less at a time, until the broker takes the rest."""
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

    # -- what it gives back ----------------------------------------------------------------------------------------

    def stored(self, topic: str, offset: int) -> Stored:
        """Everything from an offset on.

        Raises:
            KidxError: a batch cannot be read.
        """
        found = self.client.fetch(topic, offset, max_bytes=FETCHED)
        batches = [batch for batch in iter_memory_batches(found.records) if batch.last_offset >= offset]
        data = b"".join(batch.to_bytes() for batch in batches)
        return Stored(tuple(map(StoredBatch.of, batches)), data, found)

    def await_stored(self, topic: str, offset: int) -> Stored:
        """The same, once there is something.

        Raises:
            RequestTimedOutError: there is nothing in time.
        """
        deadline = Deadline(self.client.limit)
        while not (found := self.stored(topic, offset)).batches:
            if not deadline.pause():
                what = f"gives nothing from offset {offset} of {topic} on within {self.client.limit:g} s"
                raise RequestTimedOutError(f"the broker at {self.address}", what)
        return found
