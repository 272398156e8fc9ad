"""``-i wire:HOST:PORT`` with what is no such broker: one clear line, and nothing is made."""

from __future__ import annotations

import socket
import struct
import threading

import pytest

from conformance.errors import ToolError
from conformance.implementations.wire.broker import PREFIX, WireBroker
from conformance.kafka.broker.ports import HOST, free_ports
from conformance.kafka.client import Address
from conformance.kafka.client.security import read_command_config

pytest.importorskip("kafka")

from faulty_server import frame, server
from kafka.protocol.admin import CreateTopicsRequest, CreateTopicsResponse, DeleteRecordsRequest, DeleteTopicsRequest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest, MetadataResponse
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
)

ALWAYS = (MetadataRequest, CreateTopicsRequest, DeleteTopicsRequest, ProduceRequest, FetchRequest, ListOffsetsRequest)
TRANSACTIONS = (FindCoordinatorRequest, InitProducerIdRequest, AddPartitionsToTxnRequest, EndTxnRequest)
WHOLE = {kind.API_KEY: (0, kind.max_version) for kind in (*ALWAYS, DeleteRecordsRequest, *TRANSACTIONS)}


def without(*kinds):
    return {key: range_ for key, range_ in WHOLE.items() if key not in {kind.API_KEY for kind in kinds}}


def metadata(request):
    number, version = request[2], request[1]
    response = MetadataResponse(version=version, brokers=[], cluster_id="c", controller_id=1, topics=[])
    return frame(number, bytes(response.encode()))


def refused(address, **options):
    with pytest.raises(ToolError) as raised:
        WireBroker(address, limit=1.0, **options).close()
    return str(raised.value)


def test_a_closed_port_is_one_line():
    (port,) = free_ports(1)
    assert refused(Address(HOST, port)).startswith(f"the broker at {HOST}:{port} cannot be reached")


def test_a_broker_that_hangs_is_one_line():
    gone = threading.Event()
    with server(lambda *_: gone.wait(10) and None, WHOLE) as address:
        assert "did not answer MetadataRequest within 1 s; for TLS or SASL give --command-config" in refused(address)
        gone.set()


@pytest.mark.parametrize("sent", [b"", struct.pack(">ii", 100, 2) + bytes(50)], ids=["no byte", "incomplete"])
def test_a_broker_that_closes_is_one_line(sent):
    with server(lambda connection, _: connection.sendall(sent), WHOLE) as address:
        said = refused(address)
    assert "does not answer MetadataRequest: the broker has closed the connection; for TLS or SASL" in said


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ((DeleteRecordsRequest,), "does not offer DeleteRecords: add --skip-feature delete-records"),
        ((InitProducerIdRequest, EndTxnRequest), "offer InitProducerId, EndTxn: add --skip-feature transactions"),
        (
            (DeleteRecordsRequest, EndTxnRequest, CreateTopicsRequest),
            "EndTxn, CreateTopics: add --skip-feature delete-records --skip-feature transactions --skip-feature topic-",
        ),
        (
            (ListOffsetsRequest, EndTxnRequest),
            "EndTxn: every run over its protocol needs ListOffsets; add --skip-feature transactions",
        ),
    ],
)
def test_a_missing_feature_of_a_broker_is_reported_before_anything_is_created(missing, said):
    with server(lambda _, request: metadata(request), without(*missing)) as address:
        assert said in refused(address)


def test_a_missing_feature_can_be_skipped():
    offered = without(DeleteRecordsRequest, *TRANSACTIONS)
    with (
        server(lambda _, request: metadata(request), offered) as address,
        WireBroker(address, without=("delete-records", "transactions"), limit=1.0) as broker,
    ):
        assert broker.made == []


