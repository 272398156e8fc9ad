"""What a recorder asks of a broker, request by request: no client library would send these batches as they are.

kafka-python encodes and decodes the requests; nothing else of it is used.
"""

from __future__ import annotations

import itertools
import socket
import struct
import warnings
from collections import deque
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

from conformance.errors import ToolError
from conformance.experiments.golden.corpus import Answer
from conformance.kafka.broker.errors import BrokerError
from conformance.kafka.broker.polling import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType

    from conformance.experiments.golden.corpus import Isolation

LIMIT: Final = 20.0
_LIMIT_MS: Final = int(LIMIT * 1000)
_ALL_REPLICAS: Final = -1
_TRANSACTION_KEY: Final = 1
_TRANSACTION_LIMIT_MS: Final = 900_000
_ISOLATION: Final[dict[Isolation, int]] = {"read_uncommitted": 0, "read_committed": 1}
# Of every request, a version that all releases from 2.4 to 4.4 understand. Messages of v1 need an older Produce.
_PRODUCE: Final = {1: 2, 2: 7}
_METADATA: Final = 8
_CREATE_TOPICS: Final = 4
_FIND_COORDINATOR: Final = 2
_TRANSACTIONS: Final = 1
# No leader yet, coordinator loading, not this controller, a transaction being completed: these pass by themselves.
_PASSING: Final = frozenset({3, 5, 6, 14, 15, 16, 41, 51})


class Producer(NamedTuple):
    """Who the coordinator says that a transactional producer is."""

    producer_id: int
    producer_epoch: int


class Asked(Protocol):
    """What a client has to know of a broker."""

    @property
    def release(self) -> str:
        """Of Kafka."""

    @property
    def host(self) -> str:
        """Where it listens."""

    @property
    def port(self) -> int:
        """Where it listens."""

    @property
    def log(self) -> Path:
        """Where it says what it does."""

    def check(self) -> None:
        """Raise what it died of, if it died."""


