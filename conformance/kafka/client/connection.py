"""Connection to a broker, with requests and responses in order, and a time limit for each.

Each kind of failure has a class of errors. A message begins with the broker's address; :attr:`ClientError.what` is the
rest of it.
"""

from __future__ import annotations

import io
import itertools
import re
import socket
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self

from conformance.errors import ToolError
from conformance.kafka.polling import Deadline


class ClientError(ToolError):
    """Failure of a request to a broker.

    Attributes:
        broker: name of the broker in the message.
        what: predicate of the message, whose subject is the broker.
    """

    def __init__(self, broker: str, what: str) -> None:
        super().__init__(f"{broker} {what}")
        self.broker = broker
        self.what = what


class UnreachableError(ClientError):
    """Failure to connect: a closed port, a host name without an address, or no route."""


class RequestTimedOutError(ClientError):
    """Connected broker that did not answer, or did not accept a request, within the time limit."""


class ClosedError(ClientError):
    """Connection closed by the broker before the response was complete."""


class UndecodableError(ClientError):
    """Response that does not match the request: too large, for another request, truncated, or of another format."""


class UnsupportedApiError(ClientError):
    """API that the broker does not offer at all, or not in a requested version."""


class ErrorResponseError(ClientError):
    """Error returned by the broker.

    Attributes:
        error: name in Kafka's protocol, such as ``TOPIC_ALREADY_EXISTS``.
    """

    def __init__(self, broker: str, what: str, error: str) -> None:
        super().__init__(broker, f"fails to {what}: {error}")
        self.error = error


TIMEOUT_S: Final = 20.0
"""Maximum seconds for one response."""
MAX_RESPONSE_BYTES: Final = 128 << 20
"""Maximum size of a response. A broker sends at most 55 MiB of batches unless a single batch is larger."""

_CLIENT_ID: Final = "kidx"
_BLOCK: Final = 1 << 20
_OTHERS: Final = {b"\x15\x03": "TLS", b"HT": "HTTP"}
"""First bytes of a response in another protocol."""
# Decoding a varint with 4,096 continuation bytes would take hours. No valid text or number has them.
_ENDLESS: Final = re.compile(rb"[\x80-\xff]{4096}")
_DECODING: Final = (struct.error, ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)

Connect = Callable[[str, int, float], socket.socket]
"""Function that opens a connection for requests, including TLS and SASL. Arguments: host, port, seconds."""


