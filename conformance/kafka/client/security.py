"""TLS and SASL for the client, configured by the same file as ``--command-config`` of Kafka's own tools.

Supported settings: ``security.protocol``; ``ssl.truststore.location`` and ``ssl.keystore.location`` of type PEM, or the
certificates themselves; ``ssl.endpoint.identification.algorithm``; ``sasl.mechanism`` PLAIN, SCRAM-SHA-256 or
SCRAM-SHA-512, with user name and password in ``sasl.jaas.config``. Any other security setting is rejected, because
a partly applied security configuration is not secure.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.kafka.client.library import error_name, kafka_python

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.kafka.client.connection import Connect

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_KNOWN: Final = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "ssl.truststore.location",
        "ssl.truststore.type",
        "ssl.truststore.certificates",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
    }
)
_SECURITY_SETTING: Final = re.compile(r"(security|sasl|ssl)\.")
_MAX_RESPONSE_BYTES: Final = 1 << 20
_ESCAPE: Final = re.compile(r"\\(.)")
_HANDSHAKE, _AUTHENTICATE = 17, 36  # API keys


def read_command_config(path: Path) -> Connect:
    """Return a function that opens a connection as configured in the file.

    Raises:
        ToolError: the file cannot be read, or has an unsupported setting.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error  # without the error number and the path
        raise ToolError(f"cannot read the command config {path}: {reason}") from None
    settings = _properties(text)
    where = f"the command config {path}"
    if unknown := sorted(name for name in settings if _SECURITY_SETTING.match(name) and name not in _KNOWN):
        raise ToolError(f"{where} has unsupported settings: {', '.join(unknown)}")
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise ToolError(f"{where}: security.protocol is {protocol!r}, not one of {', '.join(_PROTOCOLS)}")
    context = _context(where, settings) if protocol.endswith("SSL") else None
    login = _Login.of(where, settings) if protocol.startswith("SASL") else None

    def connect(host: str, port: int, limit: float) -> socket.socket:
        with ExitStack() as stack:
            opened = stack.enter_context(socket.create_connection((host, port), limit))
            if context is not None:
                opened = stack.enter_context(context.wrap_socket(opened, server_hostname=host))
            if login is not None:
                try:
                    login.log_in(opened)
                except (struct.error, ValueError) as error:
                    raise ConnectionError(
                        f"cannot read the broker's response to the authentication: {error}"
                    ) from error
            stack.pop_all()
            return opened

    return connect


def _properties(text: str) -> dict[str, str]:
    """Parse a Java properties file: ``key=value`` or ``key: value``, comments, continuation after a backslash."""
    found: dict[str, str] = {}
    for line in re.sub(r"\\\r?\n[ \t]*", "", text).splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            key, _, value = (
                stripped.replace(":", "=", 1).partition("=") if "=" not in stripped else stripped.partition("=")
            )
            found[key.strip()] = _ESCAPE.sub(r"\1", value.strip())
    return found


def _context(where: str, settings: Mapping[str, str]) -> ssl.SSLContext:
    for kind in ("truststore", "keystore"):
        if f"ssl.{kind}.location" in settings and settings.get(f"ssl.{kind}.type", "").upper() != "PEM":
            raise ToolError(f"{where}: ssl.{kind}.type must be PEM, the only supported type")
    try:
        context = ssl.create_default_context(
            cafile=settings.get("ssl.truststore.location"),
            cadata=settings.get("ssl.truststore.certificates"),
        )
        if store := settings.get("ssl.keystore.location"):
            context.load_cert_chain(store, password=settings.get("ssl.key.password"))
    except (OSError, ValueError) as error:
        raise ToolError(f"{where}: cannot read its certificates: {error}") from None
    if settings.get("ssl.endpoint.identification.algorithm", "https") == "":
        context.check_hostname = False
    return context


class _Login:
    """SASL authentication, with the wire protocol's own requests."""

    def __init__(self, mechanism: str, username: str, password: str) -> None:
        self._mechanism = mechanism
        self._names = {"sasl_mechanism": mechanism, "sasl_plain_username": username, "sasl_plain_password": password}

    @classmethod
    def of(cls, where: str, settings: Mapping[str, str]) -> _Login:
        mechanism = settings.get("sasl.mechanism", "")
        if mechanism not in _MECHANISMS:
            raise ToolError(f"{where}: sasl.mechanism is {mechanism!r}, not one of {', '.join(_MECHANISMS)}")
        credentials = dict(
            re.findall(r"(username|password)\s*=\s*[\"']([^\"']*)[\"']", settings.get("sasl.jaas.config", ""))
        )
        if set(credentials) != {"username", "password"}:
            raise ToolError(f'{where}: sasl.jaas.config has no username="..." and password="..."')
        return cls(mechanism, credentials["username"], credentials["password"])

    def log_in(self, opened: socket.socket) -> None:
        """Authenticate the client.

        Raises:
            OSError: the broker rejects the client. The caller reports such an error as an unreachable broker.
            ValueError, struct.error: the response is malformed.
        """
        kafka_python()
        sasl = import_module("kafka.net.sasl").get_sasl_mechanism(self._mechanism)(**self._names)
        name = self._mechanism.encode()
        answer = _exchange(opened, _HANDSHAKE, 1, struct.pack(">h", len(name)) + name)
        if error := error_name(struct.unpack_from(">h", answer)[0]):
            raise PermissionError(f"the broker does not know SASL {self._mechanism}: {error}")
        while not sasl.is_done():
            token = sasl.auth_bytes()
            answer = _exchange(opened, _AUTHENTICATE, 0, struct.pack(">i", len(token)) + token)
            if error := error_name(struct.unpack_from(">h", answer)[0]):
                raise PermissionError(f"the broker rejects the authentication: {error}")
            at = 4 + max(0, struct.unpack_from(">h", answer, 2)[0])
            (size,) = struct.unpack_from(">i", answer, at)
            sasl.receive(bytes(answer[at + 4 : at + 4 + max(size, 0)]))


def _exchange(opened: socket.socket, key: int, version: int, body: bytes) -> bytes:
    """Send a request with the oldest version of the header, and return the response without its header."""
    message = struct.pack(">hhih", key, version, 0, 4) + b"kidx" + body
    opened.sendall(struct.pack(">i", len(message)) + message)
    (size,) = struct.unpack(">i", _exactly(opened, 4))
    if not 6 <= size <= _MAX_RESPONSE_BYTES:
        raise ConnectionError(f"the broker's response to the authentication has {size} bytes")
    return _exactly(opened, size)[4:]


def _exactly(opened: Any, size: int) -> bytes:
    data = b""
    while len(data) < size:
        block = opened.recv(size - len(data))
        if not block:
            raise ConnectionError("the broker has closed the connection during the authentication")
        data += block
    return data