class Client:
    """One connection to a running broker; a context manager.

    Raises:
        ToolError: kafka-python is not installed.
        BrokerError: here and in all methods: the broker does not answer, or refuses what it is asked.
    """

    def __init__(self, broker: Asked) -> None:
        self._broker = broker
        self._protocol = _kafka_protocol()
        self._numbers = itertools.count(1)
        self._sent: deque[tuple[int, Any]] = deque()
        try:
            self._socket = socket.create_connection((broker.host, broker.port), LIMIT)
        except OSError as error:
            raise self._failure(f"cannot be reached: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._socket.close()

    # -- topics ----------------------------------------------------------------------------------------------------

    def create_topic(self, topic: str, config: Mapping[str, str]) -> None:
        """Create a topic of one partition, and wait until it has a leader."""
        request = self._protocol.CreateTopicsRequest
        entry = request.CreatableTopic
        settings = [entry.CreatableTopicConfig(name=name, value=value) for name, value in config.items()]
        wanted = entry(name=topic, num_partitions=1, replication_factor=1, assignments=[], configs=settings)
        self._until_done(
            f"create {topic}",
            lambda: self._ask(
                request(version=_CREATE_TOPICS, topics=[wanted], timeout_ms=_LIMIT_MS, validate_only=False)
            ),
            lambda response: int(response.topics[0].error_code),
        )
        self.leader_epoch(topic)

    def leader_epoch(self, topic: str) -> int:
        """The epoch of the partition's leader, when there is one."""
        request = self._protocol.MetadataRequest

        def ask() -> Any:
            asked = request(
                version=_METADATA,
                topics=[request.MetadataRequestTopic(name=topic)],
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=False,
                include_topic_authorized_operations=False,
            )
            return self._ask(asked).topics[0]

        def code(found: Any) -> int:
            return int(found.error_code or found.partitions[0].error_code)

        found = self._until_done(f"describe {topic}", ask, code)
        return int(found.partitions[0].leader_epoch)

    # -- producing -------------------------------------------------------------------------------------------------

    def produce(self, topic: str, data: bytes, *, magic: int, transactional_id: str | None = None) -> None:
        """Send batches as they are, and wait until they are in the log."""
        asked = self._produce_request(topic, data, magic=magic, transactional_id=transactional_id)
        self._until_done(
            f"append to {topic}",
            lambda: self._ask(asked),
            lambda response: int(response.responses[0].partition_responses[0].error_code),
        )

    def _produce_request(self, topic: str, data: bytes, *, magic: int = 2, transactional_id: str | None = None) -> Any:
        request = self._protocol.ProduceRequest
        entry = request.TopicProduceData
        parts = [entry(name=topic, partition_data=[entry.PartitionProduceData(index=0, records=data)])]
        asked = request(version=_PRODUCE[magic], acks=_ALL_REPLICAS, timeout_ms=_LIMIT_MS, topic_data=parts)
        if magic == 2:
            asked.transactional_id = transactional_id
        return asked

    # -- transactions ----------------------------------------------------------------------------------------------

    def init_producer(self, transactional_id: str) -> Producer:
        """Introduce a transactional producer."""
        find, init = self._protocol.FindCoordinatorRequest, self._protocol.InitProducerIdRequest
        what = f"introduce {transactional_id}"
        # The first time, this creates the topic of the transactions.
        found = find(version=_FIND_COORDINATOR, key=transactional_id, key_type=_TRANSACTION_KEY)
        self._until_done(what, lambda: self._ask(found), lambda response: int(response.error_code))
        asked = init(
            version=_TRANSACTIONS, transactional_id=transactional_id, transaction_timeout_ms=_TRANSACTION_LIMIT_MS
        )
        response = self._until_done(what, lambda: self._ask(asked), lambda response: int(response.error_code))
        return Producer(int(response.producer_id), int(response.producer_epoch))

    def join_transaction(self, topic: str, transactional_id: str, producer: Producer) -> None:
        """Make the partition part of the producer's transaction, which begins with that."""
        request = self._protocol.AddPartitionsToTxnRequest
        part = request.AddPartitionsToTxnTopic(name=topic, partitions=[0])
        asked = request(
            version=_TRANSACTIONS,
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[part],
        )
        self._until_done(
            f"take {transactional_id} into a transaction",
            lambda: self._ask(asked),
            lambda response: int(
                response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
        )

    def end_transaction(self, topic: str, transactional_id: str, producer: Producer, *, commit: bool) -> None:
        """Commit or abort, and wait until the marker is in the log."""
        request = self._protocol.EndTxnRequest
        what = f"end the transaction of {transactional_id}"
        before = self.end_offset(topic)
        asked = request(
            version=_TRANSACTIONS,
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=commit,
        )
        self._until_done(what, lambda: self._ask(asked), lambda response: int(response.error_code))
        deadline = Deadline(LIMIT)
        while self.end_offset(topic) == before:
            if not deadline.pause():
                raise self._failure(f"did not {what} within {LIMIT:g} s")

    # -- asking ----------------------------------------------------------------------------------------------------

    def end_offset(self, topic: str) -> int:
        """The offset of the next record."""
        found = self.list_offset(topic, -1, "read_uncommitted", version=5)
        if found.offset is None:
            raise self._failure(f"does not know where {topic} ends: {found.error}")
        return found.offset

    def list_offset(self, topic: str, target: int, isolation: Isolation, *, version: int, partition: int = 0) -> Answer:
        """Ask for a timestamp, or one of the special ones; an error is an answer too."""
        return self._answer(target, self._ask(self._list_request(topic, target, isolation, version, partition)))

    def _list_request(self, topic: str, target: int, isolation: Isolation, version: int, partition: int = 0) -> Any:
        request = self._protocol.ListOffsetsRequest
        entry = request.ListOffsetsTopic
        part = entry.ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=target)
        asked = request(
            version=version,
            replica_id=-1,
            isolation_level=_ISOLATION[isolation],
            topics=[entry(name=topic, partitions=[part])],
        )
        if version >= 10:
            asked.timeout_ms = _LIMIT_MS
        return asked

    def _answer(self, target: int, response: Any) -> Answer:
        found = response.topics[0].partitions[0]
        if found.error_code:
            return Answer(target, error=self._name_of(found.error_code))
        if found.offset < 0:
            return Answer(target)
        epoch = int(found.leader_epoch)
        return Answer(target, int(found.offset), int(found.timestamp), epoch if epoch >= 0 else None)

    # -- the wire --------------------------------------------------------------------------------------------------

    def _until_done(self, what: str, ask: Callable[[], Any], code_of: Callable[[Any], int]) -> Any:
        deadline = Deadline(LIMIT)
        while code := code_of(response := ask()):
            if code not in _PASSING or not deadline.pause():
                raise self._failure(f"refuses to {what}: {self._name_of(code)}")
        return response

    def _ask(self, request: Any) -> Any:
        self._send(request)
        return self._take()

    def _send(self, request: Any) -> None:
        """Send a request; its answer is the next one to take that nobody has taken."""
        number = next(self._numbers)
        request.with_header(number, "kidx")
        self._sent.append((number, request))
        try:
            self._socket.sendall(request.encode(header=True, framed=True))
        except OSError as error:
            raise self._failure(f"does not take {request.name}: {error}") from error

    def _take(self) -> Any:
        """Wait for the answer to the oldest request that has none yet."""
        number, request = self._sent.popleft()
        try:
            (size,) = struct.unpack(">i", self._receive(4))
            reply = self._receive(size)
        except OSError as error:
            raise self._failure(f"does not answer {request.name}: {error}") from error
        response = request.header.get_response_class()
        decoded = response.decode(reply, header=True)
        if decoded.header.correlation_id != number:
            raise self._failure(f"answers something else than {request.name}")
        return decoded

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            block = self._socket.recv(size - len(data))
            if not block:
                raise ConnectionError("it has closed the connection")
            data += block
        return data

    def _name_of(self, code: int) -> str:
        return str(self._protocol.for_code(code).message)

    def _failure(self, what: str) -> BrokerError:
        self._broker.check()
        return BrokerError(f"the broker of Kafka {self._broker.release} {what}", self._broker.log)


class _Protocol:
    """The requests of kafka-python, by name, whichever of its modules they are in."""

    def __init__(self) -> None:
        names = ("admin", "consumer", "metadata", "producer")
        self._modules = [import_module(f"kafka.protocol.{name}") for name in names] + [import_module("kafka.errors")]

    def __getattr__(self, name: str) -> Any:
        for module in self._modules:
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(name)


def _kafka_protocol() -> _Protocol:
    try:
        with warnings.catch_warnings():
            # It reads its schemas while it is imported, in a way that Python 3.11 and 3.12 deprecate.
            warnings.simplefilter("ignore", DeprecationWarning)
            return _Protocol()
    except ImportError as error:
        raise ToolError("recording from a broker needs kafka-python: pip install 'kidx[broker]'") from error
