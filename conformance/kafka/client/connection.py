"""One connection to a broker: frames of bytes, requests out and answers in, in order and each within a time limit."""

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
from conformance.kafka.client.errors import ClientError, ClosedError, NoAnswerError, UndecodableError, UnreachableError
from conformance.kafka.polling import Deadline

LIMIT: Final = 20.0
"""Seconds that one answer may take."""
LARGEST_ANSWER: Final = 128 << 20
"""Bytes. A broker sends at most 55 MiB of batches unless one batch alone is larger."""

_CLIENT_ID: Final = "kidx"
_BLOCK: Final = 1 << 20
_OTHERS: Final = {b"\x15\x03": "TLS", b"HT": "HTTP"}
# Decoding an integer of that many continued bytes would take hours; no text or number of an answer looks like that.
_ENDLESS: Final = re.compile(rb"[\x80-\xff]{4096}")
_DECODING: Final = (struct.error, ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)

Connect = Callable[[str, int, float], socket.socket]
"""Opens a connection to a host and port within so many seconds, ready for requests: the place for TLS and SASL."""


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str, what: str = "a broker's address") -> Self:
        """Read ``HOST:PORT``; an IPv6 address stands in brackets.

        Args:
            text: the address.
            what: the name of the option, for the message.

        Raises:
            ToolError: it has another form.
        """
        host, colon, port = text.rpartition(":")
        if not (colon and host and port.isascii() and port.isdecimal() and 0 < int(port) < 1 << 16):
            raise ToolError(f"{what} is HOST:PORT, not {text!r}")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))


def connect_plainly(host: str, port: int, limit: float) -> socket.socket:
    """Open a connection without TLS and without a log-in."""
    return socket.create_connection((host, port), limit)


class Connection:
    """A connection that is made at once and given up with the first failure.

    Args:
        address: where the broker listens.
        limit: seconds for connecting, for sending a request, and for each answer as a whole.
        connect: opens the socket.
        largest: bytes that an answer may have.

    Raises:
        UnreachableError: no connection.
    """

    def __init__(
        self,
        address: Address,
        *,
        limit: float = LIMIT,
        connect: Connect = connect_plainly,
        largest: int = LARGEST_ANSWER,
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
        except (OSError, UnicodeError) as error:  # a name can be no name at all
            raise UnreachableError(self.name, f"cannot be reached: {_reason(error)}") from error

    def close(self) -> None:
        """Close it; a second time does nothing."""
        with suppress(OSError):
            self._socket.close()

    def send(self, request: Any) -> None:
        """Send a request of kafka-python's, whose answer is the next one to take that has not been taken.

        Raises:
            ClosedError: the broker has closed the connection.
            NoAnswerError: the broker takes no more bytes.
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
            raise self._give_up(NoAnswerError, f"did not take {request.name} within {self._limit:g} s") from error
        except OSError as error:
            raise self._give_up(ClosedError, f"does not take {request.name}: {_reason(error)}") from error

    def take(self) -> Any:
        """Wait for the answer to the oldest request that has none yet, and decode it.

        Raises:
            NoAnswerError: it is not complete within the time limit.
            ClosedError: the broker has closed the connection.
            UndecodableError: it is no answer to the request.
        """
        if self._failure is not None:
            raise self._failure
        request = self._sent.popleft()
        deadline = Deadline(self._limit)
        try:
            head = self._receive(4, deadline)
            (size,) = struct.unpack(">i", head)
            if not 4 <= size <= self._largest:
                other = _OTHERS.get(head[:2])
                hint = f", as a server for {other} does" if other else ""
                what = f"announces an answer of {size} bytes to {request.name}{hint}; at most {self._largest} are read"
                raise self._give_up(UndecodableError, what)
            reply = self._receive(size, deadline)
        except TimeoutError as error:
            raise self._give_up(NoAnswerError, f"did not answer {request.name} within {self._limit:g} s") from error
        except OSError as error:
            raise self._give_up(ClosedError, f"does not answer {request.name}: {_reason(error)}") from error
        return self._decoded(request, reply)

    def ask(self, request: Any) -> Any:
        """Send a request and take its answer.

        Raises:
            ClientError: as :meth:`send` and :meth:`take`.
        """
        self.send(request)
        return self.take()

    def _receive(self, size: int, deadline: Deadline) -> bytes:
        data = bytearray()
        while len(data) < size:
            # Zero would mean not to wait at all, which is another error.
            self._socket.settimeout(max(deadline.left, 0.001))
            block = self._socket.recv(min(size - len(data), _BLOCK))
            if not block:
                raise ConnectionError("it has closed the connection")
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
                raise ValueError("a number without an end")
            return _decode(form, request.API_VERSION, reply)
        except _DECODING as error:
            what = f"gives an answer to {request.name} version {request.API_VERSION} that cannot be decoded"
            raise self._give_up(UndecodableError, f"{what}: {_reason(error)}") from error

    def _give_up(self, kind: type[ClientError], what: str) -> ClientError:
        """Close the connection: what comes next on it belongs to no request."""
        self._failure = kind(self.name, what)
        self.close()
        return self._failure


def _decode(form: Any, version: int, reply: bytes) -> Any:
    """Decode an answer and count its bytes: kafka-python takes a string that is cut off for a shorter one."""
    flexible = form.flexible_version_q(version)
    stream = io.BytesIO(reply)
    form.parse_header(stream, version)
    body = memoryview(reply)[stream.tell() :]
    decode = form._struct.compiled_decode_from(  # noqa: SLF001  (what is public does not say where it stopped)
        version, compact=flexible, tagged=flexible, data_class=form[None]
    )
    decoded, end = decode(body, 0)
    if end != len(body):
        raise ValueError(f"it has {len(body)} bytes, and its fields {end}")
    return decoded


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
