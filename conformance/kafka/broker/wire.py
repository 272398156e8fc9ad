"""The few bytes of protocol that tell whether a broker, or a ZooKeeper, is ready — and whether it is ours.

Metadata version 2 is understood by every release from 2.4 to 4.4 and carries the cluster id.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from conformance.kafka.broker.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
_METADATA, _METADATA_VERSION = 3, 2
_API_VERSIONS, _API_VERSIONS_VERSION = 18, 0
_CORRELATION = 0x6B696478
_LONGEST_REPLY = 1 << 20


class NotReadyError(Exception):
    """No answer, or not yet the one that is waited for."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a broker says of its cluster: its id, the brokers as ``{node id: port}``, and the controller's node id."""

    cluster_id: str
    brokers: dict[int, int]
    controller: int


def ask_metadata(port: int, timeout: float = 2.0, *, host: str = HOST) -> Metadata:
    """Ask the broker at a port what it knows about its cluster, without any topic.

    Raises:
        NotReadyError: nobody answers, or not as a broker does.
    """
    # An array of no topics; null would mean all.
    return _ask((host, port), timeout, _METADATA, _METADATA_VERSION, struct.pack(">i", 0), _parse_metadata)


def ask_api_versions(port: int, timeout: float = 2.0, *, host: str = HOST) -> dict[int, int]:
    """Ask the broker at a port up to which version it understands each request: ``{api key: version}``.

    Raises:
        NotReadyError: nobody answers, or not as a broker does.
    """
    return _ask((host, port), timeout, _API_VERSIONS, _API_VERSIONS_VERSION, b"", _parse_api_versions)


def _ask(
    address: tuple[str, int], timeout: float, api: int, version: int, body: bytes, parse: Callable[[_Reader], _T]
) -> _T:
    client = b"kidx"
    # api key, version, correlation id, client id
    header = struct.pack(f">hhih{len(client)}s", api, version, _CORRELATION, len(client), client)
    try:
        with socket.create_connection(address, timeout) as connection:
            connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
            (size,) = struct.unpack(">i", _receive(connection, 4))
            if not 0 < size < _LONGEST_REPLY:
                raise NotReadyError(f"an answer of {size} bytes")
            reply = _Reader(_receive(connection, size))
            if reply.int32() != _CORRELATION:
                raise NotReadyError("an answer to something else")
            return parse(reply)
    except (OSError, struct.error, UnicodeError) as error:
        raise NotReadyError(str(error)) from error


def ask_zookeeper(port: int, command: str, timeout: float = 2.0) -> str:
    """Ask the ZooKeeper at a port one of its four-letter commands.

    Raises:
        NotReadyError: nobody answers.
    """
    try:
        with socket.create_connection((HOST, port), timeout) as connection:
            connection.sendall(command.encode("ascii"))
            answer = b""
            while block := connection.recv(65536):
                answer += block
    except OSError as error:
        raise NotReadyError(str(error)) from error
    if not answer:
        raise NotReadyError("no answer")
    return answer.decode("utf-8", errors="replace")


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        block = connection.recv(size - len(data))
        if not block:
            raise NotReadyError("the connection was closed")
        data += block
    return data


class _Reader:
    """Takes Kafka's primitive types off the front of a reply."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def int16(self) -> int:
        return int.from_bytes(self._take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def string(self) -> str:
        """Take a string; null reads as empty."""
        return self._take(max(self.int16(), 0)).decode("utf-8")

    def _take(self, size: int) -> bytes:
        data = self._data[self._position : self._position + size]
        if len(data) < size:
            raise NotReadyError("an answer that is cut off")
        self._position += size
        return data


def _parse_metadata(reply: _Reader) -> Metadata:
    brokers = {}
    for _ in range(reply.int32()):
        node_id = reply.int32()
        reply.string()  # host
        brokers[node_id] = reply.int32()
        reply.string()  # rack
    cluster_id = reply.string()
    return Metadata(cluster_id, brokers, controller=reply.int32())


def _parse_api_versions(reply: _Reader) -> dict[int, int]:
    if error := reply.int16():
        raise NotReadyError(f"error {error}")
    versions = {}
    for _ in range(reply.int32()):
        key = reply.int16()
        reply.int16()  # the lowest
        versions[key] = reply.int16()
    return versions
