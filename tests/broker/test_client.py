"""The client of Kafka's protocol with real brokers, from the oldest to the newest: every request, in every version."""

from __future__ import annotations

import pytest
from thorough_params import thorough_param

from conformance.kafka.broker import BrokerError, LocalBroker
from conformance.kafka.broker.ports import HOST
from conformance.kafka.client import (
    DEBUG_REPLICA_ID,
    Address,
    Client,
    ErrorResponseError,
    OffsetResult,
    PartitionOffsetResponse,
    PartitionQuery,
    UnsupportedApiError,
)
from conformance.kafka.polling import Deadline
from kidx import dialect_of
from kidx.records import Codec, SimpleRecord, build_batch, iter_memory_batches

pytestmark = pytest.mark.broker

T = 1_700_000_000_000
TIMES = (T, T + 20, T + 10, T + 20, T + 30)
UNKNOWN = "UNKNOWN_TOPIC_OR_PARTITION"


def batch(*times, **fields):
    return build_batch([SimpleRecord(time, None, b"x") for time in times], **fields)


@pytest.fixture(scope="module", params=[thorough_param("2.4.1"), thorough_param("3.9.2"), "4.4.0"])
def broker(request, tmp_path_factory):
    with LocalBroker(request.param, base=tmp_path_factory.mktemp("client")) as started:
        yield started


@pytest.fixture
def client(broker):
    with Client(Address(HOST, broker.port)) as connected:
        yield connected


@pytest.fixture
def topic(client, request):
    name = request.node.originalname[-60:]
    client.create_topic(name, {"message.timestamp.type": "CreateTime"}, partitions=2)
    assert client.await_leader(name) == 0
    for time in TIMES:
        assert client.produce(name, batch(time)).error is None
    return name


@pytest.mark.thorough
def test_the_versions_equal_those_of_the_release(broker, client):
    highest = dialect_of(broker.release).list_offsets_versions[1]
    assert client.versions("ListOffsets").stop - 1 == highest
    assert len(client.versions("ListOffsets")) > 5
    with pytest.raises(UnsupportedApiError, match="does not offer version 99 of ListOffsets"):
        client.list_offset("t", -1, version=99)


def test_every_version_of_every_question_is_answered(broker, client, topic):
    versions = client.versions("ListOffsets")
    for version in versions:
        epoch = 0 if version >= 4 else None
        first = OffsetResult(T + 11, 1, T + 20, epoch)
        answers = client.answers(topic, [T + 11, T + 31, -1, -2, -3, -4, -5, -9], version=version)
        if version == 0:
            # Base offsets of segments that are not modified later than the timestamp; of this young one, none.
            assert [each.offset for each in answers[2:4]] == [5, 0]
            continue
        assert answers[:4] == [
            first,
            OffsetResult(T + 31),
            OffsetResult(-1, 5, -1, epoch),
            OffsetResult(-2, 0, -1, epoch),
        ]
        if version >= 7:
            assert answers[4] == OffsetResult(-3, 4, T + 30, epoch)
        for isolation in ("read_uncommitted", "read_committed"):
            assert client.list_offset(topic, -1, isolation, version=version).offset == 5
        if version >= 4:
            for believed, error in {-1: None, 0: None, 1: "UNKNOWN_LEADER_EPOCH"}.items():
                assert client.list_offset(topic, -1, version=version, leader_epoch=believed).error == error
        for replica_id in (-1, DEBUG_REPLICA_ID):
            assert client.list_offset(topic, T + 11, version=version, replica_id=replica_id) == first
    assert versions.stop - 1 == dialect_of(broker.release).list_offsets_versions[1]


def test_unknown_and_duplicate_partitions_have_their_own_errors(client, topic):
    for version in range(1, client.versions("ListOffsets").stop):
        epoch = 0 if version >= 4 else -1
        questions = [
            PartitionQuery(topic, T),
            PartitionQuery(topic, T, 1),
            PartitionQuery(topic, T, 7),
            PartitionQuery("nothing", T),
        ]
        found = client.request_offsets(questions, version=version)
        assert {(each.topic, each.partition): each for each in found} == {
            (topic, 0): PartitionOffsetResponse(topic, 0, None, 0, T, epoch),
            (topic, 1): PartitionOffsetResponse(topic, 1, None),
            (topic, 7): PartitionOffsetResponse(topic, 7, UNKNOWN),
            ("nothing", 0): PartitionOffsetResponse("nothing", 0, UNKNOWN),
        }
        twice = client.request_offsets(
            [PartitionQuery(topic, T), PartitionQuery(topic, -1), PartitionQuery(topic, -1, 1)], version=version
        )
        assert {(each.partition, each.error) for each in twice} == {(0, "INVALID_REQUEST"), (1, None)}


