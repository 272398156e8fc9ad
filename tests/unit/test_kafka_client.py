"""The client of Kafka's protocol against servers on loopback that reject, hang, close, lie and send too much."""

from __future__ import annotations

import socket
import struct
import threading

import pytest

from conformance.errors import ToolError
from conformance.kafka.broker.ports import HOST, free_ports
from conformance.kafka.client import (
    Address,
    Client,
    ClientError,
    ClosedError,
    ErrorResponseError,
    OffsetResult,
    PartitionOffsetResponse,
    PartitionQuery,
    RequestTimedOutError,
    UndecodableError,
    UnreachableError,
    UnsupportedApiError,
    library,
)

pytest.importorskip("kafka")

from faulty_server import OFFERED, api_versions, frame, server
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsRequest

LIMIT = 1.0
"""Seconds: what hangs is waited for in real time."""


def asked(address, **options):
    with Client(address, **options) as client:
        return client.list_offset("t", -1)


def offsets_answer(version, *parts):
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    found = [
        topic.ListOffsetsPartitionResponse(
            partition_index=number, error_code=error, offset=offset, timestamp=timestamp, leader_epoch=epoch
        )
        for number, error, offset, timestamp, epoch in parts
    ]
    return bytes(ListOffsetsResponse(version=version, topics=[topic(name="t", partitions=found)]).encode())


# -- versions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("newest", "exchanges"), [(4, [4]), (3, [4, 3]), (2, [4, 2]), (0, [4, 0])])
def test_the_versions_are_requested_from_the_newest_on(newest, exchanges):
    """An older broker returns its own versions with the error, in the format of version 0 (KIP-511)."""
    seen = []

    def reply(_, request):
        key, version, number = request
        if key == ApiVersionsRequest.API_KEY:
            seen.append(version)
            return frame(number, api_versions(OFFERED, version, newest))
        return frame(number, offsets_answer(5, (0, 0, 7, 70, 1)))

    with server(reply, None) as address:
        assert asked(address).offset == 7
    assert seen == exchanges


@pytest.mark.parametrize("reply", [None, b"", b"\0\0\0\0"], ids=["closes", "no body", "of version 0"])
def test_a_broker_that_cannot_read_a_new_request_for_versions_gets_version_0(reply):
    def answer(_, request):
        key, version, number = request
        if key != ApiVersionsRequest.API_KEY:
            return frame(number, offsets_answer(5, (0, 0, 7, 70, 1)))
        if version:
            return None if reply is None else frame(number, reply)
        return frame(number, api_versions(OFFERED, 0, 0))

    with server(answer, None) as address:
        assert asked(address).offset == 7


# -- no answer at all --------------------------------------------------------------------------------------------------


def test_a_closed_port_has_its_own_error():
    (port,) = free_ports(1)
    with pytest.raises(UnreachableError, match=rf"^the broker at 127\.0\.0\.1:{port} cannot be reached: .*refused"):
        asked(Address(HOST, port))


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 64, "."])
def test_a_host_that_has_no_address_is_unreachable(host):
    with pytest.raises(UnreachableError, match="cannot be reached"):
        asked(Address(host, 9092))


@pytest.mark.parametrize("offered", [OFFERED, None], ids=["after ApiVersions", "before it"])
def test_a_server_that_hangs_is_given_up(offered):
    gone = threading.Event()

    def hang(*_):
        gone.wait(10)

    with server(hang, offered) as address:
        with pytest.raises(RequestTimedOutError, match=r"did not answer \w+Request within 1 s"):
            asked(address, limit=LIMIT)
        gone.set()


def test_a_server_that_drips_is_given_up_all_the_same():
    gone = threading.Event()

    def drip(connection, _):
        connection.sendall(struct.pack(">i", 1000))
        while not gone.wait(LIMIT / 5):
            connection.sendall(b"\0")

    with server(drip) as address:
        with pytest.raises(RequestTimedOutError, match=r"did not answer ListOffsetsRequest within 1 s"):
            asked(address, limit=LIMIT)
        gone.set()


def test_a_server_that_does_not_read_is_given_up():
    gone = threading.Event()

    def hang(*_):
        gone.wait(10)

    with server(hang, {0: (3, 9)}) as address, Client(address, limit=LIMIT) as client:
        with pytest.raises(RequestTimedOutError, match=r"did not accept ProduceRequest within 1 s"):
            list(client.append_in_flight("t", [b"read", bytes(64 << 20)]))
        gone.set()