class Address(NamedTuple):
    """Address on which a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str, what: str = "a broker's address") -> Self:
        """Parse ``HOST:PORT``; an IPv6 address is in brackets.

        Args:
            text: the address.
            what: name of the option, for the message.

        Raises:
            ToolError: the text has another form.
        """
        host, colon, port = text.rpartition(":")
        if not (colon and host and port.isascii() and port.isdecimal() and 0 < int(port) < 1 << 16):
            raise ToolError(f"{what} must be HOST:PORT, not {text!r}")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))


def connect_plaintext(host: str, port: int, limit: float) -> socket.socket:
    """Open a connection without TLS and without authentication."""
    return socket.create_connection((host, port), limit)


class Connection:
    """Connection to a broker; the constructor opens it, and the first failure closes it.

    Args:
        limit: maximum seconds for connecting, for sending a request, and for each complete response.
        connect: function that opens the socket.
        largest: maximum size of a response in bytes.

    Raises:
        UnreachableError: the connection cannot be opened.
    """

    def __init__(
        self,
        address: Address,
        *,
        limit: float = TIMEOUT_S,
        connect: Connect = connect_plaintext,
        largest: int = MAX_RESPONSE_BYTES,
    ) -> None:
        self.address = address
        self.name = f"the broker at {address}"
        self._limit = limit
        self._largest = largest
        self._numbers = itertools.count(1)
        self._sent: deque[Any] = deque()
        self._failure: ClientError | None = None
        try:
            self._socket = connect(address.host, address.port, limit)
        except (OSError, UnicodeError) as error:  # UnicodeError for an invalid host name
            raise UnreachableError(self.name, f"cannot be reached: {_reason(error)}") from error

    def close(self) -> None:
        """Close the connection; a second call has no effect."""
        with suppress(OSError):
            self._socket.close()

    def send(self, request: Any) -> None:
        """Send a request of kafka-python; :meth:`receive` returns the responses in the order of the requests.

        Raises:
            ClosedError: the broker has closed the connection.
            RequestTimedOutError: the broker accepts no more bytes within the time limit.
        """
        if self._failure is not None:
            raise self._failure
        request.with_header(next(self._numbers), _CLIENT_ID)
        data = request.encode(header=True, framed=True)
        self._sent.append(request)
        try:
            self._socket.settimeout(self._limit)
            self._socket.sendall(data)
        except TimeoutError as error:
            raise self._give_up(
                RequestTimedOutError, f"did not accept {request.name} within {self._limit:g} s"
            ) from error
        except OSError as error:
            raise self._give_up(ClosedError, f"does not accept {request.name}: {_reason(error)}") from error

    def receive(self) -> Any:
        """Wait for the response to the oldest unanswered request, and decode it.

        Raises:
            RequestTimedOutError: the response is not complete within the time limit.
            ClosedError: the broker has closed the connection.
            UndecodableError: the data is not a response to the request.
        """
        if self._failure is not None:
            raise self._failure
        request = self._sent.popleft()
        deadline = Deadline(self._limit)
        try:
            head = self._read(4, deadline)
            (size,) = struct.unpack(">i", head)
            if not 4 <= size <= self._largest:
                other = _OTHERS.get(head[:2])
                hint = f", as a server for {other} does" if other else ""
                what = f"announces an answer of {size} bytes to {request.name}{hint}; at most {self._largest} are read"
                raise self._give_up(UndecodableError, what)
            reply = self._read(size, deadline)
        except TimeoutError as error:
            raise self._give_up(
                RequestTimedOutError, f"did not answer {request.name} within {self._limit:g} s"
            ) from error
        except OSError as error:
            raise self._give_up(ClosedError, f"does not answer {request.name}: {_reason(error)}") from error
        return self._decoded(request, reply)

    def exchange(self, request: Any) -> Any:
        """Send a request and return its response.

        Raises:
            ClientError: See :meth:`send` and :meth:`receive`.
        """
        self.send(request)
        return self.receive()

    def _read(self, size: int, deadline: Deadline) -> bytes:
        data = bytearray()
        while len(data) < size:
            # A timeout of 0 would make the socket non-blocking, which raises another error.
            self._socket.settimeout(max(deadline.left, 0.001))
            block = self._socket.recv(min(size - len(data), _BLOCK))
            if not block:
                raise ConnectionError("the broker has closed the connection")
            if not deadline.left:
                raise TimeoutError
            data += block
        return bytes(data)

    def _decoded(self, request: Any, reply: bytes) -> Any:
        number = struct.unpack(">i", reply[:4])[0]
        if number != request.header.correlation_id:
            what = f"answers request {number} instead of {request.name}, request {request.header.correlation_id}"
            raise self._give_up(UndecodableError, what)
        form = request.header.get_response_class()
        try:
            if request.name != "FetchRequest" and _ENDLESS.search(reply):
                raise ValueError("a variable-length number does not end")
            return _decode(form, request.API_VERSION, reply)
        except _DECODING as error:
            what = f"gives an answer to {request.name} version {request.API_VERSION} that cannot be decoded"
            raise self._give_up(UndecodableError, f"{what}: {_reason(error)}") from error

    def _give_up(self, kind: type[ClientError], what: str) -> ClientError:
        """Close the connection, because later bytes cannot be assigned to a request; return the error."""
        self._failure = kind(self.name, what)
        self.close()
        return self._failure


def _decode(form: Any, version: int, reply: bytes) -> Any:
    """Decode a response, and check that all bytes are used, because kafka-python accepts a truncated string."""
    flexible = form.flexible_version_q(version)
    stream = io.BytesIO(reply)
    form.parse_header(stream, version)
    body = memoryview(reply)[stream.tell() :]
    if form.name == "ApiVersionsResponse" and bytes(body[:2]) != b"\0\0":
        version, flexible = 0, False  # KIP-511: an error has the format of version 0, which every client can read
    decode = form._struct.compiled_decode_from(  # noqa: SLF001  (the public method does not return where it stopped)
        version, compact=flexible, tagged=flexible, data_class=form[None]
    )
    decoded, end = decode(body, 0)
    if end != len(body):
        raise ValueError(f"it has {len(body)} bytes, and its fields {end}")
    return decoded


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