def test_batches_are_returned_unchanged_in_every_version(client, topic):
    for version in client.versions("Fetch"):
        found = client.fetch(topic, 1, version=version)
        (only,) = iter_memory_batches(found.records)
        assert (only.base_offset, only.max_timestamp) == (1, T + 20)
        assert (found.error, found.high_watermark, found.last_stable_offset) == (None, 5, 5)
        whole = client.fetch(topic, 0, version=version, max_bytes=1 << 20)
        assert [each.base_offset for each in iter_memory_batches(whole.records)] == [0, 1, 2, 3, 4]
        assert client.fetch(topic, 9, version=version).error == "OFFSET_OUT_OF_RANGE"
    assert [each.offset for each in client.fetch_each(topic, range(6))] == [0, 1, 2, 3, 4, None]
    assert client.fetch(topic, 0, partition=7).error == UNKNOWN


def test_appends_work_in_every_version_and_codec(client, topic):
    end = len(TIMES)
    for version in client.versions("Produce"):
        if version >= 3:
            assert client.append(topic, batch(T), version=version).offset == end
            end += 1
    for codec in Codec:
        assert client.append(topic, batch(T, codec=codec)).error is None
    assert [each.offset for each in client.append_in_flight(topic, [batch(T)] * 100)][-1] == end + len(Codec) + 99
    damaged = bytearray(batch(T))
    damaged[-1] ^= 1
    assert client.append(topic, bytes(damaged)).error == "CORRUPT_MESSAGE"
    assert client.append("nothing", batch(T)).error == UNKNOWN
    assert client.append(topic, batch(T), partition=1, acks=1).offset == 0


def test_a_transaction_is_committed_aborted_or_left_open(client, topic):
    begun = {}
    for name in ("commits", "aborts", "stays"):
        producer = client.init_producer(f"{topic}-{name}")
        begun[name] = producer
        client.join_transaction(topic, f"{topic}-{name}", producer)
        data = batch(T, **producer._asdict(), base_sequence=0, is_transactional=True)
        assert client.append(topic, data, transactional_id=f"{topic}-{name}").error is None
    client.end_and_await_marker(topic, f"{topic}-commits", begun["commits"], commit=True)
    client.end_and_await_marker(topic, f"{topic}-aborts", begun["aborts"], commit=False)
    # Records 5, 6, 7, markers 8 and 9; the transaction that is open began with 7.
    for version in client.versions("Fetch"):
        committed = client.fetch(topic, 5, isolation="read_committed", max_bytes=1 << 20, version=version)
        assert [each.base_offset for each in iter_memory_batches(committed.records)] == [5, 6]
        assert committed.last_stable_offset == 7
        assert committed.aborted == ((begun["aborts"].producer_id, 6),)
    assert client.list_offset(topic, -1, "read_committed").offset == 7
    assert client.end_offset(topic) == 10
    other = client.init_producer(None)
    assert other.producer_id not in {each.producer_id for each in begun.values()}
    stale = begun["stays"]._replace(producer_epoch=77)
    with pytest.raises(ErrorResponseError, match="fails to end the transaction"):
        client.end_transaction(f"{topic}-stays", stale, commit=True)


def test_topics_are_created_described_truncated_and_deleted(broker, client, topic):
    known = client.metadata([topic, "nothing"])
    assert known.brokers == {broker.node_id: ("127.0.0.1", broker.port)}
    assert known.controller == broker.node_id
    assert known.topics[topic].error is None
    assert {number: (state.leader, state.epoch) for number, state in known.topics[topic].partitions.items()} == {
        0: (1, 0),
        1: (1, 0),
    }
    assert known.topics["nothing"].error == UNKNOWN
    assert topic in client.metadata(None).topics
    assert client.metadata().topics == {}
    assert client.state("nothing").error == UNKNOWN
    assert client.topic_config(topic)["message.timestamp.type"] == "CreateTime"
    assert client.delete_records(topic, 2) is None
    assert client.list_offset(topic, -2).offset == 2
    assert client.delete_records(topic, 99) == "OFFSET_OUT_OF_RANGE"
    assert client.epoch_end(topic, 0)[:] == (0, 5, None)
    assert client.epoch_end(topic, 9)[:2] == (-1, -1)
    assert client.epoch_end(topic, 0, current_epoch=9).error == "UNKNOWN_LEADER_EPOCH"
    with pytest.raises(ErrorResponseError, match=f"fails to create {topic}: TOPIC_ALREADY_EXISTS"):
        client.create_topic(topic, {})
    with pytest.raises(ErrorResponseError, match="fails to create other: INVALID_CONFIG"):
        client.create_topic("other", {"no.such.setting": "1"})
    client.delete_topic(topic)
    deadline = Deadline(20)
    while client.state(topic).error is None:
        assert deadline.pause()


@pytest.mark.thorough
def test_a_failure_of_a_broker_of_ours_names_its_log(broker):
    said = f"the broker of Kafka {broker.release} fails to say where nothing ends: {UNKNOWN}"
    with broker.connect() as client, pytest.raises(BrokerError, match=said) as caught:
        client.end_offset("nothing")
    assert caught.value.log == broker.log