@pytest.mark.parametrize("sent", [b"", b"\0\0", struct.pack(">ii", 100, 2), struct.pack(">ii", 100, 2) + bytes(50)])
def test_a_server_that_closes_before_the_response_is_complete_has_its_own_error(sent):
    def close(connection, _):
        connection.sendall(sent)

    with (
        server(close) as address,
        pytest.raises(ClosedError, match="does not answer ListOffsetsRequest: the broker has closed"),
    ):
        asked(address)


def test_a_connection_that_failed_is_not_used_again():
    with server(lambda *_: None) as address, Client(address) as client:
        for _ in range(2):
            with pytest.raises(ClosedError, match="does not answer ListOffsetsRequest"):
                client.list_offset("t", -1)


# -- no such answer ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (struct.pack(">i", -1), "an answer of -1 bytes"),
        (struct.pack(">i", 3) + bytes(3), "an answer of 3 bytes"),
        (struct.pack(">i", 0x7FFFFFFF), "an answer of 2147483647 bytes"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "as a server for TLS does"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "as a server for HTTP does"),
    ],
)
def test_an_invalid_frame_is_not_read(sent, said):
    with server(lambda *_: sent) as address, pytest.raises(UndecodableError, match=said):
        asked(address)


def garbage(version):
    """Yield malformed responses to ListOffsets: cut at every byte, longer, with huge counts, with endless numbers."""
    whole = offsets_answer(version, (0, 0, 7, 70, 1))
    yield from (whole[:size] for size in range(len(whole)))
    yield whole + b"\0"
    yield b"\xff" * 40
    yield b"\x7f" * 40
    yield b"\x80" * 100_000
    yield whole[:4] + b"\x7f\xff\xff\xff" + whole[8:]
    yield whole.replace(b"t", b"\xff")


@pytest.mark.parametrize("version", [1, 5, 6, 9])
def test_any_malformed_response_is_the_same_error(version):
    kinds = 0
    head = b"\0" if version >= 6 else b""  # no tagged fields in the header
    error = pytest.raises(UndecodableError, match=f"ListOffsetsRequest version {version} that cannot be decoded")
    for body in garbage(version):
        with server(lambda _, request, body=body: frame(request[2], head + body)) as address, Client(address) as client:
            with error:
                client.request_offsets([PartitionQuery("t", -1)], version=version)
            kinds += 1
    assert kinds > 30


def test_the_answer_to_another_request_is_none():
    said = "answers request 3 instead of ListOffsetsRequest, request 2"
    reply = offsets_answer(5, (0, 0, 7, 70, 1))
    with (
        server(lambda _, request: frame(request[2] + 1, reply)) as address,
        pytest.raises(UndecodableError, match=said),
    ):
        asked(address)


@pytest.mark.parametrize("parts", [(), ((0, 0, 1, 1, 1), (0, 0, 1, 1, 1))], ids=["none", "two"])
def test_a_response_about_another_partition_is_an_error(parts):
    said = f"answers for {len(parts)} partitions instead of one"
    reply = offsets_answer(5, *parts)
    with server(lambda _, request: frame(request[2], reply)) as address, pytest.raises(UndecodableError, match=said):
        asked(address)


def test_null_instead_of_a_list_is_an_empty_list():
    def null(_, request):
        return frame(request[2], struct.pack(">ii", 0, -1))  # throttle time, topics

    with server(null) as address, Client(address) as client:
        assert client.request_offsets([PartitionQuery("t", -1)]) == []


# -- versions ----------------------------------------------------------------------------------------------------------


def test_versions_are_supported_by_both_broker_and_client():
    with server(lambda *_: None, {2: (3, 99), 1: (4, 99), 3: (0, 0), 99: (0, 1)}) as address, Client(address) as client:
        assert client.versions("ListOffsets") == range(3, ListOffsetsRequest.max_version + 1)
        assert client.versions("Fetch") == range(4, 13)
        assert not client.versions("Metadata")
        assert not client.versions("DeleteRecords")
        assert client.offered[99] == range(2)


def test_a_version_is_the_default_or_the_nearest_or_exactly_the_requested_one():
    seen = []

    def note(_, request):
        seen.append(request[1])
        body = offsets_answer(request[1], (0, 0, 7, 70, 1))
        return frame(request[2], (b"\0" if request[1] >= 6 else b"") + body)

    for lowest, highest in ((1, 9), (0, 2), (7, 8)):
        with server(note, {2: (lowest, highest)}) as address, Client(address) as client:
            client.request_offsets([PartitionQuery("t", 0)])
            for version in range(lowest, highest + 1):
                client.request_offsets([PartitionQuery("t", 0)], version=version)
    assert seen == [5, *range(1, 10), 2, *range(3), 7, 7, 8]