def test_a_foreign_topic_with_our_prefix_ends_the_run():
    """And it is not deleted: a request to delete would be answered with nothing, which is an error."""
    asked = []

    def reply(_, request):
        key, version, number = request
        asked.append(key)
        if key == CreateTopicsRequest.API_KEY:
            result = CreateTopicsResponse.CreatableTopicResult(name="t", error_code=36)
            response = CreateTopicsResponse(version=version, throttle_time_ms=0, topics=[result])
            return frame(number, bytes(response.encode()))
        return metadata(request)

    with (
        server(reply, WHOLE) as address,
        WireBroker(address, limit=1.0) as broker,
        pytest.raises(ToolError, match=rf"has a topic {PREFIX}\w+-1 that this run has not created"),
    ):
        broker.create({})
    assert DeleteTopicsRequest.API_KEY not in asked


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("security.protocol=SSH", "security.protocol is 'SSH', not one of PLAINTEXT, SSL"),
        ("security.protocol=SSL\nssl.truststore.location=/x.jks", "ssl.truststore.type must be PEM"),
        (
            "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=/nothing.pem",
            "cannot read its certificates",
        ),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI", "sasl.mechanism is 'GSSAPI', not one of PLAIN"),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN", "sasl.jaas.config has no username="),
        ("security.protocol=SSL\nssl.cipher.suites=X", "has unsupported settings: ssl.cipher.suites"),
    ],
)
def test_an_invalid_command_config_is_one_line(tmp_path, text, said):
    path = tmp_path / "client.properties"
    path.write_text(text)
    with pytest.raises(ToolError) as raised:
        read_command_config(path)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_command_config_is_one_line(tmp_path):
    with pytest.raises(ToolError, match="cannot read the command config"):
        read_command_config(tmp_path / "nothing")


def serving(answer):
    """Open a listening socket whose only connection is handled by ``answer``; yield the thread, to be joined."""
    listening = socket.create_server((HOST, 0))

    def serve():
        connection, _ = listening.accept()
        with connection, listening:
            answer(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return Address(*listening.getsockname()[:2]), thread


def frames(connection):
    while len(head := connection.recv(4, socket.MSG_WAITALL)) == 4:
        yield connection.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)


def logged_in(token_error):
    seen = []

    def answer(connection):
        for request in frames(connection):
            key, _, number = struct.unpack_from(">hhi", request)
            seen.append((key, request[14:]))
            if key == 17:
                connection.sendall(frame(number, struct.pack(">hi", 0, 0)))
            else:
                connection.sendall(frame(number, struct.pack(">hhi", token_error, -1, 0)))

    return answer, seen


@pytest.mark.parametrize("error", [0, 58], ids=["let in", "refused"])
def test_a_log_in_with_a_password_is_sent_as_kafkas_tools_send_it(tmp_path, error):
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\\n"
        '  username="alice" password="se cret";\n'
    )
    answer, seen = logged_in(error)
    address, thread = serving(answer)
    connect = read_command_config(path)
    if error:
        said = refused(address, connect=connect)
        assert "cannot be reached: the broker rejects the authentication: SASL_AUTHENTICATION_FAILED" in said
    else:
        connect(*address, 1.0).close()
    thread.join()
    assert seen[0] == (17, struct.pack(">h", 5) + b"PLAIN")
    assert seen[1][1].endswith(b"\0alice\0se cret") or seen[1][1].endswith(b"alice\0alice\0se cret")


def test_a_malformed_log_in_response_is_one_line(tmp_path):
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=x.ScramLoginModule required username='alice' password='p';\n"
    )

    def answer(connection):
        for request in frames(connection):
            key, _, number = struct.unpack_from(">hhi", request)
            connection.sendall(frame(number, struct.pack(">hi", 0, 0) if key == 17 else b"\0\0nothing"))

    address, thread = serving(answer)
    assert "cannot be reached: cannot read the broker's response to the authentication" in refused(
        address, connect=read_command_config(path)
    )
    thread.join()


def test_tls_works_and_a_broker_without_it_is_one_line(tmp_path):
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SSL\n")
    greeting = []

    def answer(connection):
        greeting.append(connection.recv(3))
        connection.sendall(b"no TLS here")

    address, thread = serving(answer)
    assert "cannot be reached" in refused(address, connect=read_command_config(path))
    thread.join()
    assert greeting[0][:2] == b"\x16\x03"
