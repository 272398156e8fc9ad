"""A broker that wants TLS and a log-in: reached with the file of Kafka's own tools, and one clear line without it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from conformance.errors import ToolError
from conformance.implementations.wire.broker import WireBroker
from conformance.kafka.broker import LocalBroker
from conformance.kafka.broker.ports import HOST, free_ports
from conformance.kafka.client import Address
from conformance.kafka.client.security import read_command_config
from conformance.lockstep.scopes.wire import WireLockstep
from conformance.operations import Operation
from conformance.operations.trace import Trace
from conformance.runs.replay import replay
from conformance.runs.wire_options import WireOptions

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.broker,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl"),
]

RELEASE = "4.3.1"
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="{}"{};'
LISTENERS = ("PLAINTEXT", "SECURE")


class Secured(LocalBroker):
    """With a listener more, for TLS and SASL."""

    secured = 0

    def _new_node(self):
        node = super()._new_node()
        (self.secured,) = free_ports(1)
        ports = {"PLAINTEXT": node.port, "SECURE": self.secured}
        clients = ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())
        self.config |= {
            "listeners": f"{clients},CONTROLLER://{HOST}:{node.voters[node.node_id]}",
            "advertised.listeners": clients,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL",
        }
        return node


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    directory = tmp_path_factory.mktemp("certificate")
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", f"subjectAltName=IP:{HOST}", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    (directory / "store.pem").write_bytes(key.read_bytes() + certificate.read_bytes())
    return certificate


@pytest.fixture(scope="module")
def address(certificate, tmp_path_factory):
    config = {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": LOGIN.format("broker", "b", ' user_alice="se cret"'),
        "listener.name.secure.ssl.keystore.type": "PEM",
        "listener.name.secure.ssl.keystore.location": certificate.with_name("store.pem"),
    }
    with Secured(RELEASE, config=config, base=tmp_path_factory.mktemp("secured")) as broker:
        yield Address(HOST, broker.secured)


def command_config(tmp_path, certificate, password):
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={certificate}\n"
        f"sasl.mechanism=PLAIN\nsasl.jaas.config={LOGIN.format('alice', password, '')}\n"
    )
    return read_command_config(path)


def test_settings_of_kafkas_tools_open_it(address, certificate, tmp_path):
    connect = command_config(tmp_path, certificate, "se cret")
    with WireBroker(address, connect=connect) as broker:
        lockstep = WireLockstep(broker, RELEASE, tmp_path)
        lockstep.perform(Operation("create_topic", ({"retention.ms": -1, "segment.bytes": 1 << 20},)))
        lockstep.perform(Operation("append_batch", ([[1_700_000_000_000, None, 20]], "gzip", "a")))
        lockstep.finish()
    assert lockstep.differences == {}
    assert lockstep.statistics.answers > 100


def test_a_trace_is_replayed_with_it(address, certificate, tmp_path):
    command_config(tmp_path, certificate, "se cret")
    steps = (
        Operation("create_topic", ({"retention.ms": -1, "segment.bytes": 1 << 20},)),
        Operation("append_batch", ([[1_700_000_000_000, None, 20]], "none", None)),
    )
    options = WireOptions(tmp_path / "client.properties", without=("transactions",))
    replayed = replay(Trace("wire", RELEASE, steps, None), [RELEASE], [f"wire:{address}"], wire=options)
    assert (replayed.verdict, replayed.steps) == ("FIXED", 2)


def test_without_settings_one_line_says_what_to_pass(address):
    with pytest.raises(ToolError, match=r"; for TLS or SASL give --command-config FILE$") as raised:
        WireBroker(address, limit=5.0)
    assert "\n" not in str(raised.value)


def test_a_wrong_password_is_one_line(address, certificate, tmp_path):
    connect = command_config(tmp_path, certificate, "wrong")
    with pytest.raises(
        ToolError, match="cannot be reached: the broker rejects the authentication: SASL_AUTHENTICATION_FAILED"
    ):
        WireBroker(address, connect=connect)


def test_an_untrusted_certificate_is_one_line(address, tmp_path):
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SSL\n")
    with pytest.raises(ToolError, match=r"cannot be reached: .*certificate"):
        WireBroker(address, connect=read_command_config(path))