def test_a_version_that_the_broker_does_not_offer_is_not_sent():
    def fail(*_):
        pytest.fail("it was sent")

    with server(fail) as address, Client(address) as client:
        with pytest.raises(UnsupportedApiError, match=r"does not offer DeleteRecords$"):
            client.delete_records("t", 1)
        with pytest.raises(UnsupportedApiError, match="does not offer version 10 of ListOffsets, but 1 to 9"):
            client.list_offset("t", -1, version=10)
        with pytest.raises(UnsupportedApiError, match=r"does not offer FindCoordinator$"):
            client.init_producer("me")
    with (
        server(fail, {1: (17, 18)}) as address,
        Client(address) as client,
        pytest.raises(
            UnsupportedApiError, match="does not offer Fetch in a version that the client knows, but 17 to 18"
        ),
    ):
        client.fetch("t", 0)


# -- answers -----------------------------------------------------------------------------------------------------------


def test_results_are_unchanged_and_in_the_order_of_the_targets():
    def echo(_, request):
        number = request[2]
        error = 3 if number % 5 == 0 else 12345 if number % 7 == 0 else 0
        return frame(number, offsets_answer(5, (0, error, number, 10 * number, -1 if number % 2 else 4)))

    with server(echo) as address, Client(address) as client:
        answers = client.answers("t", range(200))
    for number, answer in enumerate(answers, 2):
        if number % 5 == 0:
            assert answer == OffsetResult(number - 2, error="UNKNOWN_TOPIC_OR_PARTITION")
        elif number % 7 == 0:
            assert answer == OffsetResult(number - 2, error="ERROR_12345")
        else:
            assert answer == OffsetResult(number - 2, number, 10 * number, None if number % 2 else 4)


def test_the_old_answer_is_a_list_of_offsets():
    assert PartitionOffsetResponse("t", 0, None, old_offsets=(7, 3)).to_result(9) == OffsetResult(9, 7)
    assert PartitionOffsetResponse("t", 0, None).to_result(9) == OffsetResult(9)


def create_answer(code):
    def answer(_, request):
        return frame(request[2], struct.pack(">iih1shh", 0, 1, 1, b"t", code, -1))

    return answer


def test_an_error_has_its_name():
    with server(create_answer(36)) as address, Client(address) as client, pytest.raises(ErrorResponseError) as caught:
        client.create_topic("t", {})
    assert "fails to create t: TOPIC_ALREADY_EXISTS" in str(caught.value)
    assert caught.value.error == "TOPIC_ALREADY_EXISTS"


def test_a_retriable_error_is_retried_within_the_limit():
    codes = [41, 5, 0]

    def change(connection, request):
        return create_answer(codes.pop(0))(connection, request)

    with server(change) as address, Client(address) as client:
        client.create_topic("t", {})
    assert not codes
    with (
        server(create_answer(41)) as address,
        Client(address, limit=LIMIT) as client,
        pytest.raises(ErrorResponseError),
    ):
        client.create_topic("t", {})


# -- its surroundings --------------------------------------------------------------------------------------------------


def test_every_error_is_one_line_and_can_be_distinguished():
    class TheirError(Exception):
        pass

    (port,) = free_ports(1)
    with pytest.raises(TheirError, match=r"^cannot be reached") as caught:
        Client(Address(HOST, port), explain=lambda error: TheirError(error.what))
    assert isinstance(caught.value.__cause__, UnreachableError)
    assert issubclass(ClientError, ToolError)


def test_the_connection_is_opened_by_a_given_function():
    opened = []

    def connect(host, port, limit):
        opened.append((host, port, limit))
        return socket.create_connection((host, port), limit)

    reply = offsets_answer(5, (0, 0, 7, 70, 1))
    with server(lambda _, request: frame(request[2], reply)) as address:
        assert asked(address, connect=connect, limit=13).offset == 7
    assert opened == [(*address, 13)]


def test_an_address_is_a_host_and_a_port():
    assert Address.parse("[::1]:9092") == ("::1", 9092)
    assert str(Address.parse("[::1]:9092")) == "[::1]:9092"
    assert str(Address.parse("localhost:1")) == "localhost:1"
    for nonsense in ("localhost", "host:port", ":9092", "host:0", "host:99999", "host:९"):
        with pytest.raises(ToolError, match="--here must be HOST:PORT"):
            Address.parse(nonsense, "--here")


def test_without_kafka_python_one_line_says_what_to_install(monkeypatch):
    def missing(name):
        raise ImportError(name)

    library.kafka_python.cache_clear()
    library.request_class.cache_clear()
    monkeypatch.setattr(library, "import_module", missing)
    with pytest.raises(ToolError, match=r"kidx\[broker\]"):
        Client(Address(HOST, 1))
